from __future__ import annotations

import asyncio
import http.client
import socket

import pytest

from moldau.core.errors import StartupError
from moldau.http.app import HttpApp
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.negotiation import MediaTypes
from moldau.http.serving import HttpServer


def app_of(handle: object) -> HttpApp:
    return HttpApp(
        [Endpoint(method="GET", path="/", handle=handle, summary="")],  # type: ignore[arg-type]
        media_types=MediaTypes(produced={"application/json": 1.0}, consumed=frozenset()),
        word_error=lambda error: Answer(status=500),
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

    assert asyncio.run(story())[0] == 500, "worded by the service, as everything else that goes wrong"
    assert not [record for record in caplog.records if record.exc_info]
