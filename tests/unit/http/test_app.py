from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

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


def word(error: Exception) -> Answer:
    status = error.status if isinstance(error, HttpError) else 500
    return Answer({"status": status}, status=status)


METRICS = HttpMetrics("test", lambda: {"things": 3})
APP = HttpApp(
    [
        Endpoint(method="GET", path="/echo/{part}", handle=echo, summary=""),
        Endpoint(method="GET", path="/fail", handle=fail, summary=""),
    ],
    media_types=MediaTypes(produced={"application/json": 1.0}, consumed=frozenset({"application/json"})),
    word_error=word,
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


def test_an_unforeseen_error_is_worded_and_its_text_stays_inside() -> None:
    answer = TestClient(APP).get("/fail")
    assert (answer.status_code, answer.json()) == (500, {"status": 500})


def test_numbers_are_kept_by_path_and_status() -> None:
    TestClient(APP).get("/fail")
    text = METRICS.render()
    assert 'test_http_requests_total{method="GET",path="/fail",status="500"}' in text
    assert 'test_http_request_seconds_bucket{method="GET",path="/fail",le="+Inf"}' in text
    assert text.endswith("# TYPE test_things gauge\ntest_things 3\n")
