"""Threads that send large replies while several clients read at once.

`sendfile` releases the interpreter's lock, so readers that would wait for one another on the loop are served on several
cores. For a single reader, and for small replies, handing over costs more than it gains. So a reply goes to a thread
only if it is large and another connection has had a large one a moment ago (`Crowd`), or if it was read from disk just
now, because then `sendfile` may have to wait for it. The figures are in
`docs/adr/0024-large-replies-leave-in-threads.md`.

A connection that is being served by a thread is *lent*: only the thread sends on it, and its socket is closed when
it is back. Start at `Senders.send`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Final, Protocol

from moldau.net.outgoing import Outgoing, Outlet

__all__ = ["LARGE_REPLY_BYTES", "Crowd", "Senders", "ThreadOutlet"]

LARGE_REPLY_BYTES: Final = 256 * 1024
NEAR_S: Final = 0.05
"""Large replies to two connections within this time mean that several clients are reading."""
CROWD_S: Final = 0.5
"""For how long they then count as reading."""
PATIENCE_S: Final = 0.005
"""How long a thread waits for room in a socket; slower readers are left to the loop."""
ERRAND_S: Final = 0.05
"""How long a thread serves one connection at a time."""
WAITING_PER_THREAD: Final = 4
"""With more connections in line than this the loop sends by itself."""


class ThreadOutlet(Outlet, Protocol):
    """An outlet that one thread besides the loop may use, as long as the loop itself sends nothing."""

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait until `send` may accept data; returns false if that takes longer than the timeout."""
        ...


OnBack = Callable[[Outgoing, "OSError | None"], None]
"""Called on the loop with what is left to be sent, and the error that ended it."""

_Errand = tuple[Outgoing, ThreadOutlet, OnBack]


class Crowd:
    """Tells whether several clients are reading large replies at once. Pure: the caller brings the time."""

    def __init__(self) -> None:
        self._last_reader: object = None
        self._last_s = float("-inf")
        self._until_s = float("-inf")

    def note_large_reply(self, reader: object, now_s: float) -> bool:
        """A large reply is about to be sent to this connection; returns whether there are others."""
        if reader is not self._last_reader:
            if now_s - self._last_s <= NEAR_S and self._last_reader is not None:
                self._until_s = now_s + CROWD_S
            self._last_reader = reader
        self._last_s = now_s
        return now_s < self._until_s

    def forget(self, reader: object) -> None:
        if reader is self._last_reader:
            self._last_reader = None


class Senders:
    """The threads; started when they are first needed. Called on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most_threads: int) -> None:
        self._loop = loop
        self._most_threads = most_threads
        self._threads: list[threading.Thread] = []
        self._errands: queue.SimpleQueue[_Errand | None] = queue.SimpleQueue()
        self._under_way = 0
        self._is_closed = False
        self.count = 0
        """Replies handed to a thread."""

    @property
    def has_room(self) -> bool:
        return not self._is_closed and self._under_way < self._most_threads * (1 + WAITING_PER_THREAD)

    def send(self, output: Outgoing, outlet: ThreadOutlet, on_back: OnBack) -> None:
        """Send in a thread; until `on_back` is called neither `output` nor `outlet` may be used to send."""
        self.count += 1
        self._under_way += 1
        if len(self._threads) < min(self._under_way, self._most_threads):
            thread = threading.Thread(target=self._run, name=f"moldau-sender-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._errands.put((output, outlet, on_back))

    def _run(self) -> None:
        while (errand := self._errands.get()) is not None:
            output, outlet, on_back = errand
            error = _send(output, outlet)
            try:
                self._loop.call_soon_threadsafe(self._finish, output, on_back, error)
            except RuntimeError:
                return  # the loop is closed, and all connections with it
            del errand, output, outlet, on_back

    def _finish(self, output: Outgoing, on_back: OnBack, error: OSError | None) -> None:
        self._under_way -= 1
        on_back(output, error)

    def close(self) -> None:
        """End the threads. Whoever is being served must be cut off before, or this waits for the client."""
        self._is_closed = True
        for _ in self._threads:
            self._errands.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()


def _send(output: Outgoing, outlet: ThreadOutlet) -> OSError | None:
    """Send until all is sent, or the client is too slow or has had its time; return what went wrong."""
    until_s = perf_counter() + ERRAND_S
    try:
        while perf_counter() < until_s:
            try:
                if output.send(outlet):
                    break
            except (BlockingIOError, InterruptedError):
                if not outlet.wait_for_room(PATIENCE_S):
                    break
    except OSError as error:
        return error
    return None
