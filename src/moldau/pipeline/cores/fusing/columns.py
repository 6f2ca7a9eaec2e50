"""What a fused loop reads and returns: the records of a batch as columns. Start at `InputColumns`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

__all__ = ["ColumnPart", "Counted", "InputColumns", "OutputColumns"]

ColumnPart = Literal["key", "value"]


class InputColumns(Protocol):
    """Records of one topic partition, not yet deserialized; a column is converted when it is asked for."""

    @property
    def count(self) -> int: ...

    def has_nulls(self, part: ColumnPart) -> bool: ...

    def data(self, part: ColumnPart) -> list[bytes | None]:
        """The bytes of each key or value."""
        ...

    def text(self, part: ColumnPart) -> list[str | None]:
        """Each key or value as UTF-8; raises `ValueError` if one is not."""
        ...

    def check_text(self, part: ColumnPart) -> None:
        """Raise `ValueError` if a key or value is not UTF-8, without converting them."""
        ...

    def timestamps(self) -> list[int]: ...

    def partitions(self) -> list[int]: ...

    def offsets(self) -> list[int]: ...

    def time_range(self) -> tuple[int, int]:
        """The smallest and the largest timestamp."""
        ...

    def headers(self) -> list[Any] | None:
        """The headers of each record, or None if no record has any."""
        ...

    def row(self, index: int) -> tuple[Any, ...]:
        """One record, in the order of `InputRecord`."""
        ...


@dataclass(slots=True)
class OutputColumns:
    """The records that left by one output, in order."""

    output: str
    topic: str
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    headers: list[Any] | None = None
    """None if no record has any."""
    partitions: list[int | None] | None = None
    """None if the partition of each record is that of its key."""
    causes: Sequence[int] | None = None
    """For each record the index of the input record that caused it; only where asked for."""


@dataclass(slots=True)
class Counted:
    """How many records of each key left for an aggregation that counts them, and the largest timestamp of each key."""

    counts: dict[bytes, int] = field(default_factory=dict)
    latest: dict[bytes, int] = field(default_factory=dict)
