"""A server with a handler of the test's choice, and clients to talk to it. Start at `serving`."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.unit.net.tls_transport import plain

from moldau.net.connection import Connection
from moldau.net.limits import Limits
from moldau.net.replies import Handled
from moldau.net.server import Server

__all__ = ["Chosen", "Handler", "Peer", "Setup", "echo", "frame", "run", "serving"]


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


Handler = Callable[[Connection, bytes], Handled]


class Chosen:
    """How the connections of the running test move their bytes."""

    security = plain()


class Peer:
    """The other end: asyncio's streams, so that tests read like a conversation."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, *bodies: bytes) -> list[bytes]:
        self.writer.write(b"".join(frame(body) for body in bodies))
        return [await self.receive() for _ in bodies]

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await asyncio.wait_for(self.reader.readexactly(4), 20))
        return await asyncio.wait_for(self.reader.readexactly(size), 20)


class Setup(NamedTuple):
    server: Server
    connect: Callable[[], asyncio.Future[Peer]]


@asynccontextmanager
async def serving(handler: Handler, **limits: int) -> AsyncIterator[Setup]:
    def handle(connection: Connection, view: memoryview, start: int, end: int) -> Handled:
        return handler(connection, bytes(view[start:end]))

    server = Server(asyncio.get_running_loop(), handle, Limits(**limits))  # type: ignore[arg-type]
    security = Chosen.security
    port = server.listen(security.name, "127.0.0.1", 0, security.server_transport)
    writers: list[asyncio.StreamWriter] = []

    async def connect() -> Peer:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=security.client_context)
        writers.append(writer)
        return Peer(reader, writer)

    try:
        yield Setup(server, connect)  # type: ignore[arg-type]
    finally:
        server.close()
        for writer in writers:
            writer.close()
            try:
                await writer.wait_closed()
            except ConnectionError:
                pass


def echo(connection: Connection, body: bytes) -> Handled:
    return frame(b"echo " + body)


def run(test: Callable[[], object]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]
