"""Several instances on one cluster: one leads, the others forward, and another takes over when it is gone."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from tests.integration.registry.calls import Http
from tests.integration.registry.registry_process import RegistryProcess
from tests.integration.server_process import wait_until

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


def leader_of(https: Mapping[str, Http]) -> str:
    """The URL of the one that leads, once all others know it: before that, a newcomer may still become the leader."""
    found: list[str] = []

    def are_agreed() -> bool:
        health = {url: http.get("/healthz")[1] for url, http in https.items()}
        leaders = [url for url, state in health.items() if state["is_leader"]]
        found[:] = leaders
        return len(leaders) == 1 and all(state["leader"] == leaders[0] for state in health.values())

    wait_until(are_agreed, what="an agreed leader")
    return found[0]


def test_writes_anywhere_are_known_everywhere(broker: Broker) -> None:
    with ExitStack() as stack:
        registries = [
            stack.enter_context(SchemaRegistry(broker.bootstrap_servers, settings("three"))) for _ in range(3)
        ]
        https = [stack.enter_context(Http(registry.url)) for registry in registries]
        leader_of({registry.url: http for registry, http in zip(registries, https, strict=True)})
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
        https = {one.url: stack.enter_context(Http(one.url)) for one in (first, second)}
        leader, follower = (first, second) if leader_of(https) == first.url else (second, first)
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


@pytest.mark.slow
def test_a_killed_leader_is_replaced_and_nothing_is_lost(broker: Broker) -> None:
    servers, own = broker.bootstrap_servers, settings("killed")
    with RegistryProcess(servers, own) as first, RegistryProcess(servers, own) as second:
        processes = {first.url: first, second.url: second}
        with Http(first.url) as one, Http(second.url) as other:
            https = {first.url: one, second.url: other}
            leader = leader_of(https)
            follower = next(url for url in https if url != leader)
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


def test_an_instance_that_still_waits_for_others_can_be_stopped_at_once() -> None:
    patient = {**BROKER, "group.initial.rebalance.delay.ms": "60000"}
    impatient = {"kafkastore.timeout.ms": "200", "kafkagroup.session.timeout.ms": "60000"}
    with Broker(patient) as broker:
        registry = SchemaRegistry(broker.bootstrap_servers, impatient)
        registry.start()
        with Http(registry.url) as http:
            assert http.post("/subjects/s/versions", '"string"') == (500, 50004)
        began = time.monotonic()
        registry.stop()
        assert time.monotonic() - began < 20


def test_writers_everywhere_at_once_get_ids_of_their_own(broker: Broker) -> None:
    def register(http: Http, worker: int) -> list[int]:
        return [
            http.register(f"s{worker}-{number}", f'{{"type":"enum","name":"E{worker}_{number}","symbols":["A"]}}')["id"]
            for number in range(15)
        ]

    with ExitStack() as stack:
        registries = [
            stack.enter_context(SchemaRegistry(broker.bootstrap_servers, settings("crowd"))) for _ in range(2)
        ]
        https = {one.url: stack.enter_context(Http(one.url)) for one in registries}
        leader_of(https)
        callers = [stack.enter_context(Http(registries[worker % 2].url)) for worker in range(4)]
        workers = stack.enter_context(ThreadPoolExecutor(4))
        ids = [schema_id for found in workers.map(register, callers, range(4)) for schema_id in found]
        assert sorted(ids) == list(range(1, 61))
        for http in https.values():
            wait_until(lambda http=http: len(http.get("/subjects")[1]) == 60, what="all subjects")
