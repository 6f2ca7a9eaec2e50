"""Punctuation: periodic callbacks of processors, which continue after a restart.

A schedule by stream time is due with the first record and then at every multiple of its interval that stream time
reaches; one by the wall clock is due an interval after it was created. Missed times result in a single call. The task
calls when time has advanced. Schedules that a processor creates while it starts are persisted with their next due time;
those created later live as long as the task. Start at `Punctuations`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.records import NO_TIMESTAMP

if TYPE_CHECKING:
    from moldau.pipeline.cores.context import Cell, TaskContext

__all__ = ["Cancellable", "InvalidScheduleError", "PunctuationType", "Punctuations"]


class PunctuationType(Enum):
    """Which clock drives a schedule."""

    STREAM_TIME = "stream-time"
    """The largest timestamp among the task's records; without records there are no calls."""
    WALL_CLOCK_TIME = "wall-clock-time"
    """The time of day."""


class InvalidScheduleError(MoldauError):
    """A processor created a schedule with an invalid interval, type or start."""


class Cancellable:
    """One schedule; `cancel()` ends it, also from within its own callback."""

    __slots__ = ("_callback", "_cell", "_interval_ms", "_sequence", "_time", "is_cancelled", "kind", "owner")

    def __init__(
        self, owner: str, kind: PunctuationType, interval_ms: int, callback: Callable[[int], None], cell: Cell | None
    ) -> None:
        self.owner = owner
        self.kind = kind
        self.is_cancelled = False
        self._interval_ms = interval_ms
        self._callback = callback
        self._cell = cell
        self._time: int | None = None
        self._sequence = 0

    def cancel(self) -> None:
        """Stop the schedule."""
        self.is_cancelled = True
        self._save()

    def __lt__(self, other: Cancellable) -> bool:
        return (self._time, self._sequence) < (other._time, other._sequence)

    def due_at(self, time: int | None, sequence: int) -> None:
        self._time = time
        self._sequence = sequence
        self._save()

    def is_due(self, now: int) -> bool:
        return self._time is not None and self._time <= now

    def after(self, now: int) -> int:
        """The first due time of the schedule after now."""
        assert self._time is not None
        missed = max(0, (now - self._time) // self._interval_ms)
        return self._time + (missed + 1) * self._interval_ms

    def call(self, now: int) -> None:
        self._callback(now)

    def first_after(self, now: int) -> int:
        return now + self._interval_ms

    def _save(self) -> None:
        if self._cell is not None:
            state = [self.kind.value, self._interval_ms, self._time, self._sequence, self.is_cancelled]
            self._cell.value = state

    def restore(self) -> bool:
        """Continue as before a restart; false where the persisted schedule differs from this one."""
        state: list[Any] | None = self._cell.value if self._cell is not None else None
        if state is None or state[:2] != [self.kind.value, self._interval_ms]:
            return False
        _, _, self._time, self._sequence, self.is_cancelled = state
        return True


class Punctuations:
    """The schedules of one task."""

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self._queues: dict[PunctuationType, list[Cancellable]] = {kind: [] for kind in PunctuationType}
        self._waiting: list[Cancellable] = []
        """Schedules by the wall clock that were created before its time was known."""
        self._made: Counter[str] = Counter()
        self._sequence = 0
        self._wall_clock: int | None = None
        self.is_starting = True
        """Whether processors are being started: only schedules created then are persisted."""

    @property
    def wall_clock_ms(self) -> int | None:
        """The wall clock time as of the last update."""
        return self._wall_clock

    @property
    def has_wall_clock_schedules(self) -> bool:
        """Whether there are schedules by the wall clock."""
        return bool(self._waiting or self._queues[PunctuationType.WALL_CLOCK_TIME])

    def schedule(
        self,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
        *,
        owner: str = "",
        start_ms: int | None = None,
    ) -> Cancellable:
        """Call back every `interval_ms`; with `start_ms` at that time plus multiples of the interval."""
        if not isinstance(interval_ms, int):
            raise InvalidScheduleError(
                f"{owner}: a schedule needs an interval in ms or a timedelta, not {interval_ms!r}"
            )
        if not isinstance(kind, PunctuationType):
            kinds = " or ".join(map(str, PunctuationType))
            raise InvalidScheduleError(f"{owner}: the type of a schedule is {kinds}, not {kind!r}")
        if interval_ms < 1:
            raise InvalidScheduleError(f"{owner}: a schedule needs an interval of at least 1 ms, not {interval_ms}")
        if start_ms is not None and start_ms < 0:
            raise InvalidScheduleError(f"{owner}: a schedule cannot start before the epoch, at {start_ms}")
        schedule = Cancellable(owner, kind, interval_ms, callback, self._cell(owner))
        if schedule.restore():
            self._sequence = max(self._sequence, schedule._sequence + 1)
            self._enqueue(schedule)
        else:
            self._begin(schedule, start_ms)
        return schedule

    def punctuate_stream_time(self) -> None:
        """Run the schedules that stream time has reached; called after every record."""
        queue = self._queues[PunctuationType.STREAM_TIME]
        if queue and self._context.stream_time != NO_TIMESTAMP:
            self._punctuate(queue, self._context.stream_time)

    def tell_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock time, and start the schedules that were created before it was known."""
        self._wall_clock = now_ms
        waiting, self._waiting = self._waiting, []
        for schedule in waiting:
            self._begin(schedule, None)

    def punctuate_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock time, and run the schedules that are due."""
        self.tell_wall_clock(now_ms)
        self._punctuate(self._queues[PunctuationType.WALL_CLOCK_TIME], now_ms)

    def _begin(self, schedule: Cancellable, start_ms: int | None) -> None:
        is_wall_clock = schedule.kind is PunctuationType.WALL_CLOCK_TIME
        if start_ms is not None:
            schedule.due_at(start_ms, self._next_sequence())
            now = self._wall_clock if is_wall_clock else self._context.stream_time
            if now is not None and start_ms < now:
                schedule.due_at(schedule.after(now), self._next_sequence())
        elif not is_wall_clock:
            schedule.due_at(0, self._next_sequence())
        elif self._wall_clock is None:
            self._waiting.append(schedule)
            return
        else:
            schedule.due_at(schedule.first_after(self._wall_clock), self._next_sequence())
        self._enqueue(schedule)

    def _enqueue(self, schedule: Cancellable) -> None:
        if not schedule.is_cancelled:
            heappush(self._queues[schedule.kind], schedule)

    def _punctuate(self, queue: list[Cancellable], now: int) -> None:
        while queue and queue[0].is_due(now):
            schedule = heappop(queue)
            if schedule.is_cancelled:
                continue
            # In a callback there is no current record.
            self._context.current = None
            schedule.call(now)
            if not schedule.is_cancelled:
                schedule.due_at(schedule.after(now), self._next_sequence())
                heappush(queue, schedule)

    def _cell(self, owner: str) -> Cell | None:
        if not self.is_starting:
            return None
        number = self._made[owner]
        self._made[owner] += 1
        return self._context.cell(f"punctuation-{owner}-{number}", None)

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence
