"""What a worker's settings forbid: tracking of topics, and settings of clients."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.integration.connect.conftest import cluster_settings
from tests.integration.connect.talk import COUNTER, await_states, delete, make

from moldau.testing import Broker
from moldau.testing.connect import ConnectWorker

CONFIG = {"connector.class": COUNTER, "topic": "ruled", "limit": "5"}


@pytest.fixture(scope="module")
def strict(moldau_broker: Broker) -> Iterator[httpx.Client]:
    rules = {"topic.tracking.enable": "false", "connector.client.config.override.policy": "Principal"}
    with (
        ConnectWorker(moldau_broker.bootstrap_servers, {**cluster_settings(), **rules}) as worker,
        httpx.Client(base_url=worker.url, timeout=60) as client,
    ):
        yield client


def test_topics_are_forbidden_where_they_are_not_tracked(strict: httpx.Client) -> None:
    make(strict, "untracked", CONFIG)
    await_states(strict, "untracked", "RUNNING", "RUNNING")
    for answer in (strict.get("/connectors/untracked/topics"), strict.put("/connectors/untracked/topics/reset")):
        assert (answer.status_code, answer.json()["error_code"]) == (403, 403)
        assert answer.json()["message"] == "Topic tracking is disabled."
    delete(strict, "untracked")


def test_settings_of_clients_that_the_policy_forbids_are_named(strict: httpx.Client) -> None:
    wrong = {**CONFIG, "producer.override.linger.ms": "5", "producer.override.batch.size": "10"}
    answer = strict.post("/connectors", json={"name": "overriding", "config": wrong})
    assert answer.status_code == 400
    for name in ("producer.override.linger.ms", "producer.override.batch.size"):
        assert name in answer.json()["message"]
    make(strict, "allowed", {**CONFIG, "producer.override.sasl.mechanism": "PLAIN"})
    delete(strict, "allowed")
