"""Keys with a window, and how they become bytes: the key, then the times of its window, as Kafka Streams writes them.

Start at `Windowed` and `TimeWindowedSerde`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple

from moldau.serdes.serde import (
    Headers,
    Serde,
    SerdeError,
    T,
    bound_deserializer,
    bound_serializer,
    refuse,
    wants_headers,
)

__all__ = ["MAX_TIME_MS", "SessionWindowedSerde", "TimeWindowedSerde", "Window", "Windowed"]

LONG = struct.Struct(">q")
TWO_LONGS = struct.Struct(">qq")
MAX_TIME_MS = 2**63 - 1


class Window(NamedTuple):
    """A span of time in ms; a time window ends before `end`, a session or sliding window with it."""

    start: int
    """The first moment, in ms since 1970; what `fetch_at` of a window store takes."""
    end: int


class Windowed(NamedTuple, Generic[T]):
    """A key within a window, the key of every windowed table."""

    key: T
    window: Window


@dataclass(frozen=True, slots=True)
class TimeWindowedSerde(Generic[T]):
    """Key, then the window's start; the end is not written, it follows from `window_size_ms`."""

    has_inner: ClassVar[bool] = True

    inner: Serde[T]
    window_size_ms: int

    @property
    def uses_headers(self) -> bool:
        return wants_headers(self.inner)

    def serialize(self, topic: str, value: Windowed[T], headers: Headers | None = None) -> bytes:
        key, window = _parts(value)
        return bound_serializer(self.inner)(topic, key, headers or ()) + LONG.pack(window.start)

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Windowed[T]:
        if len(data) < LONG.size:
            raise SerdeError(f"a windowed key ends with 8 bytes of time, but has only {len(data)} in all")
        (start,) = LONG.unpack_from(data, len(data) - LONG.size)
        window = Window(start, min(start + self.window_size_ms, MAX_TIME_MS))
        return Windowed(bound_deserializer(self.inner)(topic, data[: -LONG.size], headers or ()), window)


@dataclass(frozen=True, slots=True)
class SessionWindowedSerde(Generic[T]):
    """Key, then the session's end and its start."""

    has_inner: ClassVar[bool] = True

    inner: Serde[T]

    @property
    def uses_headers(self) -> bool:
        return wants_headers(self.inner)

    def serialize(self, topic: str, value: Windowed[T], headers: Headers | None = None) -> bytes:
        key, window = _parts(value)
        return bound_serializer(self.inner)(topic, key, headers or ()) + TWO_LONGS.pack(window.end, window.start)

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Windowed[T]:
        if len(data) < TWO_LONGS.size:
            raise SerdeError(f"a session's key ends with 16 bytes of time, but has only {len(data)} in all")
        end, start = TWO_LONGS.unpack_from(data, len(data) - TWO_LONGS.size)
        return Windowed(
            bound_deserializer(self.inner)(topic, data[: -TWO_LONGS.size], headers or ()), Window(start, end)
        )


def _parts(value: Windowed[T]) -> Windowed[T]:
    return value if isinstance(value, Windowed) else refuse(value, "a key with a window (Windowed)")
