"""Compares two graphs of types that may be recursive, without endless recursion.

A pair whose comparison is in progress counts as compatible: a recursive type is compatible if everything else in
it is. If a pair turns out to be incompatible, the results found in the meantime may depend on that assumption and
are discarded. Start at `Pairs.compare`.
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
    """Counts the steps of a comparison (about ten microseconds each) and aborts one that takes too many."""

    def __init__(self, limit: int = 300_000) -> None:
        self._left = limit

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise InvalidSchemaError("the schemas are too large or too complex to be compared")

    def spend_on_text(self, characters: int) -> None:
        """Count steps for a text: texts, above all in findings, need time and memory."""
        self.spend(1 + characters // _CHARACTERS_PER_STEP)

    def refill(self) -> None:
        """Allow some more steps for the next of many previous schemas."""
        self._left += _MORE_PER_SCHEMA


class Pairs:
    """The results for pairs of types during one comparison."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Findings] = {}
        self._guessed: list[Hashable] = []

    def compare(self, pair: Hashable, compare: Callable[[], Findings]) -> Findings:
        """Return the findings of `compare` for a pair; it is called only if there is no result for the pair yet."""
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
