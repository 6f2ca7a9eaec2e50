"""The pytest fixture `moldau_broker`: one real broker for the whole test session, on a free port.

    def test_my_producer(moldau_broker):
        producer = Producer({"bootstrap.servers": moldau_broker.bootstrap_servers})

Topics exist until the end of the session, so each test should use its own names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from moldau.testing.broker import Broker

__all__ = ["moldau_broker"]


@pytest.fixture(scope="session")
def moldau_broker() -> Iterator[Broker]:
    """A running broker; `bootstrap_servers` is its address."""
    from moldau.testing.broker import Broker

    with Broker() as broker:
        yield broker
