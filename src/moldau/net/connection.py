"""One client's connection: splits the received bytes into frames and sends replies in the order of their requests.

The transport (`net.transport`) moves the bytes, the handler interprets a frame. Every complete frame of a read is
handled in place, and all replies of a read leave in one `send`. Three things pause reading: a reply that blocks later
requests, a client that does not read its replies, and too little memory for a large frame. Start at
`Connection._on_readable`.
"""

from __future__ import annotations

import logging
import socket
import struct
from collections import deque
from typing import TYPE_CHECKING, Final

from moldau.net.buffers import LARGE_FRAME_BYTES, next_capacity
from moldau.net.replies import CloseConnectionError, FileRange, FileReply, ReplySlot

if TYPE_CHECKING:
    from moldau.net.server import Server
    from moldau.net.session import Session
    from moldau.net.transport import Transport

__all__ = ["Connection", "oversize_reason"]

log = logging.getLogger(__name__)

UNSENT_LIMIT_BYTES: Final = 1024 * 1024
"""While more than this waits to be read by a client, none of its further requests are handled."""

SEND_SHARE_BYTES: Final = 2 * 1024 * 1024
"""The most that one loop iteration sends, so that one large reader does not delay the others."""

SLOTS_LIMIT: Final = 4096
"""The same limit for replies that are not ready yet, as a count."""

_frame_length = struct.Struct(">i").unpack_from


class _Sending:
    """A file range on its way out."""

    __slots__ = ("fd", "file", "left", "position")

    def __init__(self, file_range: FileRange) -> None:
        self.file = file_range.file
        self.fd = self.file.fileno()
        self.position = file_range.position
        self.left = file_range.length


