from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry


@pytest.fixture(scope="module")
def registry(moldau_broker: Broker) -> Iterator[SchemaRegistry]:
    """A registry with a topic and a group of its module's own."""
    name = f"_schemas_{next(_numbers)}"
    settings = {"kafkastore.topic": name, "schema.registry.group.id": name}
    with SchemaRegistry(moldau_broker.bootstrap_servers, settings) as registry:
        yield registry


_numbers = count()
