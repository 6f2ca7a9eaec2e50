"""Inconsistencies that a dump finds, collected until all files are read. Start at `Problems.lines`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

__all__ = ["Problems"]

Pairs = dict[str, list[tuple[int, int]]]


@dataclass(slots=True)
class Problems:
    """Findings by file; each is a pair of numbers that should agree and do not."""

    on_note: Callable[[str], None] = lambda line: None
    """Called at once with problems that concern a whole file."""
    index_mismatches: Pairs = field(default_factory=dict)
    timestamp_mismatches: Pairs = field(default_factory=dict)
    timestamps_out_of_order: Pairs = field(default_factory=dict)
    offsets_not_found: Pairs = field(default_factory=dict)
    offset_gaps: Pairs = field(default_factory=dict)

    def note(self, line: str) -> None:
        self.on_note(line)

    def lines(self) -> Iterator[str]:
        """Everything found, in the format and order of Kafka's tool."""
        for path, pairs in self.index_mismatches.items():
            yield f"Mismatches in :{path}"
            for indexed, logged in sorted(dict(pairs).items(), reverse=True):
                yield f"  Index offset: {indexed}, log offset: {logged}"
        for path, pairs in self.timestamp_mismatches.items():
            yield f"Found timestamp mismatch in :{path}"
            for indexed, logged in pairs:
                yield f"  Index timestamp: {indexed}, log timestamp: {logged}"
        for path, pairs in self.timestamps_out_of_order.items():
            yield f"Found out of order timestamp in :{path}"
            for indexed, previous in pairs:
                yield f"  Index timestamp: {indexed}, Previously indexed timestamp: {previous}"
        for pairs in self.offsets_not_found.values():
            yield "The following indexed offsets are not found in the log."
            for indexed, logged in pairs:
                yield f"Indexed offset: {indexed}, found log offset: {logged}"
        for path, pairs in self.offset_gaps.items():
            yield f"Non-consecutive offsets in {path}"
            for before, after in sorted(dict(pairs).items()):
                yield f"  {before} is followed by {after}"
