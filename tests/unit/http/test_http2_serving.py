"""One port speaks HTTP/1.1, HTTP/2 and WebSocket, streams both ways, and ends in order."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import websockets
from tests.unit.http.example_service import app
from tests.unit.http.test_tls import Authority

from moldau.core.errors import StartupError
from moldau.http.http2_serving import Http2Server
from moldau.http.tls import TlsFiles, server_context

AUTH = ("alice", "secret")


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Http2Server]:
    server = Http2Server(host="127.0.0.1", drain_s=1, tls=tls)
    await server.start(app)
    try:
        yield server
    finally:
        await server.stop()


def client_for(server: Http2Server, *, is_http2: bool) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{server.port}", http1=not is_http2, http2=is_http2, auth=AUTH, timeout=20
    )


@pytest.mark.parametrize("is_http2", [False, True])
def test_requests_are_answered_in_both_versions(is_http2: bool) -> None:
    async def story() -> None:
        async with serving() as server, client_for(server, is_http2=is_http2) as client:
            answer = await client.get("/greetings/ann")
            assert answer.http_version == ("HTTP/2" if is_http2 else "HTTP/1.1")
            assert answer.json()["hello"] == "ann"
            assert (await client.get("/nothing")).status_code == 404

    asyncio.run(story())


@pytest.mark.parametrize("is_http2", [False, True])
def test_a_body_is_answered_while_it_is_sent(is_http2: bool) -> None:
    async def story() -> None:
        async with serving() as server, client_for(server, is_http2=is_http2) as client:

            async def numbers() -> AsyncIterator[bytes]:
                for number in range(3):
                    yield b'{"n": %d}\n' % number

            async with client.stream("POST", "/doubles", content=numbers()) as answer:
                lines = [line async for line in answer.aiter_lines()]
        assert lines == ['{"twice":0}', '{"twice":2}', '{"twice":4}']

    asyncio.run(story())


def test_a_websocket_on_the_same_port() -> None:
    async def story() -> str:
        async with serving() as server:
            request = next(httpx.BasicAuth(*AUTH).auth_flow(httpx.Request("GET", "http://x")))
            headers = {"Authorization": request.headers["Authorization"]}
            url = f"ws://127.0.0.1:{server.port}/echo"
            async with websockets.connect(url, additional_headers=headers) as connection:
                await connection.send("hi")
                return str(await connection.recv())

    assert asyncio.run(story()) == "you said 'hi'"


def test_tls_offers_http2(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("localhost")

    async def story() -> str:
        trust = ssl.create_default_context(cafile=str(authority.certificate))
        async with (
            serving(server_context(TlsFiles(certificate, key))) as server,
            httpx.AsyncClient(http2=True, verify=trust, auth=AUTH, timeout=20) as client,
        ):
            return (await client.get(f"https://localhost:{server.port}/greetings/ann")).http_version

    assert asyncio.run(story()) == "HTTP/2"


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            Http2Server(host="127.0.0.1", port=port).bind()


def test_the_same_port_can_be_taken_again_at_once() -> None:
    async def story() -> None:
        async with serving() as server:
            port = server.port
        again = Http2Server(host="127.0.0.1", port=port)
        again.bind()
        await again.start(app)
        await again.stop()

    asyncio.run(story())
