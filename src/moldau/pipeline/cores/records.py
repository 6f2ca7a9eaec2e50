"""The data that flows through a task: records, changes of tables, and the rows of its inputs and outputs.

All are tuples, which are cheap to create for every record. Start at `Record`.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple

from moldau.pipeline.ir.type_variables import KR, VR, K, V
from moldau.serdes.windowed import Window, Windowed

__all__ = [
    "NO_TIMESTAMP",
    "Change",
    "Headers",
    "InputRecord",
    "OutdatedChange",
    "OutputRecord",
    "OutputRow",
    "Record",
    "ValueAndTimestamp",
    "Window",
    "Windowed",
]

Headers = tuple[tuple[str, bytes | None], ...]

NO_TIMESTAMP = -1
"""Stream time before the first record."""


class Record(NamedTuple, Generic[K, V]):
    """One record between two operators; in a table's branch the value is a `Change`."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: KR) -> Record[KR, V]:
        """The same record with another key."""
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: VR) -> Record[K, VR]:
        """The same record with another value."""
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        """The same record with another timestamp."""
        return self._replace(timestamp=timestamp)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        """The same record with other headers."""
        return self._replace(headers=headers)


class Change(NamedTuple):
    """A change of a row of a table; `old` is None also where old values are not sent."""

    new: Any
    old: Any


class OutdatedChange(Change):
    """A change of an old version in a versioned table; the current row is unchanged."""

    __slots__ = ()


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A row of a table and the timestamp of its last change."""

    value: V
    timestamp: int


class InputRecord(NamedTuple):
    """A record from a topic or from another sub-topology, not yet deserialized."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    headers: Headers
    key: bytes | None
    value: bytes | None


class OutputRecord(NamedTuple):
    """A serialized result; `output` is the name of the sink or repartition node."""

    output: str
    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers
    partition: int | None


OutputRow = tuple[str, str, bytes | None, bytes | None, int, Headers, int | None]
"""An `OutputRecord` as a plain tuple, with the same fields in the same order, which is cheaper."""