class Connection:
    """Owned by the server's loop; no other thread touches it."""

    __slots__ = (
        "_drain_scheduled",
        "_earned_bytes",
        "_frame",
        "_frame_bytes",
        "_frame_filled",
        "_handle",
        "_held",
        "_is_choked",
        "_is_reading",
        "_is_starved",
        "_is_writing",
        "_leftover",
        "_lined_up_bytes",
        "_out",
        "_outgoing",
        "_recv_into",
        "_scratch",
        "_send",
        "_server",
        "_slots",
        "_transport",
        "_unsent_bytes",
        "_window",
        "active_tick",
        "is_closed",
        "session",
    )

    def __init__(self, server: Server, transport: Transport, session: Session) -> None:
        self._server = server
        self._transport = transport
        self._recv_into = transport.recv_into
        self._send = transport.send
        self._handle = server.handle
        self._scratch = server.buffers.scratch
        self._window = self._scratch
        self.session = session
        self.is_closed = False
        self.active_tick = server.tick
        self._leftover: bytes = b""
        self._frame: bytearray | None = None
        self._frame_filled = 0
        self._frame_bytes = 0
        self._earned_bytes = 0
        self._slots: deque[bytes | FileReply | ReplySlot] = deque()
        self._held: ReplySlot | None = None
        self._out: list[bytes] = []
        self._outgoing: deque[bytes | memoryview | _Sending] = deque()
        self._lined_up_bytes = 0
        self._unsent_bytes = 0
        self._is_choked = False
        self._is_starved = False
        self._is_reading = True
        self._is_writing = False
        self._drain_scheduled = False
        transport.start_reading(self._on_readable)

    def __repr__(self) -> str:
        session = self.session
        return f"<Connection {session.client_host}:{session.client_port} on {session.listener_name}>"

    @property
    def listener_name(self) -> str:
        return self.session.listener_name

    # Reading

    def _on_readable(self) -> None:
        if self._frame is not None:
            self._read_large_frame(self._frame)
            return
        kept = 0
        try:
            if self._leftover:
                kept = len(self._leftover)
                self._scratch[:kept] = self._leftover
                received = self._recv_into(self._scratch[kept:])
            else:
                received = self._recv_into(self._window)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(f"receive failed: {error}", level=logging.DEBUG)
            return
        if not received:
            self.close("the client closed it", level=logging.DEBUG)
            return
        server = self._server
        self.active_tick = server.tick
        server.received_bytes += received
        if self._held is None and not self._is_choked:
            self._handle_frames(self._scratch, 0, kept + received)
        else:
            self._leave_over(self._scratch, 0, kept + received)

    def _read_large_frame(self, frame: bytearray) -> None:
        filled = self._frame_filled
        limit = min(len(frame), self._frame_bytes)
        try:
            received = self._recv_into(memoryview(frame)[filled:limit])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(f"receive failed: {error}", level=logging.DEBUG)
            return
        if not received:
            self.close("the client closed it in the middle of a request", level=logging.DEBUG)
            return
        server = self._server
        self.active_tick = server.tick
        server.received_bytes += received
        filled += received
        self._frame_filled = filled
        if filled == self._frame_bytes:
            self._handle_large_frame(frame)
        elif filled == limit:
            capacity = next_capacity(self._frame_bytes, filled, self._earned_bytes)
            self._frame = server.buffers.grow(frame, filled, capacity)

    def _handle_large_frame(self, frame: bytearray) -> None:
        self._frame = None
        self._earned_bytes = self._frame_bytes
        self._handle_frames(memoryview(frame), 0, self._frame_bytes)
        self._server.give_back(frame)
        # The next one is probably as large: read only its beginning into the scratch buffer, the rest into its own.
        self._window = self._server.buffers.peek

    def _handle_frames(self, view: memoryview, position: int, end: int) -> None:
        """Handle every complete frame in `view[position:end]` and keep the rest for the next read."""
        handle, out = self._handle, self._out
        largest = self._server.limits.request_max_bytes
        unsent = self._unsent_bytes
        try:
            while end - position >= 4:
                (size,) = _frame_length(view, position)
                stop = position + 4 + size
                if size < 0 or size > largest:
                    raise CloseConnectionError(oversize_reason(size, largest))
                if stop > end:
                    break
                reply = handle(self, view, position + 4, stop)
                position = stop
                if isinstance(reply, bytes) and not self._slots:
                    out.append(reply)
                    unsent += len(reply)
                    if unsent <= UNSENT_LIMIT_BYTES:
                        continue
                elif reply is None:
                    continue
                else:
                    self._line_up(reply)
                if not self._may_go_on():
                    break
                unsent = self._unsent_bytes
        except CloseConnectionError as error:
            self._flush()
            self.close(str(error))
            return
        except Exception:
            log.exception("%r: a request failed with an unhandled exception", self)
            self.close("a request failed")
            return
        if out:
            self._flush()
        if position < end or self._leftover:
            self._leave_over(view, position, end)
        else:
            self._window = self._scratch

    def _may_go_on(self) -> bool:
        """Whether the next request may be handled, after a reply was queued or many have not been sent yet."""
        self._flush()
        if self._unsent_bytes + self._lined_up_bytes > UNSENT_LIMIT_BYTES or len(self._slots) > SLOTS_LIMIT:
            self._is_choked = True
        return self._held is None and not self._is_choked and not self.is_closed

    def _leave_over(self, view: memoryview, position: int, end: int) -> None:
        """Keep bytes that cannot be handled yet: a partial frame, or complete frames that have to wait."""
        self._leftover = b""
        self._window = self._scratch
        rest = end - position
        if self.is_closed or not rest:
            return
        has_to_wait = self._held is not None or self._is_choked
        if not has_to_wait and rest >= 4:
            frame_bytes = _frame_length(view, position)[0] + 4
            if frame_bytes > LARGE_FRAME_BYTES:
                self._begin_large_frame(view, position, rest, frame_bytes)
                return
        self._leftover = bytes(view[position:end])
        if has_to_wait and rest > LARGE_FRAME_BYTES:
            self._pause_reading()

    def _begin_large_frame(self, view: memoryview, position: int, rest: int, frame_bytes: int) -> None:
        server = self._server
        if not server.has_memory():
            self._leftover = bytes(view[position : position + rest])
            self._is_starved = True
            self._pause_reading()
            server.wait_for_memory(self)
            return
        frame = server.buffers.lend(next_capacity(frame_bytes, rest, self._earned_bytes))
        frame[:rest] = view[position : position + rest]
        self._frame, self._frame_filled, self._frame_bytes = frame, rest, frame_bytes

    def _pause_reading(self) -> None:
        if self._is_reading and not self.is_closed:
            self._is_reading = False
            self._transport.stop_reading()

    def drain(self) -> None:
        """Accept no further requests; pending replies are still sent."""
        self._pause_reading()

    def on_memory_available(self) -> None:
        self._is_starved = False
        self._resume()

    def _resume(self) -> None:
        """Handle the remaining bytes and continue reading, after a reason to pause has gone."""
        if self._has_to_wait:
            return
        if self._leftover:
            kept = len(self._leftover)
            self._scratch[:kept] = self._leftover
            self._leftover = b""
            self._handle_frames(self._scratch, 0, kept)
        if not self._is_reading and not self._has_to_wait:
            self._is_reading = True
            self._transport.start_reading(self._on_readable)

    @property
    def _has_to_wait(self) -> bool:
        return (
            self._held is not None or self._is_choked or self._is_starved or self.is_closed or self._server.is_draining
        )

    # Replies

    def _line_up(self, reply: bytes | FileReply | ReplySlot) -> None:
        """Queue a reply behind those that are not ready yet."""
        if isinstance(reply, ReplySlot):
            if not reply.is_complete:
                if reply.holds_back:
                    self._held = reply
                self._slots.append(reply)
                return
            if reply.reply is None:
                return
            reply = reply.reply
        if self._slots:
            self._slots.append(reply)
            self._lined_up_bytes += len(reply)
        else:
            self._queue(reply)

    def on_slot_complete(self) -> None:
        """A slot of this connection is complete; all that are complete by the next loop iteration are sent together."""
        if not self._drain_scheduled and not self.is_closed:
            self._drain_scheduled = True
            self._server.loop.call_soon(self._drain)

    def _drain(self) -> None:
        """Send the replies at the head of the queue that are ready, and continue reading if nothing prevents it."""
        self._drain_scheduled = False
        slots = self._slots
        while slots:
            first = slots[0]
            if isinstance(first, ReplySlot):
                if not first.is_complete:
                    break
                slots.popleft()
                if first is self._held:
                    self._held = None
                if first.reply is not None:
                    self._queue(first.reply)
            else:
                slots.popleft()
                self._lined_up_bytes -= len(first)
                self._queue(first)
        self._flush()
        if not self._outgoing:
            self._is_choked = False
        self._resume()

    def _queue(self, reply: bytes | FileReply) -> None:
        if isinstance(reply, bytes):
            self._out.append(reply)
            return
        self._flush(send=False)
        self._unsent_bytes += reply.size
        for part in reply.parts:
            self._outgoing.append(part if isinstance(part, bytes) else _Sending(part))
        if not self._is_writing:
            self._pump()

    def _flush(self, *, send: bool = True) -> None:
        """Send the ready replies; what the socket does not take is sent once it is writable."""
        out = self._out
        if not out or self.is_closed:
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        sent = 0
        if send and not self._outgoing:
            try:
                sent = self._send(data)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as error:
                self.close(f"send failed: {error}", level=logging.DEBUG)
                return
            self._server.sent_bytes += sent
            if sent == len(data):
                return
        self._outgoing.append(memoryview(data)[sent:] if sent else data)
        self._unsent_bytes += len(data) - sent
        if send:
            self._wait_for_room()

    def _pump(self) -> None:
        """Send queued output until it is all sent, the socket is full, or this iteration's share is used up."""
        outgoing, before = self._outgoing, self._unsent_bytes
        try:
            while outgoing and before - self._unsent_bytes < SEND_SHARE_BYTES:
                part = outgoing[0]
                sent = self._send_file(part) if isinstance(part, _Sending) else self._send_bytes(part)
                self._unsent_bytes -= sent
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.close(f"send failed: {error}", level=logging.DEBUG)
            return
        self._server.sent_bytes += before - self._unsent_bytes
        if outgoing:
            self._wait_for_room()
        else:
            self._all_sent()

    def _send_bytes(self, data: bytes | memoryview) -> int:
        sent = self._send(data, socket.MSG_MORE if len(self._outgoing) > 1 else 0)
        if sent == len(data):
            self._outgoing.popleft()
        else:
            self._outgoing[0] = memoryview(data)[sent:]
        return sent

    def _send_file(self, sending: _Sending) -> int:
        count = min(sending.left, SEND_SHARE_BYTES)
        sent = self._transport.send_file(sending.fd, sending.position, count)
        if not sent:
            raise OSError("a log file ended before the range that was to be sent")
        sending.position += sent
        sending.left -= sent
        if not sending.left:
            self._outgoing.popleft()
        return sent

    def _wait_for_room(self) -> None:
        if not self._is_writing and not self.is_closed:
            self._is_writing = True
            self._transport.start_writing(self._on_writable)

    def _on_writable(self) -> None:
        self.active_tick = self._server.tick
        self._pump()

    def _all_sent(self) -> None:
        if self._is_writing:
            self._is_writing = False
            self._transport.stop_writing()
        if self._is_choked and len(self._slots) <= SLOTS_LIMIT and self._lined_up_bytes <= UNSENT_LIMIT_BYTES:
            self._is_choked = False
            self._server.loop.call_soon(self._resume)

    # The end

    @property
    def is_waiting(self) -> bool:
        """Whether a request is still being answered: such a connection does not count as idle."""
        return bool(self._slots or self._outgoing)

    def close(self, reason: str, *, level: int = logging.WARNING) -> None:
        """Close now: nothing more is read or sent, and `on_close` of every unfinished reply is called."""
        if self.is_closed:
            return
        self.is_closed = True
        log.log(
            level, "closing the connection of %s:%d: %s", self.session.client_host, self.session.client_port, reason
        )
        self._transport.close()
        self._release()
        self._server.forget(self)

    def _release(self) -> None:
        """Release everything held for this client."""
        if self._frame is not None:
            self._server.give_back(self._frame)
            self._frame = None
        self._outgoing.clear()
        slots = list(self._slots)
        self._slots.clear()
        for slot in slots:
            if isinstance(slot, ReplySlot) and slot.on_close is not None:
                slot.on_close()
        self._leftover = b""
        self._out.clear()


def oversize_reason(size: int, largest: int) -> str:
    """The reason to log for an oversized length: text or a TLS handshake is recognised and named as such."""
    start = size.to_bytes(4, "big", signed=True)
    if start.isascii() and start.decode().isprintable():
        return f"it does not speak Kafka's protocol: its first bytes are the text {start.decode()!r}"
    if start.startswith(b"\x16\x03"):
        return "it begins a TLS handshake, and this listener is PLAINTEXT"
    return f"a request claims {size} bytes, the limit is {largest}"
