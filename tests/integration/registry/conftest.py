from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry


@pytest.fixture(scope="module")
def registry(moldau_broker: Broker) -> Iterator[SchemaRegistry]:
    """A registry with a topic and a group of its module's own."""
    with SchemaRegistry(
        moldau_broker.bootstrap_servers,
        {"kafkastore.topic": f"_schemas_{id(moldau_broker)}_{next(_numbers)}"},
    ) as registry:
        yield registry


_numbers = iter(range(1000))
