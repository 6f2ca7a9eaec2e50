"""Windowed keys and their serdes: the key, then the times of its window, in the format of Kafka Streams.

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
    """A time range in ms; `end` is exclusive for a time window, inclusive for a session or sliding window."""

    start: int
    """Start time in ms since 1970, inclusive; the argument of `fetch_at` of a window store."""
    end: int


class Windowed(NamedTuple, Generic[T]):
    """A key and its window; the key type of every windowed table."""

    key: T
    window: Window


@dataclass(frozen=True, slots=True)
class TimeWindowedSerde(Generic[T]):
    """The key, then the window's start. The end is not written; it is computed from `window_size_ms`."""

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
    """The key, then the session's end and its start."""

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
