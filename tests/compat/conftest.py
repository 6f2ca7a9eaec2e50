"""One broker for each module of client tests: moldau, or Apache Kafka when `MOLDAU_COMPAT_BROKER=kafka` asks for it.

Running the same tests on Apache Kafka shows whether a failure is moldau's or the test's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.compat.brokers import Endpoint, running


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with running(os.environ.get("MOLDAU_COMPAT_BROKER", "moldau"), {"num.partitions": "4"}) as started:
        yield started
