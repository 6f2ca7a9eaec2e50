from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import time

import pytest
from tests.unit.http.servers import serving

from moldau.core.errors import StartupError
from moldau.http import serving as serving_module
from moldau.http.app import HttpApp
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.negotiation import MediaTypes
from moldau.http.serving import HttpServer


def app_of(handle: object) -> HttpApp:
    return HttpApp(
        [Endpoint(method="GET", path="/", handle=handle, summary="")],  # type: ignore[arg-type]
        media_types=MediaTypes(produced={"application/json": 1.0}, consumed=frozenset()),
        render_error=lambda error: Answer(status=500),
    )


def fetched(port: int) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_free_port_is_known_before_requests_are_answered() -> None:
    async def hello(_call: Call) -> Answer:
        return Answer("hello")

    async def story() -> tuple[int, bytes]:
        server = HttpServer(host="127.0.0.1")
        server.bind()
        port = server.port
        await server.start(app_of(hello))
        try:
            return await asyncio.to_thread(fetched, port)
        finally:
            await server.stop()

    assert asyncio.run(story()) == (200, b'"hello"')


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            HttpServer(host="127.0.0.1", port=port).bind()


def test_a_request_under_way_is_finished_before_the_end() -> None:
    async def story() -> tuple[int, bytes]:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(_call: Call) -> Answer:
            begun.set()
            await may_end.wait()
            return Answer("done")

        server = HttpServer(host="127.0.0.1")
        await server.start(app_of(slow))
        request = asyncio.create_task(asyncio.to_thread(fetched, server.port))
        await begun.wait()
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        may_end.set()
        answer = await request
        await stopping
        return answer

    assert asyncio.run(story()) == (200, b'"done"')


def test_a_request_that_does_not_end_is_answered_before_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> tuple[int, bytes]:
        begun = asyncio.Event()

        async def endless(_call: Call) -> Answer:
            begun.set()
            await asyncio.Event().wait()
            return Answer()

        server = HttpServer(host="127.0.0.1", drain_s=0)
        await server.start(app_of(endless))
        request = asyncio.create_task(asyncio.to_thread(fetched, server.port))
        await begun.wait()
        await server.stop()
        return await request

    assert asyncio.run(story())[0] == 500, "rendered by the service, as everything else that goes wrong"
    assert not [record for record in caplog.records if record.exc_info]


# Limits that uvicorn does not have


def echo_app() -> HttpApp:
    async def hello(_call: Call) -> Answer:
        return Answer("hello")

    return app_of(hello)


def test_a_head_without_end_is_cut_off() -> None:
    with serving(echo_app()) as server, server.connect() as client:
        client.send("GET / HTTP/1.1\r\nhost: x\r\nx-long: ")
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 64 << 20:
                client.send("x" * 65536)
                sent += 65536
        assert sent < 16 << 20, "what was on its way when the server closed"


def test_a_head_that_is_a_bit_long_is_fine_and_one_too_long_is_told() -> None:
    with serving(echo_app()) as server:
        with server.connect() as client:
            client.request("GET", "/", "x-long: " + "x" * 30_000)
            assert client.head()[0] == 200
        with server.connect() as client:
            client.send("GET / HTTP/1.1\r\nx-long: " + "x" * serving_module.MAX_HEAD_BYTES)
            client.send("x" * 1000)
            assert client.head()[0] == 431


def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "HEAD_TIMEOUT_S", 0.1)
    with serving(echo_app()) as server, server.connect() as client:
        client.request("GET", "/")
        assert client.head()[0] == 200
        assert client.read(7) == b'"hello"'
        client.send("GET / HTTP/1.1\r\nhost")
        assert client.read() == b""


def test_a_client_that_goes_on_sending_after_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "LINGER_S", 0.1)
    with serving(echo_app()) as server, server.connect() as client:
        client.request("GET", "/", "transfer-encoding: chunked")
        client.send_chunk(b"part")
        assert client.head()[0] == 200
        assert client.read() == b'"hello"', "and then the end of the connection"


def test_a_connection_that_is_silent_after_a_late_body_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "IDLE_S", 0.5)
    with serving(echo_app()) as server, server.connect() as client:
        client.request("GET", "/", "content-length: 4")
        assert client.head()[0] == 200
        client.send(b"late")
        assert client.read() == b'"hello"'


def test_a_connection_goes_on_after_a_body_that_nobody_read() -> None:
    with serving(echo_app()) as server, server.connect() as client:
        for _ in range(3):
            client.request("GET", "/", "content-length: 4")
            client.send(b"body")
            assert client.head()[0] == 200
            assert client.read(7) == b'"hello"'


def test_many_requests_at_once_on_one_connection_are_answered_in_order() -> None:
    with serving(echo_app()) as server, server.connect() as client:
        client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 500)
        for _ in range(500):
            assert client.head()[0] == 200
            assert client.read(7) == b'"hello"'


@pytest.mark.parametrize("header", ["upgrade: h2c", "Upgrade:h2c ", "UPGRADE: H2C"])
def test_a_client_that_offers_http2_keeps_its_body_and_its_connection(header: str) -> None:
    async def length(call: Call) -> Answer:
        return Answer(len(await call.content()))

    app = HttpApp(
        [Endpoint(method="POST", path="/", handle=length, summary="", body={})],
        media_types=MediaTypes.of("application/json"),
        render_error=lambda error: Answer(status=500),
    )
    offer = ("connection: Upgrade, HTTP2-Settings", header, "http2-settings: AAEAAEAAAAIAAAAB")
    with serving(app) as server, server.connect() as client:
        for headers in (offer, offer, (), offer):
            client.request("POST", "/", "content-length: 5", *headers)
            client.send(b"12345")
            assert client.head()[0] == 200
            assert client.read(1) == b"5"


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 40_000, b"a" * 250_000, b"\r\n" * 100_000])
def test_looking_for_an_offer_costs_no_more_than_the_bytes(head: bytes) -> None:
    began = time.process_time()
    assert serving_module._HTTP2_OFFER.search(head) is None
    assert time.process_time() - began < 5
