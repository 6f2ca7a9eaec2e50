"""One client's connection: splits the received bytes into frames and sends replies in the order of their requests.

The transport (`net.transport`) moves the bytes, the handler interprets a frame. Every complete frame of a read is
handled in place, and all replies of a read leave in one `send`. Four things pause reading: a reply that blocks later
requests, a client that does not read its replies, too little memory for a large frame, and requests that would hold up
other connections for too long. Start at `Connection._on_readable`.
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Final

from moldau.net.buffers import LARGE_FRAME_BYTES, next_capacity
from moldau.net.outgoing import Outgoing
from moldau.net.replies import CloseConnectionError, FileReply, ReplySlot
from moldau.net.senders import LARGE_REPLY_BYTES

if TYPE_CHECKING:
    from moldau.net.server import Server
    from moldau.net.session import Session
    from moldau.net.transport import Transport

__all__ = ["Connection", "oversize_reason"]

log = logging.getLogger(__name__)

UNSENT_LIMIT_BYTES: Final = 1024 * 1024
"""While more than this waits to be read by a client, none of its further requests are handled."""

TURN_S: Final = 0.002
"""How long the requests of one read are handled before others get a turn: a read may hold thousands of them."""

CROWDED_BUFFER_BYTES: Final = 200 * 1024
"""The socket's buffer while several clients read large replies; the kernel doubles it."""

LONE_BUFFER_BYTES: Final = 2 * 1024 * 1024
"""The socket's buffer again when they no longer do: about what the kernel would let it grow to."""

SLOTS_LIMIT: Final = 4096
"""The same limit for replies that are not ready yet, as a count."""

_frame_length = struct.Struct(">i").unpack_from


class Connection:
    """Owned by the server's loop; no other thread touches it."""

    __slots__ = (
        "_drain_scheduled",
        "_earned_bytes",
        "_frame",
        "_frame_bytes",
        "_frame_filled",
        "_handle",
        "_has_small_buffer",
        "_held",
        "_is_choked",
        "_is_lent",
        "_is_reading",
        "_is_starved",
        "_is_turn_over",
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
        "_unsent_elsewhere",
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
        self._outgoing = Outgoing()
        self._lined_up_bytes = 0
        self._is_lent = False
        """Whether a thread is sending (`net.senders`); the loop must not send then, and `_outgoing` is what follows."""
        self._unsent_elsewhere = 0
        """How much was given to that thread."""
        self._has_small_buffer = False
        self._is_choked = False
        self._is_starved = False
        self._is_turn_over = False
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
        if self._held is None and not self._is_choked and not self._is_turn_over:
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
        turn_until = perf_counter() + TURN_S
        try:
            while end - position >= 4:
                (size,) = _frame_length(view, position)
                stop = position + 4 + size
                if size < 0 or size > largest:
                    self._answer_text(bytes(view[position : position + 4]), oversize_reason(size, largest))
                    return
                if stop > end:
                    break
                reply = handle(self, view, position + 4, stop)
                position = stop
                if isinstance(reply, bytes) and not self._slots:
                    out.append(reply)
                    unsent += len(reply)
                    if unsent <= UNSENT_LIMIT_BYTES and perf_counter() < turn_until:
                        continue
                elif reply is not None:
                    self._line_up(reply)
                elif perf_counter() < turn_until:
                    continue
                if not self._may_go_on():
                    break
                if end - position >= 4 and perf_counter() >= turn_until:
                    self._end_turn()
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

    def _answer_text(self, word: bytes, reason: str) -> None:
        """Answer what is no request, if the server knows the word, and close; `reason` is why else."""
        text = self._server.answer_text(word)
        if text is None:
            raise CloseConnectionError(reason)
        self._out.append(text)
        self._flush()
        self.close(f"answered {word.decode()}", level=logging.DEBUG)

    def _may_go_on(self) -> bool:
        """Whether the next request may be handled, after a reply was queued or many have not been sent yet."""
        self._flush()
        if self._unsent_bytes + self._lined_up_bytes > UNSENT_LIMIT_BYTES or len(self._slots) > SLOTS_LIMIT:
            self._is_choked = True
        return self._held is None and not self._is_choked and not self.is_closed

    def _end_turn(self) -> None:
        """Handle the other requests of this read in the next loop iteration, and read no more until then."""
        self._is_turn_over = True
        self._pause_reading()
        self._server.loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._is_turn_over = False
        self._resume()

    def _leave_over(self, view: memoryview, position: int, end: int) -> None:
        """Keep bytes that cannot be handled yet: a partial frame, or complete frames that have to wait."""
        self._leftover = b""
        self._window = self._scratch
        rest = end - position
        if self.is_closed or not rest:
            return
        has_to_wait = self._held is not None or self._is_choked or self._is_turn_over
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
            self._held is not None
            or self._is_choked
            or self._is_starved
            or self._is_turn_over
            or self.is_closed
            or self._server.is_draining
        )

    # Replies

    @property
    def _unsent_bytes(self) -> int:
        return self._outgoing.size + self._unsent_elsewhere

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
        if not self._outgoing and not self._is_lent:
            self._is_choked = False
        self._resume()

    def _queue(self, reply: bytes | FileReply) -> None:
        if isinstance(reply, bytes):
            self._out.append(reply)
            return
        self._flush(send=False)
        self._outgoing.add_reply(reply)
        if not self._is_writing and not self._is_lent and not self._lend():
            self._pump()

    def _flush(self, *, send: bool = True) -> None:
        """Send the ready replies; what the socket does not take is sent once it is writable."""
        out = self._out
        if not out or self.is_closed:
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        sent = 0
        if send and not self._outgoing and not self._is_lent:
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
        self._outgoing.add(memoryview(data)[sent:] if sent else data)
        if send:
            self._wait_for_room()

    def _pump(self) -> None:
        """Send queued output until it is all sent, the socket is full, or this iteration's share is used up."""
        before = self._outgoing.size
        is_all_sent = False
        try:
            is_all_sent = self._outgoing.send(self._transport)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.close(f"send failed: {error}", level=logging.DEBUG)
            return
        self._server.sent_bytes += before - self._outgoing.size
        if is_all_sent:
            self._all_sent()
        else:
            self._wait_for_room()

    def _lend(self) -> bool:
        """Have a thread send, if it is much and others are reading too, or the disk may be slow; whether one does."""
        output, server, transport = self._outgoing, self._server, self._transport
        if output.size < LARGE_REPLY_BYTES:
            return False
        outlet = transport.thread_outlet()
        if outlet is None:
            return False
        is_in_crowd = server.crowd.note_large_reply(self, server.loop.time())
        if is_in_crowd is not self._has_small_buffer and server.limits.send_buffer_bytes <= 0:
            self._has_small_buffer = is_in_crowd
            transport.limit_send_buffer(CROWDED_BUFFER_BYTES if is_in_crowd else LONE_BUFFER_BYTES)
        if not (is_in_crowd or output.is_cold) or not server.senders.has_room:
            return False
        self._is_lent = True
        self._unsent_elsewhere = output.size
        self._outgoing = Outgoing()
        server.lent.add(self)
        server.senders.send(output, outlet, self._on_back)
        return True

    def _on_back(self, output: Outgoing, error: OSError | None) -> None:
        """A thread has sent all it was given, or gave up."""
        self._server.sent_bytes += self._unsent_elsewhere - output.size
        self._is_lent = False
        self._unsent_elsewhere = 0
        self._server.lent.discard(self)
        self.active_tick = self._server.tick
        if self.is_closed:
            self._transport.close()
        elif error is not None:
            self.close(f"send failed: {error}", level=logging.DEBUG)
        else:
            is_slow = bool(output)
            output.append_all(self._outgoing)
            self._outgoing = output
            if is_slow or not self._lend():
                self._pump()

    def _wait_for_room(self) -> None:
        if not self._is_writing and not self._is_lent and not self.is_closed:
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
        return bool(self._slots or self._outgoing or self._is_lent)

    def close(self, reason: str, *, level: int = logging.WARNING) -> None:
        """Close now: nothing more is read or sent, and `on_close` of every unfinished reply is called."""
        if self.is_closed:
            return
        self.is_closed = True
        log.log(
            level, "closing the connection of %s:%d: %s", self.session.client_host, self.session.client_port, reason
        )
        if self._is_lent:
            self._transport.hang_up()  # closed when the thread is back
        else:
            self._transport.close()
        self._release()
        self._server.forget(self)

    def reclaim(self) -> None:
        """Close the socket of a closed connection whose thread has ended."""
        if self._is_lent:
            self._is_lent = False
            self._transport.close()

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
