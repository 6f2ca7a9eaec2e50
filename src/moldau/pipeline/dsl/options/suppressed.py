"""The options of `KTable.suppress`: how long changes are held back, and how many. Start at `Suppressed`."""

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
    """The size limit of a suppression's buffer, and what happens when the buffer is full."""

    records: int | None = None
    bytes: int | None = None
    is_strict: bool = False
    is_logging: bool = True

    @classmethod
    def unbounded(cls) -> BufferConfig:
        """A buffer without a limit; nothing is emitted early."""
        return cls(is_strict=True)

    @classmethod
    def max_records(cls, count: int) -> BufferConfig:
        """A buffer of at most `count` keys; when it is full, the oldest change is emitted early."""
        return cls(records=count)

    @classmethod
    def max_bytes(cls, count: int) -> BufferConfig:
        """A buffer of at most `count` bytes; when it is full, the oldest change is emitted early."""
        return cls(bytes=count)

    def with_max_records(self, count: int) -> BufferConfig:
        """These options with a limit of `count` keys."""
        return replace(self, records=count)

    def with_max_bytes(self, count: int) -> BufferConfig:
        """These options with a limit of `count` bytes."""
        return replace(self, bytes=count)

    def with_no_bound(self) -> BufferConfig:
        """These options without a limit, as with `unbounded`."""
        return replace(self, records=None, bytes=None, is_strict=True)

    def shut_down_when_full(self) -> BufferConfig:
        """When the buffer is full, stop the pipeline instead of emitting a change early."""
        return replace(self, is_strict=True)

    def emit_early_when_full(self) -> BufferConfig:
        """When the buffer is full, emit the oldest change early instead of stopping the pipeline."""
        return replace(self, is_strict=False)

    def with_logging_enabled(self) -> BufferConfig:
        """Accepted for compatibility with Kafka Streams; no effect: all state is kept in the checkpoint."""
        return replace(self, is_logging=True)

    def with_logging_disabled(self) -> BufferConfig:
        """Accepted for compatibility with Kafka Streams; no effect, see `with_logging_enabled`."""
        return replace(self, is_logging=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed(Hinting):
    """How long the changes of a table are held back."""

    buffer: BufferConfig
    wait_ms: int | None = None
    """None means: until the window closes."""
    name: str | None = None

    @classmethod
    def until_window_closes(cls, buffer: BufferConfig) -> Suppressed:
        """Emit one final result per window and key, when the window has closed and its result cannot change."""
        if not buffer.is_strict:
            raise TopologyError(
                "a window's final result cannot be emitted early: use BufferConfig.unbounded() or "
                "shut_down_when_full()",
                callers_origin(),
            )
        return cls(buffer=buffer)

    @classmethod
    def until_time_limit(cls, wait: Duration, buffer: BufferConfig) -> Suppressed:
        """Emit at most one change per key within `wait`, measured in stream time.

        `Suppressed.until_time_limit(timedelta(seconds=10), BufferConfig.max_records(1000))`
        """
        return cls(buffer=buffer, wait_ms=milliseconds(wait, "the time limit of a suppression"))

    def with_name(self, name: str) -> Suppressed:
        """These options with a name for the operator and its store."""
        return replace(self, name=checked_name(name))
