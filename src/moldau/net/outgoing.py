"""Output on its way to one client: bytes and ranges of files, in order.

Sent by the loop or, for large replies of several readers at once, by a thread (`net.senders`); never by both at once.
Start at `Outgoing.send`.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Final, Protocol

from moldau.net.replies import FileRange, FileReply

__all__ = ["SEND_SHARE_BYTES", "Outgoing", "Outlet"]

SEND_SHARE_BYTES: Final = 2 * 1024 * 1024
"""The most that one call sends, so that one large reader does not delay the others."""


class Outlet(Protocol):
    """What output leaves through; see `net.transport.Transport`."""

    def send(self, data: bytes | memoryview, flags: int = 0, /) -> int: ...

    def send_file(self, file_fd: int, position: int, count: int, /) -> int: ...


class _Sending:
    """A file range on its way out."""

    __slots__ = ("fd", "file", "left", "position")

    def __init__(self, file_range: FileRange) -> None:
        self.file = file_range.file
        self.fd = self.file.fileno()
        self.position = file_range.position
        self.left = file_range.length


class Outgoing:
    __slots__ = ("_parts", "is_cold", "size")

    def __init__(self) -> None:
        self._parts: deque[bytes | memoryview | _Sending] = deque()
        self.size = 0
        """Bytes not sent yet."""
        self.is_cold = False
        """Whether sending may have to wait for the disk."""

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, data: bytes | memoryview) -> None:
        self._parts.append(data)
        self.size += len(data)

    def add_reply(self, reply: FileReply) -> None:
        for part in reply.parts:
            self._parts.append(part if isinstance(part, bytes) else _Sending(part))
        self.size += reply.size
        self.is_cold |= reply.is_cold

    def append_all(self, later: Outgoing) -> None:
        """Continue with what `later` holds."""
        self.is_cold = later.is_cold or (self.is_cold and bool(self._parts))
        self._parts += later._parts
        self.size += later.size

    def clear(self) -> None:
        self._parts.clear()
        self.size = 0

    def send(self, outlet: Outlet) -> bool:
        """Send until all is sent or this call's share is; raises `BlockingIOError` if the socket takes no more.

        `size` tells afterwards, in any case, how much is left. Returns whether nothing is.
        """
        parts, enough = self._parts, self.size - SEND_SHARE_BYTES
        while parts and self.size > enough:
            part = parts[0]
            if isinstance(part, _Sending):
                self._send_file(outlet, part)
            else:
                self._send_bytes(outlet, part)
        if parts:
            return False
        self.is_cold = False
        return True

    def _send_bytes(self, outlet: Outlet, data: bytes | memoryview) -> None:
        sent = outlet.send(data, socket.MSG_MORE if len(self._parts) > 1 else 0)
        if sent == len(data):
            self._parts.popleft()
        else:
            self._parts[0] = memoryview(data)[sent:]
        self.size -= sent

    def _send_file(self, outlet: Outlet, sending: _Sending) -> None:
        sent = outlet.send_file(sending.fd, sending.position, min(sending.left, SEND_SHARE_BYTES))
        if not sent:
            raise OSError("a log file is shorter than the range that was to be sent")
        sending.position += sent
        sending.left -= sent
        if not sending.left:
            self._parts.popleft()
        self.size -= sent
