"""How the bytes of one connection move without blocking: over plain TCP here, over TLS by the same interface.

A transport also owns its place in the event loop. "The socket is readable" and "there are bytes to be had" are the
same for plain TCP, but not for TLS: a handshake reads and writes before the first byte, and a decrypted record may
hold more bytes than one read took. So whoever uses a transport never sees its socket. Start at `Transport`.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Protocol

from moldau.net.session import Session

__all__ = ["ClientTransportFactory", "PlainTransport", "ServerTransportFactory", "Transport", "plain_server_transport"]


class Transport(Protocol):
    """Used on its loop only.

    The three calls that move bytes raise `BlockingIOError` where nothing can be moved right now, and another `OSError`
    (`ssl.SSLError` is one) where the connection is lost: a failed handshake shows as a failed `recv_into`.
    """

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive up to the buffer's size; 0 at the end of the stream."""
        ...

    def send(self, data: bytes | memoryview, flags: int = 0, /) -> int:
        """Take up to all of `data`, and return how much.

        After a `BlockingIOError` the same bytes are offered again. `socket.MSG_MORE` is a hint that more follows.
        """
        ...

    def send_file(self, file_fd: int, position: int, count: int, /) -> int:
        """Take up to `count` bytes of an open file from `position` on; 0 where the file ends there."""
        ...

    def start_reading(self, on_readable: Callable[[], None]) -> None:
        """Call back whenever `recv_into` may have something to say, until `stop_reading`."""
        ...

    def stop_reading(self) -> None: ...

    def start_writing(self, on_writable: Callable[[], None]) -> None:
        """Call back whenever `send` may take something, until `stop_writing`."""
        ...

    def stop_writing(self) -> None: ...

    def close(self) -> None:
        """Close now; neither callback is called again."""
        ...


ServerTransportFactory = Callable[[asyncio.AbstractEventLoop, socket.socket, Session], Transport]
"""For an accepted socket. A transport that learns who the client is writes it into the session."""

ClientTransportFactory = Callable[[asyncio.AbstractEventLoop, socket.socket], Transport]
"""For a socket that has connected."""


class PlainTransport:
    """The socket itself: what moves bytes are its own methods, so that nothing stands between them and their caller."""

    __slots__ = ("_fd", "_loop", "_socket", "recv_into", "send")

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        """Take over a connected, non-blocking socket."""
        self._loop = loop
        self._socket = sock
        self._fd = sock.fileno()
        self.recv_into: Callable[[memoryview], int] = sock.recv_into
        self.send = sock.send

    def send_file(self, file_fd: int, position: int, count: int, /) -> int:
        return os.sendfile(self._fd, file_fd, position, count)

    def start_reading(self, on_readable: Callable[[], None]) -> None:
        self._loop.add_reader(self._fd, on_readable)

    def stop_reading(self) -> None:
        self._loop.remove_reader(self._fd)

    def start_writing(self, on_writable: Callable[[], None]) -> None:
        self._loop.add_writer(self._fd, on_writable)

    def stop_writing(self) -> None:
        self._loop.remove_writer(self._fd)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._socket.close()


def plain_server_transport(loop: asyncio.AbstractEventLoop, sock: socket.socket, _session: Session) -> Transport:
    """On a PLAINTEXT listener nobody learns who the client is."""
    return PlainTransport(loop, sock)
