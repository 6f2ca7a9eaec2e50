"""Writes the Python source of a fused loop: lines with indentation, names for objects, and who a line belongs to.

A record between two processors is a `Flow`: the names of the variables that hold its parts. A key or value that was not
changed since it was read keeps the bytes it was read from, so that it need not be serialized again, and is not even
deserialized if nobody looks at it. Start at `Emitter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.pipeline.cores.fusing.columns import ColumnPart
from moldau.serdes.plain import BytesSerde, IntegerSerde, LongSerde, ShortSerde, StringSerde
from moldau.serdes.serde import Serde

if TYPE_CHECKING:
    from moldau.pipeline.cores.processor import Processor

__all__ = ["Emitter", "Flow", "Line", "NotFusedError", "Part", "is_exact", "is_text"]


class NotFusedError(Exception):
    """A processor cannot be part of a fused loop; the record-by-record way is taken."""


EXACT = (BytesSerde, LongSerde, IntegerSerde, ShortSerde)


def is_text(serde: Serde) -> bool:
    """Whether values are UTF-8 text."""
    return type(serde) is StringSerde and serde.encoding == "utf-8"


def is_exact(serde: Serde) -> bool:
    """Whether bytes that were deserialized and serialized again are always the same bytes."""
    return is_text(serde) or type(serde) in EXACT


@dataclass(frozen=True)
class Part:
    """A key or a value: a variable with the object, and expressions for its bytes in known formats."""

    variable: str
    """The variable that holds the object, once `name` was called."""
    make: Callable[[], str] | None = None
    """Makes the loop set the variable where it does not by itself; returns its name."""
    encoded: tuple[tuple[Serde, Callable[[], str]], ...] = ()
    may_be_null: bool = True
    null_test: Callable[[], str] | None = None
    """An expression that is true for null, if that is known without the object."""

    def name(self) -> str:
        """The variable with the object; asking for it may add lines to the loop."""
        return self.variable if self.make is None else self.make()

    def is_null(self) -> str:
        """An expression that is true for null."""
        return f"{self.name()} is None" if self.null_test is None else self.null_test()

    def data(self, serde: Serde) -> str | None:
        """An expression for its bytes with this serde, if they are known; null gives None."""
        return next((expression() for known, expression in self.encoded if known == serde), None)


@dataclass(frozen=True)
class Flow:
    """The variables of a record."""

    key: Part
    value: Part
    timestamp: str


@dataclass(frozen=True)
class Line:
    """The processor that a line of the loop belongs to, and the variables of the record that it was given."""

    processor: Processor
    key: str
    value: str
    timestamp: str


@dataclass
class Emitter:
    """The source of one loop, as it grows."""

    has_nulls: dict[ColumnPart, bool]
    has_headers: bool
    notes_causes: bool
    """Whether each output must say which record caused it."""
    counts: bool
    """Whether records that are repartitioned are only counted."""
    is_sorted: bool
    """Whether timestamps never decrease."""
    lines: list[str] = field(default_factory=list)
    owners: dict[int, Line] = field(default_factory=dict)
    bound: dict[str, Any] = field(default_factory=dict)
    columns: set[str] = field(default_factory=set)
    """The columns that the loop reads: `key`, `value` (objects), `key_data`, `value_data` (bytes), `timestamp`."""
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    """Lines ahead of the loop and behind it."""
    outputs: list[tuple[Any, str]] = field(default_factory=list)
    """The processors of outputs, and the prefix of the lists that they fill."""
    depth: int = 2
    _number: int = 0
    _owner: Line | None = None

    def new(self, stem: str) -> str:
        """A name that is not in use."""
        self._number += 1
        return f"{stem}{self._number}"

    def bind(self, stem: str, value: Any) -> str:
        """A name for an object that the loop uses."""
        name = self.new(stem)
        self.bound[name] = value
        return name

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)
        if self._owner is not None:
            self.owners[len(self.lines) - 1] = self._owner

    @contextmanager
    def block(self, line: str) -> Iterator[None]:
        """Indented lines below this one."""
        self.add(line)
        depth = self.depth
        self.depth += 1
        yield
        self.depth = depth

    @contextmanager
    def owned_by(self, processor: Processor, flow: Flow) -> Iterator[None]:
        """Lines of this processor: a failure there is reported as its failure with this record."""
        outer = self._owner
        self._owner = Line(processor, flow.key.variable, flow.value.variable, flow.timestamp)
        yield
        self._owner = outer

    def column(self, name: str) -> str:
        """The variable of a column in the current record."""
        self.columns.add(name)
        return name

    def variable(self, expression: str, stem: str) -> str:
        """A variable with the value of an expression."""
        name = self.new(stem)
        self.add(f"{name} = {expression}")
        return name
