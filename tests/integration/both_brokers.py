"""The same test on moldau and on Apache Kafka: what is expected of one must be what the other does.

A module imports the fixture `wire`, a connection to a fresh broker of each kind, and gives its settings in `SETTINGS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import ModuleType
from uuid import UUID

import pytest
from tests.oracle.apache_kafka import ApacheKafka

from moldau.client.wire import WireClient
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.testing import Broker

__all__ = ["create_topic", "port", "wire"]


@pytest.fixture(scope="module", params=["moldau", pytest.param("kafka", marks=pytest.mark.java)])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    module = request.module
    assert isinstance(module, ModuleType)
    settings: dict[str, str] = module.SETTINGS
    running: AbstractContextManager[Broker | ApacheKafka]
    running = ApacheKafka(None, settings) if request.param == "kafka" else Broker(settings)
    with running as broker:
        yield broker.port


@pytest.fixture
def wire(port: int) -> Iterator[WireClient]:
    with WireClient("127.0.0.1", port) as client:
        yield client


def create_topic(wire: WireClient, name: str, partitions: int = 1) -> UUID:
    """A new topic; returns its id, once a leader is known for every partition."""
    wanted = Message(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
    reply = wire.send(ApiKey.CREATE_TOPICS, Message(topics=[wanted], timeout_ms=30_000, validate_only=False))
    assert reply.topics[0].error_code == 0, reply
    while True:
        request = Message(topics=[Message(topic_id=None, name=name)], allow_auto_topic_creation=False)
        (found,) = wire.send(ApiKey.METADATA, request).topics
        if found.error_code == 0 and len(found.partitions) == partitions:
            topic_id: UUID = found.topic_id
            return topic_id
