"""Databases, started once for all tests of this folder, and a worker for each module that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import httpx
import pytest
from tests.integration.connect.databases import KINDS, Server, running

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


@pytest.fixture(scope="session", params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server
