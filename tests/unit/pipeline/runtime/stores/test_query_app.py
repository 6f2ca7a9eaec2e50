"""Stores answer over HTTP: keys, ranges, windows, and what cannot be answered."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.unit.pipeline.runtime.stores.test_stores import STORES, Stores, change

from moldau.core.errors import StartupError
from moldau.core.ids import TopicPartition
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.metrics import PipelineMetrics
from moldau.pipeline.runtime.states import State
from moldau.pipeline.runtime.stores.query_app import Application, build_app
from moldau.pipeline.runtime.stores.query_server import QueryServer
from moldau.streams import StreamsBuilder

PLACE = TopicPartition("in", 0)


def copy_topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return builder.build()


class Running:
    """A pipeline as the app sees it."""

    def __init__(self, stores: Stores) -> None:
        self.state = State.RUNNING
        self.stores = stores
        metrics = PipelineMetrics()
        metrics.count_from({PLACE: 3})
        metrics.count_batch(7, {PLACE: 10}, 4)
        metrics.last_error = "a broker was away"
        self.application = Application(
            "app",
            stores.views,
            lambda: self.state,
            lambda: metrics.snapshot({PLACE: 12}),
            topology=copy_topology(),
        )
        self._app: Any = build_app(self.application)

    def get(self, path: str, **headers: str) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://stores") as client:
                return await client.get(path, headers=headers)

        return asyncio.run(ask())


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    stores = Stores(tmp_path / "stores.sqlite")
    stores.apply(
        change("counts", "a", 1, 10),
        change("counts", "b/c", 2, 11),
        change("counts", "d", 3, 12),
        change("windows", "a", 5, 20, (20, 30)),
        change("windows", "a", 6, 30, (30, 40)),
        change("sessions", "a", 7, 9, (5, 9)),
    )
    yield Running(stores)
    stores.views.close()
    stores.database.close()


def test_the_root_tells_what_can_be_asked(running: Running) -> None:
    told = running.get("/").json()

    assert (told["application.id"], told["state"]) == ("app", "RUNNING")
    assert told["paths"]["/stores/{store}/{key}"] == "What a key has: its value, or its windows and sessions"


def test_a_value_without_a_time_has_none(running: Running) -> None:
    running.stores.apply(change("counts", "e", 4, -1))

    assert running.get("/stores/counts/e").json() == {"key": "e", "value": 4}


def test_stores_are_listed(running: Running) -> None:
    assert running.get("/stores").json() == [
        {"name": "counts", "shape": "key-value", "entries": 3},
        {"name": "sessions", "shape": "session", "entries": 1},
        {"name": "windows", "shape": "window", "entries": 2},
    ]


def test_a_key_is_looked_up(running: Running) -> None:
    assert running.get("/stores/counts/a").json() == {"key": "a", "value": 1, "timestamp": 10}


def test_a_key_with_a_slash_is_found(running: Running) -> None:
    assert running.get("/stores/counts/b%2Fc").json()["value"] == 2


@pytest.mark.parametrize("path", ["/stores/counts/none", "/stores/none", "/stores/none/a", "/nothing"])
def test_what_is_not_there_is_not_found(running: Running, path: str) -> None:
    assert running.get(path).status_code == 404


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("", ["a", "b/c", "d"]),
        ("?from=b", ["b/c", "d"]),
        ("?from=a&to=b", ["a"]),
        ("?reverse=true", ["d", "b/c", "a"]),
        ("?limit=2", ["a", "b/c"]),
    ],
)
def test_ranges_of_keys_are_read(running: Running, query: str, keys: list[str]) -> None:
    assert [entry["key"] for entry in running.get(f"/stores/counts{query}").json()] == keys


def test_windows_of_a_key_are_read_by_time(running: Running) -> None:
    later = {"key": "a", "window": {"start": 30, "end": 40}, "value": 6}

    assert running.get("/stores/windows/a?time_from=25").json() == [later]
    assert running.get("/stores/windows?time_from=25").json() == [later]
    assert len(running.get("/stores/windows/a").json()) == 2


def test_sessions_of_a_key_are_read(running: Running) -> None:
    session = {"key": "a", "window": {"start": 5, "end": 9}, "value": 7}

    assert running.get("/stores/sessions/a").json() == [session]
    assert running.get("/stores/sessions").json() == [session]


def test_a_time_that_is_none_is_refused(running: Running) -> None:
    refusal = running.get("/stores/windows/a?time_from=noon")

    assert (refusal.status_code, refusal.json()) == (400, {"error": "time_from=noon is not a time in milliseconds"})


def test_health_follows_the_state(running: Running) -> None:
    assert running.get("/healthz").status_code == 200
    assert running.get("/state").json() == {"application.id": "app", "state": "RUNNING"}

    running.state = State.ERROR

    assert running.get("/healthz").json() == {"healthy": False, "state": "ERROR"}
    assert running.get("/healthz").status_code == 503


def test_metrics_are_prometheus_lines(running: Running) -> None:
    assert 'moldau_streams_records_lag{application_id="app"} 2\n' in running.get("/metrics").text


def test_it_describes_itself(running: Running) -> None:
    assert "/stores/{store}/{key}" in running.get("/openapi.json").json()["paths"]


def test_a_port_answers_until_it_is_closed(running: Running) -> None:
    server = QueryServer("127.0.0.1", 0, running.application)
    server.start()
    url = f"http://127.0.0.1:{server.port}/stores/counts/a"
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert json.load(answer)["value"] == 1

    with pytest.raises(StartupError, match="cannot listen"):
        QueryServer("127.0.0.1", server.port, running.application).start()
    server.close()

    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=1)


def test_there_is_a_store_of_each_shape() -> None:
    assert {store.shape.value for store in STORES.values()} == {"key-value", "window", "session"}


def test_the_topology_is_told_as_nodes_and_edges_and_as_a_diagram(running: Running) -> None:
    told = running.get("/topology").json()
    kinds = {node["id"]: node["kind"] for node in told["nodes"]}
    assert (kinds["topic:in"], kinds["topic:out"]) == ("topic", "topic")
    ends = {(edge["from"], edge["to"]) for edge in told["edges"]}
    (source,) = (to for begin, to in ends if begin == "topic:in")
    (sink,) = (begin for begin, to in ends if to == "topic:out")
    assert (source, sink) in ends
    assert kinds[source] == kinds[sink] == "operator"
    diagram = running.get("/topology", accept="text/vnd.mermaid")
    assert diagram.headers["content-type"].startswith("text/vnd.mermaid")
    assert diagram.text.startswith("flowchart TD")


def test_progress_tells_batches_lag_and_the_last_error(running: Running) -> None:
    told = running.get("/progress").json()
    assert told["state"] == "RUNNING"
    assert told["lag"] == {"in-0": 2}
    assert told["last_error"] == "a broker was away"
    (batch,) = told["batches"]
    assert (batch["batch"], batch["records_in"], batch["records_out"]) == (7, 7, 4)
    assert told["metrics"]["records-in-total"] == 7
