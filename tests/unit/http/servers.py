"""A real server on a free port, in a thread with a loop of its own, and raw connections to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from starlette.types import ASGIApp

from moldau.http.app import HttpApp
from moldau.http.calls import Answer
from moldau.http.endpoints import AnyEndpoint
from moldau.http.negotiation import JSON, MediaTypes
from moldau.http.service import render_error_code
from moldau.http.serving import HttpServer

PATIENCE_S = 20.0
T = TypeVar("T")


class Running:
    def __init__(self, server: HttpServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self.port = server.port

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something on the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def stop(self) -> None:
        self.run(self._server.stop())

    def connect(self, tls: ssl.SSLContext | None = None) -> Connection:
        return Connection(self.port, tls)


class Connection:
    """Bytes as they are, and no more of HTTP than a chunk's size."""

    def __init__(self, port: int, tls: ssl.SSLContext | None) -> None:
        raw = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket = raw if tls is None else tls.wrap_socket(raw, server_hostname="localhost")
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def send(self, text: str | bytes) -> None:
        self.socket.sendall(text.encode() if isinstance(text, str) else text)

    def request(self, method: str, path: str, *headers: str) -> None:
        self.send("\r\n".join([f"{method} {path} HTTP/1.1", "host: localhost", *headers, "", ""]))

    def send_chunk(self, content: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(content), content))

    def head(self) -> tuple[int, dict[str, str]]:
        first = self._file.readline()
        if not first:
            raise ConnectionResetError("closed without an answer")
        status = int(first.split(b" ")[1])
        headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers

    def chunk(self) -> bytes:
        """The next chunk of a body; empty at its end, `ConnectionError` if the connection ends before."""
        line = self._file.readline()
        if not line:
            raise ConnectionResetError("cut in the middle of a body")
        content = self._file.read(int(line, 16))
        self._file.readline()
        return content

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)


@contextlib.contextmanager
def serving(app: ASGIApp, **options: Any) -> Iterator[Running]:
    """Serve `app` until the end of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = HttpServer(host="127.0.0.1", **{"drain_s": 5, **options})
    asyncio.run_coroutine_threadsafe(server.start(app), loop).result(PATIENCE_S)
    try:
        yield Running(server, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


def app_of(*endpoints: AnyEndpoint, media_types: MediaTypes = JSON, **options: Any) -> HttpApp:
    return HttpApp(endpoints, media_types=media_types, render_error=render_error_code, **options)


class Source:
    """A stream that gives what a test tells it to, and knows what became of it."""

    def __init__(self) -> None:
        self.begun, self.closed = threading.Event(), threading.Event()
        self.given = 0
        self._queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._loop: asyncio.AbstractEventLoop | None = None

    def give(self, piece: bytes | Exception | None) -> None:
        """Hand over a piece, an error, or `None` for the end."""
        assert self.begun.wait(PATIENCE_S)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._queue.put_nowait, piece)

    async def pieces(self) -> AsyncIterator[bytes]:
        self._loop = asyncio.get_running_loop()
        self.begun.set()
        try:
            while (piece := await self._queue.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                self.given += 1
                yield piece
        finally:
            self.closed.set()

    def handler(self, **answer: Any) -> Callable[[Any], Coroutine[Any, Any, Answer]]:
        async def handle(_call: Any) -> Answer:
            return Answer(stream=self.pieces(), **answer)

        return handle
