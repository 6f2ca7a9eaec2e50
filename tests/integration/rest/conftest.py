"""One broker, registry and REST proxy for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.integration.rest.talk import Talk

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry
from moldau.testing.rest import RestProxy


@pytest.fixture(scope="session")
def platform() -> Iterator[tuple[Broker, SchemaRegistry, RestProxy]]:
    with ExitStack() as stack:
        settings = {"group.initial.rebalance.delay.ms": "0", "num.partitions": "1"}
        broker = stack.enter_context(Broker(settings))
        registry = stack.enter_context(SchemaRegistry(broker.bootstrap_servers))
        rest = stack.enter_context(
            RestProxy(
                broker.bootstrap_servers, {"schema.registry.url": registry.url, "consumer.request.timeout.ms": "300"}
            )
        )
        with Talk(rest.url) as talk:
            talk.produce(talk.new_topic(), 1)  # the proxy's own clients are made when they are needed
        yield broker, registry, rest


@pytest.fixture
def talk(platform: tuple[Broker, SchemaRegistry, RestProxy]) -> Iterator[Talk]:
    with Talk(platform[2].url) as talk:
        yield talk


@pytest.fixture
def servers(platform: tuple[Broker, SchemaRegistry, RestProxy]) -> str:
    return platform[0].bootstrap_servers
