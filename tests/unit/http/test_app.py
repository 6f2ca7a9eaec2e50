from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount
from starlette.testclient import TestClient

from moldau.http.answer_cache import AnswerCache, CachedAnswer
from moldau.http.app import HttpApp
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.errors import HttpError
from moldau.http.metrics import HttpMetrics
from moldau.http.negotiation import MediaTypes


async def echo(call: Call) -> Answer:
    return Answer({"part": call.parts["part"], "flag": call.flag("flag"), "number": call.number("number", 7)})


async def fail(_call: Call) -> Answer:
    raise ZeroDivisionError("secret")


def render_error(error: Exception) -> Answer:
    status = error.status if isinstance(error, HttpError) else 500
    return Answer({"status": status}, status=status)


METRICS = HttpMetrics("test", lambda: {"things": 3})
APP = HttpApp(
    [
        Endpoint(method="GET", path="/echo/{part}", handle=echo, summary=""),
        Endpoint(method="GET", path="/fail", handle=fail, summary=""),
    ],
    media_types=MediaTypes(produced={"application/json": 1.0}, consumed=frozenset({"application/json"})),
    render_error=render_error,
    metrics=METRICS,
)


@pytest.mark.parametrize("base", ["", "/deep/down"])
def test_an_app_works_alone_and_mounted(base: str) -> None:
    app = Starlette(routes=[Mount(base, APP)]) if base else APP
    client = TestClient(app)
    answer = client.get(f"{base}/echo/a%2Fb?flag=TRUE&number=-3")
    assert answer.json() == {"part": "a/b", "flag": True, "number": -3}
    assert client.get(f"{base}/echo/x").json() == {"part": "x", "flag": False, "number": 7}


@pytest.mark.parametrize("text", ["x", "1.0", "99999999999", "2147483648", "１"])
def test_a_number_that_is_none_makes_no_resource(text: str) -> None:
    assert TestClient(APP).get("/echo/x", params={"number": text}).status_code == 404


def test_an_unexpected_error_is_rendered_and_its_text_stays_inside() -> None:
    answer = TestClient(APP).get("/fail")
    assert (answer.status_code, answer.json()) == (500, {"status": 500})


def test_numbers_are_kept_by_path_and_status() -> None:
    TestClient(APP).get("/fail")
    text = METRICS.render()
    assert 'test_http_requests_total{method="GET",path="/fail",status="500"}' in text
    assert 'test_http_request_seconds_bucket{method="GET",path="/fail",le="+Inf"}' in text
    assert "# TYPE test_things gauge\ntest_things 3\n" in text
    assert "process_resident_memory_bytes" in text


class Remembering:
    """An endpoint that counts how often it is asked, of a state that counts its changes."""

    def __init__(self) -> None:
        self.asked = 0
        self.state = 0
        self.status = 200
        self.app = HttpApp(
            [
                Endpoint(
                    method=method,
                    path="/it",
                    handle=self.answer,
                    summary="",
                    body={} if method == "POST" else None,
                    state_token=lambda: self.state,
                )
                for method in ("GET", "POST")
            ],
            media_types=MediaTypes(produced={"a/a": 1.0, "b/b": 0.5}, consumed=frozenset({"application/json"})),
            render_error=render_error,
        )
        self.client = TestClient(self.app)

    async def answer(self, _call: Call) -> Answer:
        self.asked += 1
        return Answer(self.asked, status=self.status)


def test_the_same_request_is_answered_from_memory_until_something_changes() -> None:
    it = Remembering()
    assert [it.client.get("/it").json() for _ in range(3)] == [1, 1, 1]
    assert it.client.get("/it?x=1").json() == 2
    assert it.client.get("/it", headers={"accept": "b/b"}).headers["content-type"] == "b/b"
    it.state += 1
    assert [it.client.get("/it").json() for _ in range(2)] == [4, 4]
    assert it.client.head("/it").status_code == 200


def test_bodies_tell_requests_apart() -> None:
    it = Remembering()
    assert [it.client.post("/it", json=body).json() for body in (1, 1, 2, 1)] == [1, 1, 2, 1]


def test_long_queries_count_as_memory_too() -> None:
    it = Remembering()
    for number in range(3):
        it.client.get(f"/it?{number}{'x' * 30_000}")
    assert it.app._cache._bytes > 90_000


def test_one_path_has_a_handler_for_each_type_and_refuses_in_the_services_shape() -> None:
    def row(name: str, consumed: str, produced: str) -> Endpoint:
        async def handle(call: Call) -> Answer:
            return Answer([name, await call.document()])

        types = MediaTypes({produced: 1.0}, frozenset({consumed}))
        return Endpoint(method="POST", path="/topics/{topic}", handle=handle, summary="", body={}, media_types=types)

    v1, v2 = "application/vnd.kafka.v1+json", "application/vnd.kafka.v2+json"
    app = HttpApp(
        [row("v1", v1, v1), row("avro", "application/vnd.kafka.avro.v2+json", v2), row("json", "a/json", v2)],
        media_types=MediaTypes.of("application/json"),
        render_error=render_error,
    )
    client = TestClient(app)

    def post(content_type: str, accept: str = "*/*") -> tuple[int, object, str]:
        answer = client.post("/topics/t", content="1", headers={"content-type": content_type, "accept": accept})
        return answer.status_code, answer.json(), answer.headers["content-type"]

    assert post(v1) == (200, ["v1", 1], v1)
    assert post("application/vnd.kafka.avro.v2+json") == (200, ["avro", 1], v2)
    assert post("a/json", f"{v2}, {v1};q=0.5") == (200, ["json", 1], v2)
    assert post(v2) == (415, {"status": 415}, "application/json")
    assert post("a/json", v1) == (406, {"status": 406}, "application/json")


def test_what_changed_something_and_what_was_refused_is_asked_again() -> None:
    it = Remembering()
    it.status = 404
    assert [it.client.get("/it").json() for _ in range(2)] == [1, 2]
    it.status = 200

    async def change(_call: Call) -> Answer:
        it.state += 1
        return Answer(it.state)

    it.app = HttpApp(
        [Endpoint(method="GET", path="/it", handle=change, summary="", state_token=lambda: it.state)],
        media_types=MediaTypes(produced={"a/a": 1.0}, consumed=frozenset()),
        render_error=render_error,
    )
    client = TestClient(it.app)
    assert [client.get("/it").json() for _ in range(2)] == [1, 2]


def test_a_stream_is_not_remembered() -> None:
    async def count(_call: Call) -> Answer:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"piece"

        return Answer(stream=pieces())

    app = HttpApp(
        [Endpoint(method="GET", path="/", handle=count, summary="", state_token=lambda: 1)],
        media_types=MediaTypes.of("a/a"),
        render_error=render_error,
    )
    assert [TestClient(app).get("/").text for _ in range(2)] == ["piece", "piece"]


def test_memory_for_answers_has_an_end() -> None:
    answers = AnswerCache()
    for number in range(500):
        answers.store(number, CachedAnswer(1, Response(b"")), 200_000)
    assert answers.find(499, 1) is not None
    assert answers.find(0, 1) is None
    answers.store("large", CachedAnswer(1, Response(b"")), 300_000)
    assert answers.find("large", 1) is None
