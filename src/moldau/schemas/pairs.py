"""Comparing two graphs of types that may contain themselves, each pair once and not forever.

A pair under way counts as compatible: a recursive type is if everything else about it is. When a pair turns
out not to be, what was concluded meanwhile may rest on that guess and is forgotten. Start at `Pairs.compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.findings import NOTHING, Findings

__all__ = ["Effort", "Pairs"]

_MORE_PER_SCHEMA: Final = 20_000
_CHARACTERS_PER_STEP: Final = 100


class Effort:
    """Counts the steps of a comparison (some ten microseconds each) and ends one that was made to take forever."""

    def __init__(self, limit: int = 300_000) -> None:
        self._left = limit

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise InvalidSchemaError("the schemas are too large or too entangled to be compared")

    def spend_on_text(self, characters: int) -> None:
        """Text takes time to write and memory to keep, findings above all."""
        self.spend(1 + characters // _CHARACTERS_PER_STEP)

    def refill(self) -> None:
        """Allow some more steps: another of many previous schemas is looked at."""
        self._left += _MORE_PER_SCHEMA


class Pairs:
    """What is known about pairs of types in the course of one comparison."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Findings] = {}
        self._guessed: list[Hashable] = []

    def compare(self, pair: Hashable, compare: Callable[[], Findings]) -> Findings:
        """Return what `compare` finds about a pair, calling it at most once for each."""
        known = self._known.get(pair)
        if known is not None:
            return known
        self._known[pair] = NOTHING
        already = len(self._guessed)
        found = compare()
        if found:
            for guess in self._guessed[already:]:
                del self._known[guess]
            del self._guessed[already:]
        else:
            self._guessed.append(pair)
        self._known[pair] = found
        return found
