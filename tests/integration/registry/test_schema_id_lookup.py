"""What a broker asks a registry, and what it makes of the answers, good and bad."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.free_ports import free_port
from tests.integration.registry.stub_registry import StubRegistry

from moldau.broker.data.schema_rules import RegisteredSchema, RegistryUnreachableError
from moldau.client.registry_http import RegistryServers
from moldau.server.schema_ids import RegistryLookup

AVRO = json.dumps({"type": "record", "name": "shop.Order", "fields": []})
SEVEN = {
    "/schemas/ids/7/subjects": (200, ["orders-value", "shop.Order"]),
    "/schemas/ids/7": (200, {"schema": AVRO}),
}
ORDER = RegisteredSchema(frozenset({"orders-value", "shop.Order"}), frozenset({"shop.Order"}))
GUID = "0f3e9b1a-6f0e-4f2c-9a5e-3c1d2b4a5f60"


@pytest.fixture
def lookup() -> Iterator[RegistryLookup]:
    lookup = RegistryLookup()
    yield lookup
    lookup.close()


@pytest.fixture
def registry() -> Iterator[StubRegistry]:
    with StubRegistry(SEVEN) as registry:
        yield registry


def at(*urls: str, **fields: Any) -> RegistryServers:
    return RegistryServers(urls, **fields)


def test_an_id_is_told_with_its_subjects_and_its_name(lookup: RegistryLookup, registry: StubRegistry) -> None:
    assert lookup.find(7, at(registry.url)) == ORDER
    assert lookup.find(7, at(registry.url + "/")) == ORDER


def test_an_unknown_id_is_known_to_be_unknown(lookup: RegistryLookup, registry: StubRegistry) -> None:
    assert lookup.find(8, at(registry.url)) == RegisteredSchema()
    assert registry.paths == ["/schemas/ids/8/subjects"]


def test_an_id_whose_subjects_are_all_deleted_is_registered_nowhere(
    lookup: RegistryLookup, registry: StubRegistry
) -> None:
    registry.answers["/schemas/ids/7/subjects"] = 200, []
    assert lookup.find(7, at(registry.url)) == RegisteredSchema()


def test_a_guid_leads_to_the_id_of_the_default_context(lookup: RegistryLookup, registry: StubRegistry) -> None:
    ids = [{"context": ".other", "id": 1}, {"context": ".", "id": 7}]
    registry.answers[f"/schemas/guids/{GUID}/ids"] = 200, ids
    assert lookup.find(GUID, at(registry.url)) == ORDER
    registry.answers[f"/schemas/guids/{GUID}/ids"] = 200, ids[:1]
    assert lookup.find(GUID, at(registry.url)) == RegisteredSchema()


def test_one_connection_serves_many_lookups(lookup: RegistryLookup, registry: StubRegistry) -> None:
    for _ in range(5):
        lookup.find(7, at(registry.url))
    assert (len(registry.requests), registry.connections) == (10, 1)


def test_a_registry_that_was_restarted_is_asked_over_a_new_connection(lookup: RegistryLookup) -> None:
    with StubRegistry(SEVEN) as first:
        assert lookup.find(7, at(first.url)) == ORDER
        for connection in lookup._http._connections.values():
            assert connection.sock is not None
            connection.sock.shutdown(socket.SHUT_RDWR)
        assert lookup.find(7, at(first.url)) == ORDER
        assert first.connections == 2


def test_the_next_instance_is_asked_when_one_is_gone(lookup: RegistryLookup, registry: StubRegistry) -> None:
    assert lookup.find(7, at(f"http://127.0.0.1:{free_port()}", registry.url)) == ORDER


@pytest.mark.parametrize(
    ("url", "fields", "header"),
    [
        ("http://ada:l%40ve@{}", {}, "Basic YWRhOmxAdmU="),
        ("http://{}", {"user_info": "ada:l@ve"}, "Basic YWRhOmxAdmU="),
        ("http://{}", {}, None),
    ],
)
def test_credentials_travel_as_basic_auth(
    lookup: RegistryLookup, registry: StubRegistry, url: str, fields: Any, header: str | None
) -> None:
    lookup.find(7, at(url.format(registry.url.removeprefix("http://")), **fields))
    assert [headers.get("Authorization") for _, headers in registry.requests] == [header, header]


@pytest.mark.parametrize(
    "answer",
    [
        (500, {"error_code": 50001, "message": "store"}),
        (401, {"error_code": 401, "message": "Unauthorized"}),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
        (404, b"<html>not here</html>"),
        (200, b"<html>welcome</html>"),
        (200, {"error": 1}),
        (200, 7),
    ],
)
def test_a_bad_answer_is_no_answer(lookup: RegistryLookup, registry: StubRegistry, answer: Any) -> None:
    registry.answers["/schemas/ids/7/subjects"] = answer
    registry.answers["/schemas/ids/7"] = 200, "not a schema"
    with pytest.raises(RegistryUnreachableError, match="schema 7 cannot be looked up"):
        lookup.find(7, at(registry.url))


def test_nobody_to_ask_says_what_to_set(lookup: RegistryLookup) -> None:
    with pytest.raises(RegistryUnreachableError, match=r"set confluent\.schema\.registry\.url"):
        lookup.find(7, at())


def test_a_password_is_not_told_in_errors(lookup: RegistryLookup) -> None:
    port = free_port()
    with pytest.raises(RegistryUnreachableError) as caught:
        lookup.find(7, at(f"http://ada:love@127.0.0.1:{port}"))
    assert "love" not in str(caught.value)
    assert f"http://127.0.0.1:{port}: " in str(caught.value)


def test_a_truststore_that_cannot_be_read_is_named(lookup: RegistryLookup) -> None:
    with pytest.raises(RegistryUnreachableError, match="cannot read the key store /no/such"):
        lookup.find(7, at("https://127.0.0.1:1", truststore=("/no/such", "")))
