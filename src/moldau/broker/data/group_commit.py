"""Group commit: many produce requests that must be on disk before they are acknowledged share one sync.

While one round of syncs runs in its thread, appends continue and requests that need a sync wait for the next round,
which covers everything appended before it began. Clients that were answered together usually ask again together: a
round that has fewer requests than expected waits for the others, for a fraction of the time a sync takes, so that they
do not split into two halves that wait for each other's syncs. The logs of a round are synced in parallel, because file
systems commit such syncs together. A failed sync is fatal and acknowledges nothing; one that could not start because no
file could be opened is retried, and its requests keep waiting. Start at `GroupCommit.flush_then`.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING, Final

from moldau.core.activity import Activity
from moldau.log.errors import StorageError

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog

__all__ = ["GroupCommit"]

log = logging.getLogger(__name__)

HELPERS = 7
RETRY_S = 0.2

GATHER_SHARE: Final = 0.5
GATHER_MOST_S: Final = 0.002
"""A round waits for those who are expected in it: at most for this share of the last sync, and for this long."""

Round = tuple[set["PartitionLog"], list[Callable[[], None]]]


class GroupCommit:
    """Shares syncs between requests; one per broker, called on the loop, syncs on its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_fatal: Callable[[BaseException], None]) -> None:
        self._loop = loop
        self._on_fatal = on_fatal
        self._lock = threading.Lock()
        """Guards the three fields that follow; the thread takes a round out of them."""
        self._dirty: set[PartitionLog] = set()
        self._waiting: list[Callable[[], None]] = []
        self._expected = 1
        """How many requests the next round will probably have: those of the last one, if their clients ask again."""
        self._enough = threading.Event()
        """Set when as many are waiting."""
        self._sync_s = 0.0
        """How long the last round's syncs took."""
        self._is_flushing = False
        self._rounds: queue.SimpleQueue[Round | None] = queue.SimpleQueue()
        """An empty round means: gather one."""
        self._thread: threading.Thread | None = None
        self._is_closing = threading.Event()
        self._helpers: ThreadPoolExecutor | None = None
        self.activity = Activity("a sync for acknowledgements", patience_s=1.0)
        self.rounds = 0
        """The number of rounds so far, each for any number of produces."""

    @property
    def waiting(self) -> int:
        """Gauge: produces not yet covered by a running sync."""
        return len(self._waiting)

    def flush_then(self, logs: Iterable[PartitionLog], callback: Callable[[], None]) -> None:
        """Call `callback` on the loop once everything appended to `logs` so far is on disk."""
        with self._lock:
            self._dirty.update(logs)
            self._waiting.append(callback)
            are_all_here = len(self._waiting) >= self._expected
        if not self._is_flushing:
            self._begin_round()
        elif are_all_here:
            self._enough.set()

    def _begin_round(self) -> None:
        self._is_flushing = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="moldau-group-commit", daemon=True)
            self._thread.start()
        are_all_here = len(self._waiting) >= self._expected
        self._rounds.put(self._take_round() if are_all_here else (set(), []))

    def _take_round(self) -> Round:
        with self._lock:
            logs, self._dirty = self._dirty, set()
            callbacks, self._waiting = self._waiting, []
            self._expected = len(callbacks)
            self._enough.clear()
        return logs, callbacks

    def _run(self) -> None:
        while (round_ := self._rounds.get()) is not None:
            logs, callbacks = round_ if round_[1] else self._gather()
            if not callbacks:
                continue  # the round before has taken them all
            began_s = perf_counter()
            try:
                with self.activity:
                    is_done = self._flush_or_give_up(logs)
            except Exception as error:
                log.critical("a group commit failed, nothing in it is acknowledged: %s", error)
                self._on_fatal(error)
                continue
            self._sync_s = perf_counter() - began_s
            if is_done:
                self._loop.call_soon_threadsafe(self._finish_round, callbacks)

    def _gather(self) -> Round:
        """Wait for those whom the last round answered, if they ask again at once, so that one sync is for all."""
        if not self._is_closing.is_set():
            self._enough.wait(min(self._sync_s * GATHER_SHARE, GATHER_MOST_S))
        return self._take_round()

    def _flush_or_give_up(self, logs: set[PartitionLog]) -> bool:
        """Flush, and retry while no file can be opened for it; return false if the broker stops before it succeeds."""
        is_told = False
        while True:
            try:
                self._flush_all(logs)
            except StorageError as error:
                if not is_told:
                    log.error("acknowledgements wait until files can be synced: %s", error)
                    is_told = True
                if self._is_closing.wait(RETRY_S):
                    return False
            else:
                return True

    def _flush_all(self, logs: set[PartitionLog]) -> None:
        first, *others = logs
        if others and self._helpers is None:
            self._helpers = ThreadPoolExecutor(max_workers=HELPERS, thread_name_prefix="moldau-group-commit-helper")
        helped = [self._helpers.submit(other.flush) for other in others] if self._helpers is not None else []
        first.flush()
        for flush in helped:
            flush.result()

    def _finish_round(self, callbacks: list[Callable[[], None]]) -> None:
        self.rounds += 1
        self._is_flushing = False
        with self._lock:
            self._expected = len(callbacks) + len(self._waiting)
            self._enough.clear()
        if self._waiting:
            self._begin_round()
        for callback in callbacks:
            try:
                callback()
            except Exception:
                # The other requests of the round are on disk too, and must be answered.
                log.exception("an acknowledgement failed")

    def close(self) -> None:
        """Sync for all waiting requests, then end the thread. No further calls are allowed."""
        if self._thread is not None:
            self._is_closing.set()
            self._enough.set()
            if self._waiting:
                self._begin_round()
            self._rounds.put(None)
            self._thread.join()
            self._thread = None
        if self._helpers is not None:
            self._helpers.shutdown()
            self._helpers = None
