"""A registry without brokers: the real app over a store in memory. Start at `Site`."""

from __future__ import annotations

import json
from typing import Any

from starlette.testclient import TestClient

from moldau.registry.app import build_app
from moldau.registry.leadership import SoleLeadership
from moldau.registry.registry import Registry
from moldau.registry.settings import RegistrySettings
from moldau.registry.store import MemoryStore

__all__ = ["PERSON", "PERSON_WITH_HOBBY", "PERSON_WITH_NAME", "Site"]

PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [{"name": "firstname", "type": "string"}, {"name": "age", "type": "int", "default": -1}],
}
PERSON_WITH_HOBBY = {**PERSON, "fields": [*PERSON["fields"], {"name": "hobby", "type": "string", "default": ""}]}
PERSON_WITH_NAME = {**PERSON, "fields": [*PERSON["fields"], {"name": "surname", "type": "string"}]}


class Site:
    """What a test does to a registry, in few words."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.store = MemoryStore()
        self.registry = Registry(RegistrySettings.of(settings), self.store, SoleLeadership())
        self.http = TestClient(build_app(self.registry))

    def register(self, subject: str, schema: Any = PERSON, **fields: Any) -> dict[str, Any]:
        """Register something that must be accepted."""
        answer = self.post(f"/subjects/{subject}/versions", schema, **fields)
        assert answer[0] == 200, answer
        return dict(answer[1])

    def post(self, path: str, schema: Any, **fields: Any) -> tuple[int, Any]:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.call("POST", path, {"schema": text, **fields})

    def get(self, path: str) -> tuple[int, Any]:
        return self.call("GET", path)

    def put(self, path: str, document: Any) -> tuple[int, Any]:
        return self.call("PUT", path, document)

    def delete(self, path: str) -> tuple[int, Any]:
        return self.call("DELETE", path)

    def call(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        """Status and document; of a refusal the numeric code alone."""
        answer = self.http.request(method, path, json=document)
        content = answer.json() if answer.content else None
        if answer.status_code >= 400:
            assert isinstance(content["message"], str)
            return answer.status_code, content["error_code"]
        return answer.status_code, content
