"""A `mock://` registry answers what the real one does, to all that serdes ask."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from moldau.client.registry_http import RegistryHttp, RegistryRefusalError, RegistryServers
from moldau.registry.mock import mock_registry
from moldau.testing.registry import SchemaRegistry

_numbers = count()
FIELD = {"name": "a", "type": "int"}
WITH_DEFAULT = {"name": "b", "type": "string", "default": ""}
WITHOUT_DEFAULT = {"name": "c", "type": "string"}


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"schema": json.dumps({"type": "record", "name": name, "fields": [FIELD, *fields]})}


def referring(subject: str) -> dict[str, Any]:
    text = {"type": "record", "name": "Outer", "fields": [{"name": "inner", "type": "R"}]}
    return {"schema": json.dumps(text), "references": [{"name": "R", "subject": subject, "version": 1}]}


def json_schema(kind: str) -> dict[str, Any]:
    return {"schemaType": "JSON", "schema": json.dumps({"type": kind})}


def proto(kind: str) -> dict[str, Any]:
    return {"schemaType": "PROTOBUF", "schema": f'syntax = "proto3"; message M {{ {kind} a = 1; }}'}


CONVERSATIONS: dict[str, list[tuple[str, str, Any]]] = {
    "versions": [
        ("POST", "/subjects/{s}/versions", record()),
        ("POST", "/subjects/{s}/versions", record()),
        ("POST", "/subjects/{s}/versions", record(WITH_DEFAULT)),
        ("GET", "/subjects/{s}/versions/latest", None),
        ("GET", "/subjects/{s}/versions/1", None),
        ("GET", "/subjects/{s}/versions/9", None),
        ("POST", "/subjects/{s}-other/versions", record()),
    ],
    "refusals": [
        ("GET", "/subjects/{s}/versions/latest", None),
        ("POST", "/subjects/{s}", record()),
        ("POST", "/subjects/{s}/versions", record()),
        ("POST", "/subjects/{s}/versions", record(WITHOUT_DEFAULT)),
        ("POST", "/subjects/{s}/versions", json_schema("object")),
        ("POST", "/subjects/{s}", record(WITH_DEFAULT)),
        ("POST", "/subjects/{s}", record()),
        ("POST", "/subjects/{s}/versions", {"schema": "{"}),
        ("GET", "/schemas/ids/99999", None),
    ],
    "other formats": [
        ("POST", "/subjects/{s}-j/versions", json_schema("string")),
        ("POST", "/subjects/{s}-j/versions", json_schema("object")),
        ("POST", "/subjects/{s}-p/versions", proto("int64")),
        ("POST", "/subjects/{s}-p/versions", proto("string")),
        ("GET", "/subjects/{s}-p/versions/latest", None),
    ],
    "levels and modes": [
        ("PUT", "/config/{s}", {"compatibility": "NONE"}),
        ("POST", "/subjects/{s}/versions", record()),
        ("POST", "/subjects/{s}/versions", record(WITHOUT_DEFAULT)),
        ("GET", "/subjects/{s}/versions/2", None),
        ("PUT", "/config/{s}", {"compatibility": "sometimes"}),
        ("PUT", "/mode/{s}", {"mode": "READONLY"}),
        ("POST", "/subjects/{s}/versions", record(WITH_DEFAULT)),
        ("POST", "/compatibility/subjects/{s}/versions/latest", record(WITH_DEFAULT)),
    ],
    "deleting": [
        ("POST", "/subjects/{s}/versions", record()),
        ("GET", "/subjects/{s}%2Fwith%20odd%3Fname/versions/latest", None),
        ("DELETE", "/subjects/{s}-nobody", None),
        ("POST", "/subjects/{s}-outer/versions", referring("{s}")),
        ("DELETE", "/subjects/{s}/versions/1", None),
        ("GET", "/nothing/here", None),
    ],
    "references": [
        ("POST", "/subjects/{s}/versions", record()),
        ("POST", "/subjects/{s}-outer/versions", referring("{s}")),
        ("GET", "/subjects/{s}-outer/versions/latest", None),
    ],
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_mock_and_the_real_registry_say_the_same(name: str, registry: SchemaRegistry) -> None:
    number = next(_numbers)
    http, servers, mock = RegistryHttp(30.0), RegistryServers((registry.url,)), mock_registry(f"mock://same-{number}")
    try:
        real = answers(CONVERSATIONS[name], f"s{number}", lambda *request: http.ask(servers, *request))
        assert answers(CONVERSATIONS[name], f"s{number}", mock.ask) == real
    finally:
        http.close()


def answers(conversation: list[tuple[str, str, Any]], subject: str, ask: Any) -> list[Any]:
    """What was said, with ids in the order of their appearance: the real registry serves other tests too."""
    found: list[Any] = []
    ids: dict[int, int] = {}
    for method, path, body in conversation:
        filled = json.loads(json.dumps(body).replace("{s}", subject))
        try:
            answer = ask(method, path.replace("{s}", subject), filled)
        except RegistryRefusalError as refusal:
            found.append((refusal.status, refusal.registry_code))
            continue
        if method in ("PUT", "DELETE"):
            found.append(answer)
            continue
        told = {key: answer.get(key) for key in ("schema", "schemaType", "version", "references") if method == "GET"}
        found.append({**told, "id": ids.setdefault(answer["id"], len(ids))} if "id" in answer else told)
    return found
