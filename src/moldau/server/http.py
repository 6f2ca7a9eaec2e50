"""The operators' port of a broker: /metrics for Prometheus, /jmx for JMX tools, /healthz and /readyz for supervisors.

It does not use `moldau.http`, for two reasons: a broker should not import a web framework for four fixed paths, and
the port has a thread with an event loop of its own, so that /healthz answers while the broker's event loop hangs.
Metrics are collected on the broker's loop, in short slices between client requests. Start at `MetricsServer`.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from moldau.broker.metrics import Metrics
from moldau.core import prometheus

if TYPE_CHECKING:
    from moldau.broker.health.watchdog import Stall

__all__ = ["MetricsServer"]

REQUEST_LIMIT_BYTES = 8192
REQUEST_TIMEOUT_S = 10.0
BROKER_LOOP_TIMEOUT_S = 5.0
"""How long the broker's loop may take to collect its metrics."""
TURN_S = 0.002
"""How long metrics are collected before pending client requests are handled."""

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}

RUNNING = 3
MAX_CONNECTIONS = 16
"""Connections open at the same time; they use descriptors from the reserve (`server.process.descriptors`)."""
MAX_LISTED_PARTITIONS = 100
"""How many offline partitions /healthz lists with their reasons; it counts all of them."""

T = TypeVar("T")


def _no_stalls() -> tuple[bool, Sequence[Stall]]:
    return False, ()


class MetricsServer:
    """The HTTP server. Started and closed on the broker's loop. Methods with an underscore run in the server's own
    thread, except for the coroutines passed to `_run_on_broker_loop`."""

    def __init__(
        self,
        metrics: Metrics,
        broker_state: Callable[[], int],
        stalls: Callable[[], tuple[bool, Sequence[Stall]]] = _no_stalls,
        offline: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """All functions are called in the server's thread. `stalls` returns whether the broker's loop hangs, and
        everything that hangs; `offline` the partitions that cannot be used, each with its reason."""
        self._metrics = metrics
        self._broker_state = broker_state
        self._stalls = stalls
        self._offline = offline
        self._broker_loop = asyncio.get_running_loop()
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="moldau-metrics-http", daemon=True)
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        """In the order in which they were accepted."""

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port bound, also if `port` is 0 (any free port)."""
        self._thread.start()
        try:
            return await self._in_own_thread(self._listen(host, port))
        except OSError:
            await self.close()
            raise

    async def close(self) -> None:
        await self._in_own_thread(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await self._broker_loop.run_in_executor(None, self._thread.join)
        self._loop.close()

    async def _in_own_thread(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _run_on_broker_loop(self, work: Coroutine[Any, Any, bytes]) -> bytes | None:
        """The result, or `None` if the loop hangs."""
        future = asyncio.run_coroutine_threadsafe(work, self._broker_loop)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), BROKER_LOOP_TIMEOUT_S)
        except TimeoutError:
            return None

    async def _listen(self, host: str, port: int) -> int:
        self._server = await asyncio.start_server(self._accept, host or None, port, limit=REQUEST_LIMIT_BYTES)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            connections = list(self._connections)
            for connection in connections:
                self._drop(connection)
            await asyncio.gather(*connections, return_exceptions=True)
            await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            # The oldest connection has had the most time to send its request; it must not block a new probe.
            self._drop(next(iter(self._connections)))
        connection = asyncio.ensure_future(self._serve(reader, writer))
        self._connections[connection] = writer
        connection.add_done_callback(lambda done: self._connections.pop(done, None))

    def _drop(self, connection: asyncio.Task[None]) -> None:
        """Cancel the task and close its connection: a task cancelled before it starts never runs its `finally`."""
        self._connections.pop(connection).close()
        connection.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close: scrapers connect every few seconds, so keep-alive saves nothing."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, content_type, body = await self._answer(head.split(b"\r\n", 1)[0].decode("latin-1"))
                writer.write(_response(status, content_type, body, with_body=not head.startswith(b"HEAD ")))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that has disconnected, is too slow, or sends too much gets no answer
        finally:
            writer.close()

    async def _answer(self, request_line: str) -> tuple[int, str, bytes]:
        parts = request_line.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            return 400, "text/plain", b"not an HTTP request\n"
        if parts[0] not in ("GET", "HEAD"):
            return 405, "text/plain", b"only GET\n"
        target = urlsplit(parts[1])
        if target.path == "/metrics":
            return self._answer_with(prometheus.CONTENT_TYPE, await self._run_on_broker_loop(self._prometheus()))
        if target.path == "/jmx":
            pattern = parse_qs(target.query).get("object-name", ["*:*"])[0]
            return self._answer_with("application/json", await self._run_on_broker_loop(self._jmx(pattern)))
        if target.path == "/healthz":
            return self._health()
        if target.path == "/readyz":
            return self._readiness()
        return 404, "text/plain", b"/metrics, /jmx, /healthz and /readyz are here\n"

    def _health(self) -> tuple[int, str, bytes]:
        """The answer of /healthz. A hanging loop is unhealthy; a hanging disk only delays writes: no restart helps."""
        state = self._broker_state()
        is_loop_stuck, stalls = self._stalls()
        offline = self._offline()
        is_healthy = state == RUNNING and not offline and not is_loop_stuck
        facts: dict[str, object] = {"broker_state": state, "healthy": is_healthy}
        if offline:
            facts["offline_partition_count"] = len(offline)
            facts["offline_partitions"] = dict(islice(offline.items(), MAX_LISTED_PARTITIONS))
        if stalls:
            facts["stalls"] = [
                {"what": one.name, "where": one.where, "seconds": round(one.seconds, 1)} for one in stalls
            ]
        return (200 if is_healthy else 503), "application/json", json.dumps(facts).encode() + b"\n"

    def _readiness(self) -> tuple[int, str, bytes]:
        """The answer of /readyz: whether clients are served, also where some partitions are offline."""
        is_loop_stuck, _ = self._stalls()
        is_ready = self._broker_state() == RUNNING and not is_loop_stuck
        return (200 if is_ready else 503), "application/json", json.dumps({"ready": is_ready}).encode() + b"\n"

    def _answer_with(self, content_type: str, body: bytes | None) -> tuple[int, str, bytes]:
        if body is None:
            return 503, "text/plain", b"the broker's event loop hangs, see /healthz\n"
        return 200, content_type, body

    async def _prometheus(self) -> bytes:
        return await _join_in_turns(self._metrics.render_prometheus())

    async def _jmx(self, pattern: str) -> bytes:
        mbeans: dict[str, dict[str, object]] = {}
        turn_ends = time.monotonic() + TURN_S
        for name, attributes in self._metrics.jmx(pattern, now_s=time.monotonic()):
            mbeans.setdefault(name, {}).update(attributes)
            if time.monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + TURN_S
        return json.dumps(mbeans).encode() + b"\n"


async def _join_in_turns(pieces: Iterator[str]) -> bytes:
    body = bytearray()
    turn_ends = time.monotonic() + TURN_S
    for piece in pieces:
        # Folder names may contain bytes that are not UTF-8.
        body += piece.encode(errors="replace")
        if time.monotonic() > turn_ends:
            await asyncio.sleep(0)
            turn_ends = time.monotonic() + TURN_S
    return bytes(body)


def _response(status: int, content_type: str, body: bytes, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
