"""The example service of docs/http-kit.md does all it says, and `build_app` gives what every service has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient
from tests.unit.http import example_service
from tests.unit.http.servers import Running, serving
from websockets.sync.client import connect

from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.negotiation import MediaTypes
from moldau.http.service import build_app

ALICE = ("alice", "secret")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving(example_service.app) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", auth=ALICE) as client:
        yield client


def test_json(client: httpx.Client) -> None:
    assert client.get("/greetings/Ada").json() == {"hello": "Ada", "from": "User:alice"}


def test_streams(client: httpx.Client) -> None:
    sent = (b'{"n":%d}' % number for number in range(3))
    answer = client.post("/doubles", content=sent)
    assert [json.loads(line) for line in answer.text.splitlines()] == [{"twice": number * 2} for number in range(3)]


def test_events(client: httpx.Client) -> None:
    for accepted in ("*/*", "text/event-stream"):  # the second is what a browser sends
        answer = client.get("/ticks", headers={"last-event-id": "2", "accept": accepted})
        assert (answer.status_code, answer.text) == (200, "id: 3\ndata: tick 3\n\n")


def test_socket(server: Running) -> None:
    url = f"ws://127.0.0.1:{server.port}/echo"
    with connect(url, additional_headers={"authorization": "Basic YWxpY2U6c2VjcmV0"}) as socket:
        socket.send("hello")
        assert socket.recv(10) == "you said 'hello'"


def test_authentication_health_metrics_and_openapi(client: httpx.Client) -> None:
    assert client.get("/greetings/Ada", auth=("eve", "x")).json()["error_code"] == 401
    assert client.get("/healthz", auth=httpx.Auth()).json() == {"healthy": True}
    assert client.get("/readyz", auth=httpx.Auth()).status_code == 200
    assert 'example_http_requests_total{method="GET",path="/greetings/{name}"' in client.get("/metrics").text
    paths = client.get("/openapi.json").json()["paths"]
    assert paths.keys() == {"/greetings/{name}", "/doubles", "/ticks", "/echo", "/healthz", "/readyz", "/metrics"}


def test_the_page_shows_the_example_as_it_is_and_it_is_short() -> None:
    code = Path(example_service.__file__).read_text()
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 40
    page = (Path(__file__).parents[3] / "docs" / "http-kit.md").read_text()
    assert code[code.index("async def authenticate") :] in page


# What every service has


async def ask(_call: Call) -> Answer:
    return Answer({})


def test_an_unhealthy_service_says_so_and_its_own_rows_come_first() -> None:
    async def own(_call: Call) -> Answer:
        return Answer(content=b"own", media_type="text/plain")

    row = Endpoint(method="GET", path="/metrics", handle=own, summary="")
    client = TestClient(build_app([row], title="t", health=lambda: {"healthy": False, "why": "no leader"}))
    assert client.get("/metrics").text == "own"
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (503, {"healthy": False, "why": "no leader"})


def test_probes_and_scrapers_are_answered_whatever_they_accept() -> None:
    client = TestClient(build_app([], title="t"))
    for path in ("/healthz", "/metrics", "/openapi.json"):
        assert client.get(path, headers={"accept": "image/png"}).status_code == 200


def test_rows_of_one_path_are_one_operation_with_all_content_types() -> None:
    def row(*media_types: str) -> Endpoint:
        types = MediaTypes.of(*media_types)
        return Endpoint(
            method="POST",
            path="/x",
            handle=ask,
            summary="",
            body={},
            reply={"title": media_types[0]},
            media_types=types,
        )

    client = TestClient(build_app([row("a/one"), row("a/two", "a/one")], title="t"))
    operation = client.get("/openapi.json").json()["paths"]["/x"]["post"]
    assert operation["requestBody"]["content"].keys() == {"a/one", "a/two"}
    content = operation["responses"]["200"]["content"]
    assert {name: form["schema"]["title"] for name, form in content.items()} == {"a/one": "a/one", "a/two": "a/two"}


def test_an_unexpected_error_tells_nothing_of_its_text() -> None:
    async def fail(_call: Call) -> Answer:
        raise ZeroDivisionError("secret")

    answer = TestClient(build_app([Endpoint(method="GET", path="/", handle=fail, summary="")], title="t")).get("/")
    assert answer.status_code == 500
    assert "secret" not in answer.text
