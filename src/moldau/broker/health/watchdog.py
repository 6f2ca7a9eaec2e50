"""The watchdog thread: detects when the event loop or a disk thread hangs, and logs in which call and on which file.

A stalled disk is visible nowhere else: a thread that is blocked in a system call cannot log, and a blocked loop cannot
answer a scrape. Each watched activity gives one line when it has hung for longer than its limit, reminders at growing
intervals, and one line when it continues. `StallReport` decides the lines, without a clock; `Watchdog` is the thread.

What hangs is read from the stack of the stuck thread, so that being watched costs the hot paths nothing.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final, NamedTuple

from moldau.core.activity import Activity
from moldau.log.partition_log import PartitionLog

__all__ = ["Stall", "StallReport", "Watchdog"]

log = logging.getLogger(__name__)

CHECK_S: Final = 0.2
LOOP_PATIENCE_S: Final = 0.5
"""With the interval of checks before and after: a loop that hangs is reported within a second."""
FIRST_REMINDER_S: Final = 10.0
"""Each reminder comes after twice the time of the one before."""


class Stall(NamedTuple):
    """Something that hangs right now."""

    name: str
    where: str
    seconds: float


class Place(NamedTuple):
    """Where a thread is."""

    text: str
    is_log: bool
    """Whether it is at work on a partition's files."""


class StallReport:
    """The log lines about one watched activity. Pure: facts and the time in, lines out."""

    def __init__(self, name: str, consequence: str, patience_s: float) -> None:
        self._name = name
        self._consequence = consequence
        self._patience_s = patience_s
        self._since_s: float | None = None
        """The hang that was reported and is not over."""
        self._place = Place("", is_log=False)
        self._next_reminder_s = 0.0
        self.count = 0
        """Hangs so far."""
        self.finished_s = 0.0
        """How long those that are over took, all together."""

    @property
    def name(self) -> str:
        return self._name

    def current(self, now_s: float) -> Stall | None:
        since_s = self._since_s
        return None if since_s is None else Stall(self._name, self._place.text, now_s - since_s)

    def look(self, since_s: float | None, now_s: float, find_place: Callable[[], Place]) -> list[str]:
        """Judge what is being done since `since_s`, or nothing if `None`; return the lines to log."""
        lines = []
        if self._since_s is not None and since_s != self._since_s:
            lines.append(self._end(now_s))
        if since_s is None or now_s - since_s < self._patience_s:
            return lines
        if self._since_s is None:
            self._since_s = since_s
            self._place = find_place()
            self._next_reminder_s = FIRST_REMINDER_S
            self.count += 1
            lines.append(f"{self._name} has hung for {now_s - since_s:.1f} s {self._place.text}: {self._consequence}")
        elif now_s - since_s >= self._next_reminder_s:
            self._next_reminder_s *= 2
            self._place = find_place()
            lines.append(f"{self._name} still hangs after {now_s - since_s:.0f} s {self._place.text}")
        return lines

    def _end(self, now_s: float) -> str:
        assert self._since_s is not None
        seconds = now_s - self._since_s
        self._since_s = None
        self.finished_s += seconds
        return f"{self._name} goes on after {seconds:.1f} s {self._place.text}"

    @property
    def hangs_in_log(self) -> bool:
        return self._since_s is not None and self._place.is_log


class Watchdog:
    """Made on the loop it watches; `stop` may be called anywhere."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        activities: Sequence[tuple[Activity, str]],
        *,
        on_loop_stall: Callable[[float], None],
    ) -> None:
        """`activities` come with what a hang means to others. `on_loop_stall` is called on the loop after it hung in a
        log's files, with the seconds that took."""
        self._loop = loop
        self._on_loop_stall = on_loop_stall
        self._loop_activity = Activity("the event loop", patience_s=LOOP_PATIENCE_S)
        self._loop_activity.thread_id = threading.get_ident()
        self._loop_report = StallReport("the event loop", "no client is answered meanwhile", LOOP_PATIENCE_S)
        self._watched = [(self._loop_activity, self._loop_report)]
        self._watched += [(one, StallReport(one.name, means, one.patience_s)) for one, means in activities]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="moldau-watchdog", daemon=True)
        self._thread.start()

    @property
    def reports(self) -> Sequence[StallReport]:
        return [report for _, report in self._watched]

    @property
    def is_loop_stuck(self) -> bool:
        return self._loop_report.current(0) is not None

    def stalls(self) -> list[Stall]:
        """What hangs right now. Any thread may ask."""
        now_s = time.monotonic()
        return [stall for report in self.reports if (stall := report.current(now_s)) is not None]

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(CHECK_S):
            try:
                self._look()
            except RuntimeError:
                if self._loop.is_closed():
                    return
                raise

    def _look(self) -> None:
        now_s = time.monotonic()
        was_stuck = self.is_loop_stuck
        for activity, report in self._watched:
            for line in report.look(activity.since_s, now_s, lambda: _place_of(activity.thread_id)):  # noqa: B023
                log.warning("%s", line)
        if self._loop_report.hangs_in_log and not was_stuck:
            # Runs as soon as the loop does: what comes next should not hang on the loop again.
            self._loop.call_soon_threadsafe(self._loop_hung_since, self._loop_activity.since_s or now_s)
        if self._loop_activity.since_s is None:
            self._loop_activity.since_s = now_s
            self._loop.call_soon_threadsafe(self._loop_answered)

    def _loop_hung_since(self, since_s: float) -> None:
        self._on_loop_stall(time.monotonic() - since_s)

    def _loop_answered(self) -> None:
        self._loop_activity.since_s = None


def _place_of(thread_id: int) -> Place:
    frame = sys._current_frames().get(thread_id)
    place = _place_in(frame)
    del frame
    return place


def _place_in(frame: FrameType | None) -> Place:
    """The innermost call on a log, or else the innermost call of ours."""
    innermost: FrameType | None = None
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("moldau."):
            innermost = innermost or frame
            owner = frame.f_locals.get("self")
            if isinstance(owner, PartitionLog):
                where = f"in {frame.f_code.co_qualname} on {owner.topic_partition}"
                return Place(f"{where} ({owner.segments[-1].path('.log')})", is_log=True)
        frame = frame.f_back
    if innermost is None:
        return Place("outside of our code", is_log=False)
    return Place(f"in {innermost.f_code.co_qualname} ({innermost.f_globals['__name__']})", is_log=False)
