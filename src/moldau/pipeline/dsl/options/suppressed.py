"""When a table's changes are held back, and how much may be held. Start at `Suppressed`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from moldau.pipeline.dsl.options.given import Duration, milliseconds
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.naming import checked_name
from moldau.pipeline.ir.origin import callers_origin

__all__ = ["BufferConfig", "Suppressed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferConfig(Hinting):
    """How much a suppression may hold, and what happens when that is not enough."""

    records: int | None = None
    bytes: int | None = None
    is_strict: bool = False
    is_logging: bool = True

    @classmethod
    def unbounded(cls) -> BufferConfig:
        """Hold as much as comes; nothing is ever told early."""
        return cls(is_strict=True)

    @classmethod
    def max_records(cls, count: int) -> BufferConfig:
        """Hold at most so many keys; tell the oldest early when there are more."""
        return cls(records=count)

    @classmethod
    def max_bytes(cls, count: int) -> BufferConfig:
        """Hold at most so many bytes; tell the oldest early when there are more."""
        return cls(bytes=count)

    def with_max_records(self, count: int) -> BufferConfig:
        """The same with room for so many keys."""
        return replace(self, records=count)

    def with_max_bytes(self, count: int) -> BufferConfig:
        """The same with room for so many bytes."""
        return replace(self, bytes=count)

    def with_no_bound(self) -> BufferConfig:
        """Hold as much as comes, as `unbounded`."""
        return replace(self, records=None, bytes=None, is_strict=True)

    def shut_down_when_full(self) -> BufferConfig:
        """Stop the pipeline rather than tell anything early."""
        return replace(self, is_strict=True)

    def emit_early_when_full(self) -> BufferConfig:
        """Tell the oldest early rather than stop the pipeline."""
        return replace(self, is_strict=False)

    def with_logging_enabled(self) -> BufferConfig:
        """As in Kafka Streams, and without effect: all state is kept in the checkpoint."""
        return replace(self, is_logging=True)

    def with_logging_disabled(self) -> BufferConfig:
        """As in Kafka Streams, and without effect, as `with_logging_enabled`."""
        return replace(self, is_logging=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed(Hinting):
    """Until when the changes of a table are held back."""

    buffer: BufferConfig
    wait_ms: int | None = None
    """None waits for the window to close."""
    name: str | None = None

    @classmethod
    def until_window_closes(cls, buffer: BufferConfig) -> Suppressed:
        """One result per window and key, once nothing can change it any more."""
        if not buffer.is_strict:
            raise TopologyError(
                "a window's final result cannot be told early: use BufferConfig.unbounded() or shut_down_when_full()",
                callers_origin(),
            )
        return cls(buffer=buffer)

    @classmethod
    def until_time_limit(cls, wait: Duration, buffer: BufferConfig) -> Suppressed:
        """At most one change per key in this time, which is stream time."""
        return cls(buffer=buffer, wait_ms=milliseconds(wait, "the time limit of a suppression"))

    def with_name(self, name: str) -> Suppressed:
        """The same with a name for the operator and its store."""
        return replace(self, name=checked_name(name))
