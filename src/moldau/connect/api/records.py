"""Records as connectors see them: data with schemas, on the way to or from a topic.

A record is changed by making another with `changed`; the schemas and values in it are shared and never changed in
place. Start at `SourceRecord` and `SinkRecord`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from moldau.core.ids import TopicPartition
from moldau.formats.registry.data_schema import DataSchema

__all__ = ["ConnectRecord", "Header", "SinkRecord", "SourceRecord"]


class Header(NamedTuple):
    """A header of a record."""

    key: str
    value: Any
    schema: DataSchema | None = None


@dataclass(slots=True, kw_only=True)
class ConnectRecord:
    """What the records of sources and sinks have in common, and all that transforms see."""

    topic: str
    partition: int | None = None
    """Of the topic; a source that leaves it out lets the producer choose."""

    key: Any = None
    key_schema: DataSchema | None = None
    value: Any = None
    value_schema: DataSchema | None = None
    timestamp: int | None = None
    """Milliseconds since the epoch."""

    headers: tuple[Header, ...] = ()

    def changed(self, **changes: Any) -> Self:
        """The same record with other fields."""
        other = copy.copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        return other


@dataclass(slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record that a source task made."""

    source_partition: Mapping[str, Any] = field(default_factory=dict)
    """Which part of the source it is from, for example `{"filename": "/var/log/x"}`; JSON values only."""

    source_offset: Mapping[str, Any] | None = None
    """Where in that part to go on after this record, for example `{"position": 17}`; None stores nothing."""


@dataclass(slots=True, kw_only=True)
class SinkRecord(ConnectRecord):
    """A record that was read from a topic."""

    offset: int = 0
    timestamp_type: str = "CreateTime"
    """`CreateTime`, `LogAppendTime` or `NoTimestampType`."""

    original_topic: str | None = None
    original_partition: int | None = None
    """Where the record was read, if a transform changed it."""

    raw: Any = None
    """The record as it was consumed; the worker's, for dead letters."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Where the record was read, whatever transforms did to its topic."""
        return TopicPartition(
            self.topic if self.original_topic is None else self.original_topic,
            (self.partition or 0) if self.original_partition is None else self.original_partition,
        )
