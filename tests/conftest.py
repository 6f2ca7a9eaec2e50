"""What tests of several folders start alike: a broker of the module's own, and a registry on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from moldau.testing import Broker, SchemaRegistry


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker that no other module uses."""
    from moldau.testing import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[SchemaRegistry]:
    """A registry on the module's own broker, in the topic that registries take by default."""
    from moldau.testing import SchemaRegistry

    with SchemaRegistry(broker.bootstrap_servers) as running:
        yield running
