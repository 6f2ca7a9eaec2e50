"""WebSockets through a real server, with a client that nobody here wrote."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from socket import SHUT_RDWR

import pytest
from tests.unit.http.servers import PATIENCE_S, Running, Source, app_of, serving
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from moldau.core.errors import MoldauError
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint, WebSocketEndpoint
from moldau.http.errors import HttpError
from moldau.http.metrics import HttpMetrics
from moldau.http.sockets import Socket

METRICS = HttpMetrics("test")
source = Source()


async def echo(socket: Socket) -> None:
    await socket.accept()
    async for message in socket:
        await (socket.send_text(message) if isinstance(message, str) else socket.send_bytes(message))


async def refuse(_socket: Socket) -> None:
    raise HttpError(409, "already taken")


async def fail(socket: Socket) -> None:
    await socket.accept()
    raise {"http": HttpError(422, "é" * 200), "ours": MoldauError("no"), "bug": ZeroDivisionError("secret")}[
        socket.parts["how"]
    ]


async def push(socket: Socket) -> None:
    await socket.accept()

    async def texts() -> AsyncIterator[str]:
        async for piece in source.pieces():
            yield piece.decode()

    await socket.send_all(texts())


async def wait_for_ever(socket: Socket) -> None:
    await socket.accept()
    await socket.send_document({"waits": True})
    await asyncio.Event().wait()


async def hello(_call: Call) -> Answer:
    return Answer("hello")


def app(**options: object) -> object:
    paths = {"/echo/{room}": echo, "/refuse": refuse, "/fail/{how}": fail, "/push": push, "/wait": wait_for_ever}
    rows = [
        WebSocketEndpoint(path=path, handle=handle, summary="", allowed_origins=frozenset({"https://ok.example"}))
        for path, handle in paths.items()
    ]
    return app_of(*rows, Endpoint(method="GET", path="/http", handle=hello, summary=""), metrics=METRICS, **options)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving(app(), max_message_bytes=1000, drain_s=600) as running:  # type: ignore[arg-type]
        yield running


def opened(server: Running, path: str, **options: object) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{server.port}{path}", open_timeout=PATIENCE_S, **options)  # type: ignore[arg-type]


def test_text_and_binary_come_back_as_they_were_sent(server: Running) -> None:
    with opened(server, "/echo/a%2Fb") as client:
        for message in ("text", b"binary", "", "ü" * 100):
            client.send(message)
            assert client.recv(PATIENCE_S) == message
        assert client.ping().wait(PATIENCE_S), "pings are answered"
    assert 'path="/echo/{room}",status="101"' in METRICS.render()


def test_all_that_was_sent_before_a_close_is_handled(server: Running) -> None:
    with opened(server, "/echo/x") as client:
        for number in range(50):
            client.send(str(number))
        assert [client.recv(PATIENCE_S) for _ in range(50)] == [str(number) for number in range(50)]


def test_a_message_over_the_limit_closes_the_connection(server: Running) -> None:
    with opened(server, "/echo/x") as client:
        client.send("x" * 1001)
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(PATIENCE_S)
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1009


def test_a_message_may_come_in_fragments_but_not_in_endless_ones(server: Running) -> None:
    with opened(server, "/echo/x") as client:
        client.send(["a", "", "b"])
        assert client.recv(PATIENCE_S) == "ab"
        with contextlib.suppress(ConnectionClosed):
            client.send([""] * 5000)
        with pytest.raises(ConnectionClosed) as caught:
            client.recv(PATIENCE_S)
    # What was still on its way may have made the kernel reset the connection before the reason was read.
    assert caught.value.rcvd is None or caught.value.rcvd.code == 1009


@pytest.mark.parametrize(("path", "status"), [("/refuse", 409), ("/nothing", 404), ("/http", 404)])
def test_a_refusal_before_the_handshake_is_an_answer_in_the_services_shape(
    server: Running, path: str, status: int
) -> None:
    with pytest.raises(InvalidStatus) as caught, opened(server, path):
        pass
    response = caught.value.response
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert json.loads(response.body)["error_code"] == status


@pytest.mark.parametrize(("how", "code", "reason"), [("http", 1008, "é" * 61), ("ours", 1011, ""), ("bug", 1011, "")])
def test_an_error_after_the_handshake_closes_with_its_code(server: Running, how: str, code: int, reason: str) -> None:
    with opened(server, f"/fail/{how}") as client, pytest.raises(ConnectionClosed) as caught:
        client.recv(PATIENCE_S)
    assert caught.value.rcvd is not None
    assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (code, reason)


def test_a_plain_request_to_a_socket_is_told_to_upgrade(server: Running) -> None:
    with server.connect() as client:
        client.request("GET", "/wait")
        status, headers = client.head()
        assert (status, headers["upgrade"]) == (426, "websocket")
    with server.connect() as client:
        client.request("POST", "/wait")
        assert client.head()[0] == 405


@pytest.mark.parametrize(
    "headers",
    [
        ("connection: upgrade", "upgrade: websocket"),
        ("connection: upgrade", "upgrade: websocket", "sec-websocket-version: 7", "sec-websocket-key: x"),
        ("connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: short"),
    ],
)
def test_a_bad_handshake_is_refused(server: Running, headers: tuple[str, ...]) -> None:
    with server.connect() as client:
        client.request("GET", "/echo/x", *headers)
        assert client.head()[0] in (400, 426)


def test_an_upgrade_to_something_else_is_answered_as_a_plain_request(server: Running) -> None:
    with server.connect() as client:
        client.request("GET", "/http", "connection: upgrade", "upgrade: h2c")
        assert client.head()[0] == 200


@pytest.mark.parametrize(("origin", "is_welcome"), [("https://ok.example", True), ("https://evil.example", False)])
def test_pages_of_other_sites_may_not_connect(server: Running, origin: str, is_welcome: bool) -> None:
    if is_welcome:
        for one in (origin, f"http://127.0.0.1:{server.port}"):
            with opened(server, "/echo/x", origin=one) as client:
                assert client.ping().wait(PATIENCE_S)
        return
    with pytest.raises(InvalidStatus) as caught, opened(server, "/echo/x", origin=origin):
        pass
    assert caught.value.response.status_code == 403


def test_a_client_that_goes_away_closes_what_is_pushed_to_it(server: Running) -> None:
    with opened(server, "/push") as client:
        source.give(b"one")
        assert client.recv(PATIENCE_S) == "one"
        client.send("ignored")
    assert source.closed.wait(PATIENCE_S)


def test_a_client_that_disappears_without_a_word_closes_what_is_pushed_to_it() -> None:
    mine = Source()

    async def handle(socket: Socket) -> None:
        await socket.accept()
        await socket.send_all(mine.pieces())

    endpoint = WebSocketEndpoint(path="/", handle=handle, summary="")
    with serving(app_of(endpoint)) as server, opened(server, "/") as client:
        mine.give(b"one")
        assert client.recv(PATIENCE_S) == b"one"
        client.socket.shutdown(SHUT_RDWR)
        assert mine.closed.wait(PATIENCE_S)


def test_a_server_that_stops_closes_its_sockets_at_once() -> None:
    is_cancelled = threading.Event()

    async def handle(socket: Socket) -> None:
        try:
            await wait_for_ever(socket)
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    with serving(app_of(WebSocketEndpoint(path="/", handle=handle, summary="")), drain_s=600) as server:
        with opened(server, "/") as client:
            assert json.loads(client.recv(PATIENCE_S)) == {"waits": True}
            server.stop()
            with pytest.raises(ConnectionClosed) as caught:
                client.recv(PATIENCE_S)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1001
        assert is_cancelled.is_set()
