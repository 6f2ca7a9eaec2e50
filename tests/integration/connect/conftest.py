from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from moldau.testing import Broker
from moldau.testing.connect import ConnectWorker

_numbers = count()


def cluster_settings() -> dict[str, str]:
    """Topics and a group that no other module uses."""
    number = next(_numbers)
    return {
        "group.id": f"cluster-{number}",
        "config.storage.topic": f"configs-{number}",
        "offset.storage.topic": f"offsets-{number}",
        "status.storage.topic": f"status-{number}",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


@pytest.fixture(scope="module")
def worker(moldau_broker: Broker) -> Iterator[ConnectWorker]:
    with ConnectWorker(moldau_broker.bootstrap_servers, cluster_settings()) as worker:
        yield worker


@pytest.fixture(scope="module")
def connect(worker: ConnectWorker) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=worker.url, timeout=60) as client:
        yield client
