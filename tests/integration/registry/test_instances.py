"""Several instances on one cluster: one leads, the others forward, and another takes over when it is gone."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.integration.registry.calls import Http
from tests.integration.server_process import ServerProcess, wait_until

from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

FAST = {"kafkagroup.session.timeout.ms": "1500", "kafkagroup.heartbeat.interval.ms": "100"}
BROKER = {"group.min.session.timeout.ms": "100"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(BROKER) as broker:
        yield broker


def settings(name: str, **more: str) -> dict[str, str]:
    return {**FAST, "kafkastore.topic": f"_schemas_{name}", "schema.registry.group.id": name, **more}


def one_leader(registries: list[SchemaRegistry]) -> bool:
    return sum(registry.is_leader for registry in registries) == 1


def test_writes_anywhere_are_known_everywhere(broker: Broker) -> None:
    with ExitStack() as stack:
        registries = [
            stack.enter_context(SchemaRegistry(broker.bootstrap_servers, settings("three"))) for _ in range(3)
        ]
        https = [stack.enter_context(Http(registry.url)) for registry in registries]
        wait_until(lambda: one_leader(registries), what="one leader")
        for number, http in enumerate(https):
            registered = http.register(f"s{number}", f'{{"type":"fixed","name":"F{number}","size":{number + 1}}}')
            assert registered["id"] == number + 1
            assert http.get(f"/schemas/ids/{number + 1}")[0] == 200, "who forwarded a write knows it"
        for http in https:
            wait_until(lambda http=http: http.get("/subjects") == (200, ["s0", "s1", "s2"]), what="all subjects")
        for http in https:
            assert http.post("/subjects/s0/versions", '"string"') == (409, 40901)
            assert http.put("/config/s0", {"compatibility": "FULL"}) == (200, {"compatibility": "FULL"})
            assert http.get("/config/s0") == (200, {"compatibilityLevel": "FULL"})
        assert https[2].delete("/subjects/s1") == (200, [1])
        assert https[1].call("DELETE", "/subjects/s1?permanent=true") == (200, [1])


def test_another_instance_leads_when_the_leader_leaves(broker: Broker) -> None:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(SchemaRegistry(broker.bootstrap_servers, settings("leaving"))) for _ in range(2)
        )
        wait_until(lambda: one_leader([first, second]), what="one leader")
        leader, follower = (first, second) if first.is_leader else (second, first)
        with Http(follower.url) as http:
            http.register("s", '"string"')
            leader.stop()
            assert http.register("t", '"int"')["id"] == 2
            assert http.get("/subjects") == (200, ["s", "t"])
        assert follower.is_leader


def test_an_instance_that_may_not_lead_waits_for_one_that_may(broker: Broker) -> None:
    shy = settings("shy", **{"leader.eligibility": "false", "kafkastore.timeout.ms": "300"})
    with SchemaRegistry(broker.bootstrap_servers, shy) as follower, Http(follower.url) as http:
        assert http.post("/subjects/s/versions", '"string"') == (500, 50004)
        with SchemaRegistry(broker.bootstrap_servers, settings("shy")) as leader:
            wait_until(lambda: leader.is_leader, what="the leader")
            wait_until(lambda: http.get("/healthz")[1]["leader"] == leader.url, what="the leader to be known")
            assert http.register("s", '"string"')["id"] == 1


_READY = re.compile(r"schema registry started: (http://\S+)")


class RegistryProcess(ServerProcess):
    """A registry as users run it, which can be killed."""

    def __init__(self, broker: Broker, name: str) -> None:
        overrides = [word for key, text in settings(name).items() for word in ("--override", f"{key}={text}")]
        arguments = ["--port", "0", "--host", "127.0.0.1", "-b", broker.bootstrap_servers, *overrides]
        super().__init__(arguments, program=("-m", "moldau.cli.main", "registry"))

    @property
    def url(self) -> str:
        wait_until(lambda: _READY.search(self.output) or self.has_ended, what="the registry's start")
        found = _READY.search(self.output)
        assert found, self.output
        return found.group(1)


@pytest.mark.slow
def test_a_killed_leader_is_replaced_and_nothing_is_lost(broker: Broker) -> None:
    with RegistryProcess(broker, "killed") as first, RegistryProcess(broker, "killed") as second:
        processes = {first.url: first, second.url: second}
        with Http(first.url) as one, Http(second.url) as other:
            https = {first.url: one, second.url: other}
            wait_until(
                lambda: [http.get("/healthz")[1]["is_leader"] for http in https.values()].count(True) == 1,
                what="one leader",
            )
            leader = next(url for url, http in https.items() if http.get("/healthz")[1]["is_leader"])
            follower = next(url for url in https if url != leader)
            wait_until(lambda: https[follower].get("/healthz")[1]["leader"] is not None, what="the leader to be known")
            ids = [
                https[follower].register(f"s{number}", f'{{"type":"enum","name":"E{number}","symbols":["A"]}}')["id"]
                for number in range(5)
            ]
            process = processes[leader].process
            assert process is not None
            process.send_signal(signal.SIGKILL)
            process.wait(30)
            status = 500
            while status == 500:
                status, answer = https[follower].post("/subjects/after/versions", '"string"')
            assert (status, answer["id"]) == (200, 6)
            assert https[follower].get("/subjects") == (200, ["after", *(f"s{number}" for number in range(5))])
            assert ids == [1, 2, 3, 4, 5]
        assert processes[follower].terminate() == 0
        assert "schema registry stopped" in processes[follower].output
