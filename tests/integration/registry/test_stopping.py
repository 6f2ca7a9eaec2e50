"""A registry whose brokers are gone ends soon and quietly, whatever it was waiting for."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.killable import KillableBroker
from tests.integration.registry.calls import Http
from tests.integration.registry.registry_process import RegistryProcess
from tests.integration.server_process import wait_until

SOON_S = 12
"""It takes one to three seconds; with a question to a broker to be waited for it would be twenty and more."""
NOWHERE = "127.0.0.1:1"
FAST = {"kafkagroup.session.timeout.ms": "6000", "kafkagroup.heartbeat.interval.ms": "200"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KillableBroker]:
    broker = KillableBroker(tmp_path, {"group.initial.rebalance.delay.ms": "0"})
    broker.start()
    yield broker
    broker.close()


def _stopped_soon(registry: RegistryProcess, number: int = signal.SIGTERM) -> None:
    began = time.monotonic()
    assert registry.process is not None
    registry.process.send_signal(number)
    assert registry.wait() == 0
    assert time.monotonic() - began < SOON_S
    assert "schema registry stopped" in registry.output or "shutting down" in registry.output
    assert "Traceback" not in registry.output


@pytest.mark.parametrize("trouble", ["killed", "frozen"])
def test_a_registry_without_its_broker_ends_soon(broker: KillableBroker, trouble: str) -> None:
    with RegistryProcess(broker.bootstrap_servers, FAST) as registry, Http(registry.url) as http:
        wait_until(lambda: http.get("/healthz")[1]["is_leader"], what="the leader")
        http.register("s", '"string"')
        if trouble == "killed":
            broker.kill()
        else:
            broker.freeze()
        with ThreadPoolExecutor(1) as writing:
            write = writing.submit(http.post, "/subjects/t/versions", '"int"')
            if trouble == "killed":
                wait_until(lambda: "is not available" in registry.output, what="the line about the broker")
            assert http.get("/subjects") == (200, ["s"]), "reads go on"
            _stopped_soon(registry)
            assert write.result()[0] == 500
        assert registry.output.count("is not available") <= 1
        assert "cannot be reached" not in registry.output, "one line tells of the broker"


def test_a_registry_that_waits_for_a_broker_can_be_interrupted() -> None:
    with RegistryProcess(NOWHERE, FAST) as registry:
        wait_until(lambda: "waiting for brokers at" in registry.output, what="the line about the broker")
        _stopped_soon(registry, signal.SIGINT)
        assert registry.output.count("waiting for brokers at") == 1
        assert "cannot be reached" not in registry.output
