"""Two servers with one service id: they know the same, share the queries, and one goes on without the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.integration.ksql.talk import filled_stream, name, query, refused, run, stream
from tests.ksql_cases.rest_runner import RestServer, RestWorld

from moldau.ksql.api.errors import NotHereError
from moldau.ksql.api.requests import QueryRequest
from moldau.pipeline.runtime.states import State
from moldau.testing import Broker

WAIT_S = 60.0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def client(server: RestServer) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=WAIT_S)


def running_on(server: RestServer) -> set[str]:
    return {one.query_id for one in server.builder.pipelines if one.states.state is State.RUNNING}


def host(server: RestServer) -> str:
    return urlsplit(server.url).netloc


@pytest.fixture
def pair(moldau_broker: Broker, world: RestWorld, tmp_path: Path) -> Iterator[list[RestServer]]:
    """Servers that are still open at the end are closed."""
    first = RestServer(moldau_broker.bootstrap_servers, tmp_path, world.send)
    second = RestServer(moldau_broker.bootstrap_servers, tmp_path, world.send, service_id=first.service_id)
    # One registry for both, as the mock's name follows from the service id.
    servers = [first, second]
    wait_for(lambda: all(len(one.server.sharing.urls) == 2 for one in servers))
    yield servers
    for one in servers:
        one.close()


def test_queries_are_shared_and_go_on_when_a_server_goes(pair: list[RestServer]) -> None:
    first, second = pair
    with client(first) as one, client(second) as other:
        source = filled_stream(one)
        for _ in range(8):
            run(one, f"CREATE TABLE {name('T')} AS SELECT ID, COUNT(*) AS N FROM {source} GROUP BY ID;")
        known = {row["id"] for row in run(one, "SHOW QUERIES;")[0]["queries"]}
        wait_for(lambda: running_on(first) | running_on(second) == known)
        assert not running_on(first) & running_on(second)
        wait_for(lambda: {row["id"] for row in run(other, "SHOW QUERIES;")[0]["queries"]} == known)

        wait_for(lambda: all(each["hostAlive"] for each in one.get("/clusterStatus").json()["clusterStatus"].values()))
        status = one.get("/clusterStatus").json()["clusterStatus"]
        assert status.keys() == {host(first), host(second)}
        shown = {each: set(status[each]["activeStandbyPerQuery"]) for each in status}
        assert shown == {host(first): running_on(first), host(second): running_on(second)}
        for query_id in known:
            [explained] = run(one, f"EXPLAIN {query_id};")
            [place] = explained["queryDescription"]["ksqlHostQueryStatus"]
            assert query_id in shown[place]

    pair.remove(first)
    first.close()
    wait_for(lambda: running_on(second) == known)
    with client(second) as other:
        wait_for(lambda: other.get("/clusterStatus").json()["clusterStatus"].keys() == {host(second)})


def test_both_accept_the_same_name_once(pair: list[RestServer]) -> None:
    first, second = pair
    for _ in range(5):
        made = name("RACE")
        text = f"CREATE STREAM {made} (V INT) WITH (kafka_topic='{made}', format='JSON', partitions=1);"
        with client(first) as one, client(second) as other, ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(refused, each, text) for each in (one, other)]
            assert sorted(answer.result()[0] for answer in answers) == [200, 400]
            assert all(
                [row["name"] for row in run(each, "SHOW STREAMS;")[0]["streams"]].count(made) == 1
                for each in (one, other)
            )


def test_a_pull_query_is_forwarded_to_the_server_that_holds_the_table(pair: list[RestServer]) -> None:
    first, second = pair
    with client(first) as one, client(second) as other:
        source, made = stream(one), name("HELD")
        run(one, f"CREATE TABLE {made} AS SELECT ID, COUNT(*) AS N FROM {source} GROUP BY ID;")
        run(one, f"INSERT INTO {source} VALUES (7, 'x');")
        asked = f"SELECT ID, N FROM {made} WHERE ID = 7;"
        wait_for(lambda: any("row" in each for each in query(one, asked)))
        wait_for(lambda: any("row" in each for each in query(other, asked)))

        # The second one's copy is gone and cannot be read again for now; the first one has told what it holds.
        wait_for(
            lambda: second.server.holder_of(second.server.state.catalogue.sources[made]) == f"http://{host(first)}"
        )
        copies = second.server.copies
        copies.wait_until = lambda *_: False  # type: ignore[method-assign]
        copies.is_complete = lambda _: False  # type: ignore[method-assign]
        assert [each["row"]["columns"] for each in query(other, asked) if "row" in each] == [[7, 1]]
        with pytest.raises(NotHereError):
            second._run(second.server.open_query(QueryRequest(text=asked), may_forward=True))
        headers = {"x-moldau-ksql-forwarded": "true"}
        answer = other.post("/query", json={"ksql": asked}, headers=headers)
        assert (answer.status_code, answer.json()["error_code"]) == (503, 50302)


def test_what_is_no_heartbeat_is_refused(pair: list[RestServer]) -> None:
    with client(pair[0]) as one:
        for path in ("/heartbeat", "/lag"):
            answer = one.post(path, json={"hostInfo": 3})
            assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)
