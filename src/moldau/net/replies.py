"""What a request handler returns to its connection.

Most replies are whole frames as `bytes`. A `FileReply` also names ranges of files, which go from the
page cache to the socket without being copied into this process. A `ReplySlot` keeps a reply's place in the order
until it is ready. Start at `ReplySlot`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from moldau.net.connection import Connection

__all__ = ["CloseConnectionError", "FileRange", "FileReply", "Handled", "ReplySlot"]


class CloseConnectionError(Exception):
    """The connection has to be closed; the message is the reason that is logged."""


class OpenFile(Protocol):
    def fileno(self) -> int: ...


class FileRange(Protocol):
    """Bytes of an open file; the file stays open and unchanged while this object is referenced."""

    @property
    def file(self) -> OpenFile: ...
    @property
    def position(self) -> int: ...
    @property
    def length(self) -> int: ...


class FileReply:
    """A frame made of bytes and file ranges, in the order in which they leave."""

    __slots__ = ("is_cold", "parts", "size")

    def __init__(self, parts: list[bytes | FileRange], size: int, *, is_cold: bool = False) -> None:
        self.parts = parts
        self.size = size
        """Bytes on the wire, the four of the length included."""
        self.is_cold = is_cold
        """Whether it had to be read from disk just now, so that sending it may still have to wait for some of it."""

    def __len__(self) -> int:
        return self.size


class ReplySlot:
    """A reply's place in the order of a connection's replies.

    With `holds_back` the connection handles no further request until the slot is complete, as with a waiting
    fetch; without it later requests are handled meanwhile and only their replies wait.
    """

    __slots__ = ("connection", "holds_back", "is_complete", "on_close", "reply")

    def __init__(self, connection: Connection, *, holds_back: bool) -> None:
        self.connection = connection
        self.holds_back = holds_back
        self.is_complete = False
        self.reply: bytes | FileReply | None = None
        self.on_close: Callable[[], object] | None = None
        """Called when the connection closes before the slot is complete."""

    def complete(self, reply: bytes | FileReply | None) -> None:
        """Fill the slot; `None` means that this request gets no reply."""
        self.on_close = None
        if self.connection.is_closed:
            return
        self.reply = reply
        self.is_complete = True
        self.connection.on_slot_complete()

    def abandon(self) -> None:
        """Close the connection, because this request cannot be answered."""
        self.connection.close("a request could not be answered")


Handled = bytes | FileReply | ReplySlot | None
"""The result of handling one frame: the reply, a slot for it, or `None` for no reply."""
