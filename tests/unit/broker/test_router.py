from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import cast

import pytest

from moldau.broker.context import Broker, RequestContext
from moldau.broker.router import HANDLERS_PACKAGE, OPEN, ROUTES, Router, announced_ranges
from moldau.broker.stats import BrokerStats
from moldau.core.acls import OPERATIONS_BY_RESOURCE, AclOperation, Permission, ResourceType
from moldau.net.connection import Connection
from moldau.net.session import Session
from moldau.protocol.api import APIS, ApiKey, encode_request_header
from moldau.protocol.messages import Message


def test_produce_is_announced_from_0_so_that_old_librdkafka_compresses() -> None:
    assert next(announced_ranges()) == (ApiKey.PRODUCE, 0, 13)


@pytest.mark.parametrize("api_key", sorted(ROUTES))
def test_whatever_is_announced_has_a_handler_and_schemas(api_key: int) -> None:
    route = ROUTES[api_key]
    module = importlib.import_module(f"{HANDLERS_PACKAGE}.{route.module}")
    assert api_key in (ApiKey.PRODUCE, ApiKey.FETCH) or callable(module.handle)
    assert route.module.startswith(f"api_{api_key:02d}_")
    assert APIS[api_key].first <= route.first <= route.last <= APIS[api_key].last


def test_every_routed_api_says_what_it_needs() -> None:
    """A new API without a permission is a mistake, unless Kafka lets anybody ask."""
    assert {key for key, route in ROUTES.items() if route.permissions == OPEN} == {
        ApiKey.API_VERSIONS,
        ApiKey.DESCRIBE_CLUSTER,
    }
    for route in ROUTES.values():
        assert len(set(route.permissions)) == len(route.permissions)
        for permission in route.permissions:
            assert permission.operation in OPERATIONS_BY_RESOURCE[permission.resource_type], route.module


@pytest.mark.parametrize(
    ("api_key", "operation", "resource_type"),
    [
        (ApiKey.PRODUCE, AclOperation.WRITE, ResourceType.TOPIC),
        (ApiKey.FETCH, AclOperation.READ, ResourceType.TOPIC),
        (ApiKey.METADATA, AclOperation.DESCRIBE, ResourceType.TOPIC),
        (ApiKey.OFFSET_COMMIT, AclOperation.READ, ResourceType.GROUP),
        (ApiKey.OFFSET_FETCH, AclOperation.DESCRIBE, ResourceType.GROUP),
        (ApiKey.JOIN_GROUP, AclOperation.READ, ResourceType.GROUP),
        (ApiKey.CREATE_TOPICS, AclOperation.CREATE, ResourceType.CLUSTER),
        (ApiKey.DELETE_RECORDS, AclOperation.DELETE, ResourceType.TOPIC),
        (ApiKey.CREATE_PARTITIONS, AclOperation.ALTER, ResourceType.TOPIC),
        (ApiKey.INIT_PRODUCER_ID, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
        (ApiKey.END_TXN, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
        (ApiKey.WRITE_TXN_MARKERS, AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),
        (ApiKey.ELECT_LEADERS, AclOperation.ALTER, ResourceType.CLUSTER),
        (ApiKey.DESCRIBE_LOG_DIRS, AclOperation.DESCRIBE, ResourceType.CLUSTER),
        (ApiKey.DELETE_GROUPS, AclOperation.DELETE, ResourceType.GROUP),
        (ApiKey.DESCRIBE_PRODUCERS, AclOperation.READ, ResourceType.TOPIC),
    ],
)
def test_the_first_permission_is_the_one_of_an_ordinary_request(
    api_key: ApiKey, operation: AclOperation, resource_type: ResourceType
) -> None:
    assert ROUTES[api_key].permissions[0] == Permission(operation, resource_type)


def test_handlers_see_the_session_on_the_hot_way_and_on_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def produce(connection: Connection, *_: object) -> bytes:
        seen.append(connection.session.principal)
        return b"produced"

    def handle(request: object, call: RequestContext, broker: object) -> Message:
        seen.append(f"{call.principal} {call.listener_name} {call.client_host} {call.local_host}")
        return Message(error_code=0, cluster_id="c", controller_id=1, brokers=[])

    session = Session("SASL_SSL", "10.0.0.1", 1, "10.0.0.2")
    session.principal = "User:alice"
    connection = cast("Connection", SimpleNamespace(session=session))
    broker = cast("Broker", SimpleNamespace(stats=BrokerStats(), forwarding=None))
    router = Router(broker, produce=produce, fetch=produce)
    monkeypatch.setitem(router._handles, ApiKey.DESCRIBE_CLUSTER, handle)
    for api_key, version, body in ((ApiKey.PRODUCE, 9, b""), (ApiKey.DESCRIBE_CLUSTER, 0, b"\0\0")):
        frame = bytearray(encode_request_header(api_key, version, 1, "c") + body)
        router.handle(connection, memoryview(frame), 0, len(frame))
    assert seen == ["User:alice", "User:alice SASL_SSL 10.0.0.1 10.0.0.2"]
