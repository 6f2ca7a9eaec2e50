"""Drawing the records a case is fed: late, out of order, null, repeated, and close to the borders of windows.

The list is the interleaving: both sides take it in this order. Start at `draw_inputs`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

__all__ = ["draw_inputs"]

KEYS = ("a", "b", "c", "d", "ä")
WORDS = ("x", "y", "z,x", "hello", "q,", "", "ß,y,x", "one,two,three")
BORDERS = (5, 10, 12, 17, 20, 30)


def draw_inputs(
    rng: random.Random,
    topics: Mapping[str, str],
    scale: int,
    *,
    with_wall_clock: bool,
    most: int = 45,
) -> list[dict[str, Any]]:
    """From few to `most` records over the topics, with steps of the wall clock between them where it is looked at."""
    names = list(topics)
    time = _Clock(rng, scale)
    keys = KEYS[: rng.choice((1, 2, 3, 5))]
    events: list[dict[str, Any]] = []
    for _ in range(rng.randint(4, most)):
        if with_wall_clock and rng.random() < 0.2:
            events.append({"advance": rng.choice((1, 5, 20, 50)) * scale})
        topic = rng.choice(names)
        key, value = _key(rng, topics[topic], keys), _value(rng, topics[topic])
        events.append({"topic": topic, "key": key, "value": value, "timestamp": time.next()})
        if rng.random() < 0.15:
            events[-1]["headers"] = [["h", rng.choice(("1", "2"))], ["i", None]][: rng.choice((1, 2))]
        if rng.random() < 0.08:
            events.append(dict(events[-1]))
    if with_wall_clock:
        events.append({"advance": 100 * scale})
    return events


def _key(rng: random.Random, role: str, keys: tuple[str, ...]) -> str | None:
    if role in ("global", "table") and rng.random() < 0.4:
        # Rows that buckets and first letters point to, so that joins by another key find something.
        return rng.choice(("b0", "b1", "b2", "b3", "k0", "k1", "x", "h", "o"))
    return None if rng.random() < 0.05 else rng.choice(keys)


def _value(rng: random.Random, role: str) -> str | None:
    if rng.random() < (0.08 if role == "stream" else 0.2):
        return None
    return rng.choice(WORDS) + (str(rng.randrange(100)) if rng.random() < 0.5 else "")


class _Clock:
    """Timestamps that mostly go forward, like to stop at borders, and sometimes fall back."""

    def __init__(self, rng: random.Random, scale: int) -> None:
        self._rng, self._scale = rng, scale
        self._now = rng.choice((0, 0, 3, 100, 1000))
        self._pace = rng.choice((1, 3, 8))

    def next(self) -> int:
        rng = self._rng
        drawn = rng.random()
        if drawn < 0.55:
            self._now += rng.randint(0, self._pace)
        elif drawn < 0.7:
            border = rng.choice(BORDERS)
            self._now = (self._now // border + 1) * border + rng.choice((-1, 0, 1))
        elif drawn < 0.75:
            self._now += rng.choice((15, 40, 100))
        elif drawn < 0.8:
            return self._milliseconds(self._now)
        else:
            return self._milliseconds(max(0, self._now - rng.randint(1, rng.choice((2, 10, 40)))))
        return self._milliseconds(self._now)

    def _milliseconds(self, units: int) -> int:
        """Now and then a millisecond beside the unit, where the unit is longer."""
        nudge = self._rng.choice((-1, 0, 0, 0, 1)) if self._scale > 1 else 0
        return max(0, units * self._scale + nudge)
