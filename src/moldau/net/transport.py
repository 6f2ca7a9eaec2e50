"""Non-blocking byte transport of one connection: plain TCP here, TLS behind the same interface.

A transport also registers itself with the event loop. "The socket is readable" and "data is available" are the same
for plain TCP, but not for TLS: a handshake reads and writes before the first byte of data, and a decrypted record may
hold more bytes than one read took. So users of a transport never see its socket. Start at `Transport`.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Callable
from typing import Protocol

from moldau.net.senders import ThreadOutlet
from moldau.net.session import Session

__all__ = ["ClientTransportFactory", "PlainTransport", "ServerTransportFactory", "Transport", "plain_server_transport"]


class Transport(Protocol):
    """Not thread-safe: used on its event loop only.

    The three I/O calls raise `BlockingIOError` if they would block, and another `OSError` (`ssl.SSLError` is one) if
    the connection is lost: a failed handshake is reported by `recv_into`.
    """

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive up to the buffer's size; 0 at the end of the stream."""
        ...

    def send(self, data: bytes | memoryview, flags: int = 0, /) -> int:
        """Send up to all of `data` and return how many bytes were taken.

        After a `BlockingIOError` the caller retries with the same bytes. `socket.MSG_MORE` is a hint that more follows.
        """
        ...

    def send_file(self, file_fd: int, position: int, count: int, /) -> int:
        """Send up to `count` bytes of an open file from `position` on; returns 0 at the end of the file."""
        ...

    def start_reading(self, on_readable: Callable[[], None]) -> None:
        """Call back whenever `recv_into` may have data, an end or an error to return, until `stop_reading`."""
        ...

    def stop_reading(self) -> None: ...

    def start_writing(self, on_writable: Callable[[], None]) -> None:
        """Call back whenever `send` may accept data, until `stop_writing`."""
        ...

    def stop_writing(self) -> None: ...

    def thread_outlet(self) -> ThreadOutlet | None:
        """What a thread may send through in the loop's place; `None` if only the loop can.

        Meanwhile the loop may still receive, call `hang_up`, and nothing else.
        """
        ...

    def limit_send_buffer(self, size_bytes: int) -> None:
        """Have the kernel keep at most about this much for the client; does nothing where that is not possible."""
        ...

    def hang_up(self) -> None:
        """End the connection so that a thread that sends fails at once; neither callback is called again.

        `close` follows when the thread has stopped.
        """
        ...

    def close(self) -> None:
        """Close now; neither callback is called again."""
        ...


ServerTransportFactory = Callable[[asyncio.AbstractEventLoop, socket.socket, Session], Transport]
"""Creates the transport of an accepted socket. One that authenticates the client sets the session's principal."""

ClientTransportFactory = Callable[[asyncio.AbstractEventLoop, socket.socket], Transport]
"""Creates the transport of a connected client socket."""


class PlainTransport:
    """The plain socket: `recv_into` and `send` are the socket's own methods, which saves a call on the hot path."""

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

    def thread_outlet(self) -> ThreadOutlet:
        return self

    def wait_for_room(self, timeout_s: float) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(timeout_s * 1000))

    def limit_send_buffer(self, size_bytes: int) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size_bytes)

    def hang_up(self) -> None:
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the client has gone already

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._socket.close()


def plain_server_transport(loop: asyncio.AbstractEventLoop, sock: socket.socket, _session: Session) -> Transport:
    """For PLAINTEXT listeners, which do not authenticate the client."""
    return PlainTransport(loop, sock)
