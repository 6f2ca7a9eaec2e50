"""The kernel of a simulation: one clock, one source of chance, and the events to come.

Nothing else may bring in time or chance, so that a seed always gives the same run. Actions at the same moment happen in
the order in which they were planned. The last events are kept as text, to be printed when a run fails.

    kernel = Kernel(seed=7)
    kernel.after(10, lambda: kernel.note("ten milliseconds later"))
    kernel.run_until(100)
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from random import Random

__all__ = ["InvariantError", "Kernel"]

KEPT_NOTES = 400


class InvariantError(AssertionError):
    """Something happened that must never happen; `invariant` names the rule that was broken."""

    def __init__(self, invariant: str, details: str) -> None:
        super().__init__(f"{invariant}: {details}")
        self.invariant = invariant


class Kernel:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now_ms = 1_000
        self.counters: dict[str, int] = {}
        """How often things happened, so that a test can prove that they do."""
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._planned = 0
        self._notes: deque[tuple[int, str, tuple[object, ...]]] = deque(maxlen=KEPT_NOTES)

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Plan an action."""
        self._planned += 1
        heapq.heappush(self._events, (self.now_ms + max(0, delay_ms), self._planned, action))

    def run_until(self, time_ms: int) -> None:
        """Let everything happen that is planned up to `time_ms`, and what follows from it up to then."""
        events = self._events
        while events and events[0][0] <= time_ms:
            self.now_ms, _, action = heapq.heappop(events)
            action()
        self.now_ms = time_ms

    def run_for(self, duration_ms: int) -> None:
        self.run_until(self.now_ms + duration_ms)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def count(self, what: str, times: int = 1) -> None:
        self.counters[what] = self.counters.get(what, 0) + times

    def note(self, text: str, *values: object) -> None:
        """Remember an event; it is made into text only when it is printed."""
        self._notes.append((self.now_ms, text, values))

    def story(self, lines: int = 60) -> str:
        """The last events, oldest first."""
        last = list(self._notes)[-lines:]
        return "\n".join(f"{time_ms:>8} ms  {text % values if values else text}" for time_ms, text, values in last)
