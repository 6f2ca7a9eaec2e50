"""Listening sockets and their accepted connections, within the configured limits.

The server does not interpret frames: each is passed to `handle`. It needs a loop with `add_reader` and `add_writer`
(uvloop, or asyncio's own). Start at `Server.listen`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from moldau.net.buffers import FrameBuffers
from moldau.net.connection import Connection
from moldau.net.limits import Limits
from moldau.net.replies import Handled
from moldau.net.senders import Crowd, Senders
from moldau.net.session import Session
from moldau.net.shedding import Shortage, idle_longest
from moldau.net.transport import ServerTransportFactory, plain_server_transport

__all__ = ["RequestHandler", "Server"]

log = logging.getLogger(__name__)

RequestHandler = Callable[[Connection, memoryview, int, int], Handled]
"""`(connection, buffer, start, end)`: the frame without its length. The buffer is valid during the call only."""

TICK_SECONDS = 1.0
ACCEPT_TURN = 64
"""Connections accepted per loop iteration, so that a burst of them does not starve the open ones."""
SHED_IDLE_TICKS = 30
"""A connection idle for this long may be closed in favour of a new one when file descriptors are short."""

_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class _Listener(NamedTuple):
    name: str
    sock: socket.socket
    transport: ServerTransportFactory


class Server:
    """All listeners and connections of one process."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        handle: RequestHandler,
        limits: Limits,
        descriptors: Callable[[], int] = lambda: sys.maxsize,
    ) -> None:
        self.loop = loop
        self.handle = handle
        self.limits = limits
        """Replace it to change a limit; connections read it each time."""
        self.answer_text: Callable[[bytes], bytes | None] = lambda word: None
        """The answer to four bytes that cannot be the length of a request, for a port that knows such words."""
        self._descriptors = descriptors
        """How many connections there are file descriptors for; may change at any time."""
        self._shortage = Shortage()
        self._shed_tick = -1
        self.buffers = FrameBuffers()
        self.connections: set[Connection] = set()
        self.crowd = Crowd()
        self.senders = Senders(loop, limits.network_threads)
        self.lent: set[Connection] = set()
        """Connections on which a thread is sending, closed ones among them."""
        self.tick = 0
        """Seconds since the start, updated once per tick: the clock for idle times."""
        self.received_bytes = 0
        self.sent_bytes = 0
        self.accepted_connections = 0
        self.closed_connections = 0
        self.refused_connections = 0
        self.expired_connections = 0
        self.shed_connections = 0
        self.connections_by_listener: Counter[str] = Counter()
        self._by_host: Counter[str] = Counter()
        self._accepted_this_tick = 0
        self._listening: dict[int, _Listener] = {}
        self._is_accepting = True
        self.is_draining = False
        self._short_of_memory: list[Connection] = []
        self._ticker = loop.call_later(TICK_SECONDS, self._on_tick)

    # Listening

    def listen(
        self, listener_name: str, host: str, port: int, transport: ServerTransportFactory = plain_server_transport
    ) -> int:
        """Bind and start accepting; returns the port, which differs from `port` where that was 0.

        `transport` creates the transport of each accepted connection.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.limits.receive_buffer_bytes > 0:
                # Before listen, so that accepted sockets inherit it before their window scale is negotiated.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.receive_buffer_bytes)
            sock.setblocking(False)
            sock.bind((host, port))
            sock.listen(self.limits.listen_backlog)
        except OSError:
            sock.close()
            raise
        listener = self._listening[sock.fileno()] = _Listener(listener_name, sock, transport)
        if self._is_accepting:
            self.loop.add_reader(sock.fileno(), self._accept, listener)
        return int(sock.getsockname()[1])

    def _accept(self, listener: _Listener) -> None:
        most = self._descriptors()
        for _ in range(ACCEPT_TURN):
            if self._accepted_this_tick >= self.limits.max_connections_per_second:
                self._stop_accepting(f"{self._accepted_this_tick} came within a second (max.connection.creation.rate)")
                return
            if len(self.connections) >= self.limits.max_connections:
                self._stop_accepting(f"{len(self.connections)} connections are open, the limit (max.connections)")
                return
            try:
                accepted, peer = listener.sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_FILES:
                    raise
                # Retried at the next tick: a level-triggered loop would otherwise spin on it.
                self._note_shortage()
                self._stop_accepting(None)
                return
            if len(self.connections) < most or self._make_room(most):
                self._admit(accepted, listener, peer)
            else:
                # A client that is rejected at once can retry elsewhere or later; in the backlog it would only time out.
                self.refused_connections += 1
                accepted.close()

    def _make_room(self, most: int) -> bool:
        """Close idle connections in favour of a new one, at most once a second; returns whether there is room now."""
        self._note_shortage()
        if self._shed_tick != self.tick:
            self._shed_tick = self.tick
            idle = [c for c in self.connections if not c.is_waiting and self.tick - c.active_tick >= SHED_IDLE_TICKS]
            self._shed_connections(idle_longest(idle, 1 + most // 16))
        return len(self.connections) < most

    def _shed_connections(self, connections: list[Connection]) -> None:
        for connection in connections:
            self.shed_connections += 1
            connection.close("its file descriptor is needed", level=logging.DEBUG)

    def _note_shortage(self) -> None:
        line = self._shortage.note_shortage(self.tick, len(self.connections))
        if line is not None:
            log.warning("%s", line)

    def _admit(self, accepted: socket.socket, listener: _Listener, peer: tuple[str, int]) -> None:
        host = peer[0]
        if self._by_host[host] >= self.limits.connections_of(host):
            self.refused_connections += 1
            log.warning(
                "refused a connection from %s: it has %d, the limit (max.connections.per.ip)", host, self._by_host[host]
            )
            accepted.close()
            return
        try:
            connection = self._connection(accepted, listener, peer)
        except OSError as error:
            # The client may have disconnected, or TLS cannot be set up for it: other connections are not affected.
            self.refused_connections += 1
            log.warning("a connection from %s on %s could not be set up: %s", host, listener.name, error)
            accepted.close()
            return
        self._by_host[host] += 1
        self.connections_by_listener[listener.name] += 1
        self.accepted_connections += 1
        self._accepted_this_tick += 1
        self.connections.add(connection)

    def _connection(self, accepted: socket.socket, listener: _Listener, peer: tuple[str, int]) -> Connection:
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.limits.send_buffer_bytes > 0:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.send_buffer_bytes)
        # Interned, because thousands of connections share a few addresses.
        local_host = sys.intern(accepted.getsockname()[0].removeprefix("::ffff:"))
        session = Session(listener.name, sys.intern(peer[0]), peer[1], local_host)
        return Connection(self, listener.transport(self.loop, accepted, session), session)

    def _stop_accepting(self, reason: str | None) -> None:
        """Pause accepting until the next tick or until a connection closes; `None` if the reason is already logged."""
        if not self._is_accepting:
            return
        self._is_accepting = False
        if reason is not None:
            log.warning("new connections wait: %s", reason)
        for fd in self._listening:
            self.loop.remove_reader(fd)

    def _accept_again(self) -> None:
        if (
            self._is_accepting
            or len(self.connections) >= self.limits.max_connections
            or self._accepted_this_tick >= self.limits.max_connections_per_second
        ):
            return
        self._is_accepting = True
        for fd, listener in self._listening.items():
            self.loop.add_reader(fd, self._accept, listener)

    # Called by connections

    def forget(self, connection: Connection) -> None:
        """A connection has closed."""
        self.connections.discard(connection)
        self.crowd.forget(connection)
        self.closed_connections += 1
        session = connection.session
        self.connections_by_listener[session.listener_name] -= 1
        self._by_host[session.client_host] -= 1
        if not self._by_host[session.client_host]:
            del self._by_host[session.client_host]
        self._accept_again()

    def has_memory(self) -> bool:
        """Whether another large frame may begin (`queued.max.request.bytes`)."""
        limit = self.limits.queued_request_bytes
        return limit < 0 or self.buffers.lent_bytes < limit

    def wait_for_memory(self, connection: Connection) -> None:
        self._short_of_memory.append(connection)

    def give_back(self, frame: bytearray) -> None:
        """Return a large frame's buffer and wake the connections that wait for memory."""
        self.buffers.give_back(frame)
        if self._short_of_memory and self.has_memory():
            waiting, self._short_of_memory = self._short_of_memory, []
            for connection in waiting:
                self.loop.call_soon(connection.on_memory_available)

    # Time

    def _on_tick(self) -> None:
        self.tick += 1
        self._accepted_this_tick = 0
        self._ticker = self.loop.call_later(TICK_SECONDS, self._on_tick)
        self._keep_within_descriptors()
        self._accept_again()
        idle_ticks = self.limits.idle_ms / 1000 / TICK_SECONDS
        if self.limits.idle_ms >= 0 and self.tick % max(1, int(idle_ticks / 10)) == 0:
            self._close_idle(self.tick - idle_ticks)

    def _keep_within_descriptors(self) -> None:
        """Close connections if the limit of open files was lowered: the log's segment files have priority."""
        excess = len(self.connections) - self._descriptors()
        if excess > 0:
            self._note_shortage()
            self._shed_connections(idle_longest(self.connections, excess))
        elif excess == 0:
            self._shortage.note_full(self.tick)
        line = self._shortage.end_if_calm(self.tick)
        if line is not None:
            log.info("%s", line)

    def _close_idle(self, oldest_tick: float) -> None:
        for connection in [c for c in self.connections if c.active_tick < oldest_tick and not c.is_waiting]:
            self.expired_connections += 1
            connection.close(f"idle for {self.limits.idle_ms} ms", level=logging.INFO)

    # The end

    def stop_listening(self) -> None:
        """Accept no new connections; the open ones continue."""
        for fd, listener in self._listening.items():
            if self._is_accepting:
                self.loop.remove_reader(fd)
            listener.sock.close()
        self._listening.clear()

    def drain(self) -> None:
        """Accept no new connections and no new requests, so that pending replies can be sent before `close`."""
        self.stop_listening()
        self.is_draining = True
        for connection in self.connections:
            connection.drain()

    def close(self) -> None:
        """Close every socket."""
        self.stop_listening()
        self._ticker.cancel()
        for connection in list(self.connections):
            connection.close("the server stops", level=logging.DEBUG)
        self.senders.close()
        for connection in self.lent:
            connection.reclaim()
        self.lent.clear()
