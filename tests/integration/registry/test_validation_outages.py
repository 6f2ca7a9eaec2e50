"""Topics that want registered schema ids while the registry is slow, gone, or told by settings."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, Producer
from tests.integration.raw_client import RawClient, batch_of
from tests.integration.registry.calls import Http
from tests.integration.registry.stub_registry import StubRegistry

from moldau.core.errors import ErrorCode, InvalidConfigError
from moldau.protocol.messages import Message
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

VALIDATED = {"confluent.value.schema.validation": "true"}
SCHEMA = json.dumps({"type": "record", "name": "Order", "fields": []})
KNOWN = {
    f"/schemas/ids/{number}{path}": (200, document)
    for number in (7, 8)
    for path, document in (("/subjects", ["orders-value"]), ("", {"schema": SCHEMA}))
}


def framed(number: int) -> bytes:
    return b"\0" + number.to_bytes(4) + b"body"


@contextmanager
def serving(url: str, **settings: str) -> Iterator[tuple[Broker, RawClient]]:
    """A broker that is told its registry, with a topic that checks ids."""
    with Broker({"confluent.schema.registry.url": url, **settings}) as broker, RawClient(broker.port) as raw:
        raw.create_topic("orders", **VALIDATED)
        yield broker, raw


def test_an_id_is_asked_about_once() -> None:
    lasting = {"confluent.missing.id.cache.ttl.sec": "60"}
    with StubRegistry(KNOWN) as registry, serving(registry.url, **lasting) as (_, raw):
        for _ in range(5):
            assert raw.produce("orders", batch_of(framed(7), framed(7), framed(8))).error_code == 0
        assert sorted(registry.paths) == sorted(KNOWN)
        for _ in range(5):
            assert raw.produce("orders", batch_of(framed(9))).error_code == ErrorCode.INVALID_RECORD
        assert registry.paths.count("/schemas/ids/9/subjects") == 1, "for a minute it is known to be unknown"


def test_known_ids_outlive_the_registry_and_unknown_ones_are_to_be_sent_again() -> None:
    with StubRegistry(KNOWN) as registry:
        url = registry.url
        with serving(url) as (_, raw):
            assert raw.produce("orders", batch_of(framed(7))).error_code == 0
            registry.stop()
            assert raw.produce("orders", batch_of(framed(7))).error_code == 0
            answer = raw.produce("orders", batch_of(framed(8)))
            assert ErrorCode(answer.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert answer.error_message.startswith("schema 8 cannot be looked up: the schema registry cannot be ")
            assert raw.produce("orders", batch_of(b"plain")).error_code == ErrorCode.INVALID_RECORD


def test_a_producer_waits_for_the_registry_to_come_back() -> None:
    with Broker() as broker:
        registry = SchemaRegistry(broker.bootstrap_servers)
        with RawClient(broker.port) as raw:
            raw.create_topic("orders", **VALIDATED)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.max.ms": 200})
        outcomes: list[KafkaError | None] = []
        registry.start()
        with Http(registry.url) as http:
            number = http.register("orders-value", SCHEMA)["id"]
        registry.stop()
        producer.produce("orders", framed(number), on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(1.5) == 1, "nobody can say whether the id is registered"
        registry.start()
        assert producer.flush(30) == 0
        registry.stop()
        assert outcomes == [None]


def test_without_any_registry_the_producer_is_told_what_to_set() -> None:
    with Broker() as broker, RawClient(broker.port) as raw:
        raw.create_topic("orders", **VALIDATED)
        answer = raw.produce("orders", batch_of(framed(7)))
        assert ErrorCode(answer.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert "set confluent.schema.registry.url" in answer.error_message


def test_nobody_else_waits_for_a_registry_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, StubRegistry(KNOWN) as registry:
        port = silent.getsockname()[1]
        with serving(registry.url) as (broker, raw), RawClient(broker.port) as other:
            raw.create_topic("free", **{"compression.type": "gzip"})
            assert raw.produce("orders", batch_of(framed(7))).error_code == 0
            set_registry(raw, f"http://127.0.0.1:{port}")
            hanging = threading.Thread(target=raw.produce, args=("orders", batch_of(framed(8))))
            hanging.start()
            question, _ = silent.accept()
            with question:
                began = time.monotonic()
                for _ in range(20):
                    assert other.produce("orders", batch_of(framed(7), codec=1)).error_code == 0
                    assert other.produce("free", batch_of(b"plain" * 9000)).error_code == 0
                assert time.monotonic() - began < 2
                assert hanging.is_alive()
            hanging.join(30)


def set_registry(raw: RawClient, url: str) -> None:
    change = Message(name="confluent.schema.registry.url", config_operation=0, value=url)
    resource = Message(resource_type=4, resource_name="", configs=[change])
    answer = raw.ask(44, 1, Message(resources=[resource], validate_only=False))
    assert answer.responses[0].error_code == 0, answer


def test_a_broker_that_checks_all_topics_leaves_services_their_own() -> None:
    with (
        Broker(VALIDATED) as broker,
        SchemaRegistry(broker.bootstrap_servers) as registry,
        Http(registry.url) as http,
        RawClient(broker.port) as raw,
    ):
        number = http.register("orders-value", SCHEMA)["id"]
        raw.create_topic("orders")
        raw.create_topic("free", **{"confluent.value.schema.validation": "false"})
        raw.create_topic("_own", **VALIDATED)
        assert raw.produce("orders", batch_of(framed(number))).error_code == 0
        assert raw.produce("orders", batch_of(b"plain")).error_code == ErrorCode.INVALID_RECORD
        assert raw.produce("free", batch_of(b"plain")).error_code == 0
        assert raw.produce("_own", batch_of(b"plain")).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://registry", "http://"])
def test_a_url_that_is_none_stops_the_start(url: str) -> None:
    with pytest.raises(InvalidConfigError, match="http://host:port"), Broker({"confluent.schema.registry.url": url}):
        pass
