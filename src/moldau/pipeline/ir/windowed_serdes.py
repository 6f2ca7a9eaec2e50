"""How windowed keys become bytes: the key, then the times of its window, as Kafka writes them.

Plain serdes are in `serdes`. Start at `TimeWindowedSerde`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Generic

from moldau.pipeline.ir.errors import SerdeError
from moldau.pipeline.ir.serdes import Serde
from moldau.pipeline.ir.type_variables import K
from moldau.pipeline.ir.windows import Window, Windowed

__all__ = ["SessionWindowedSerde", "TimeWindowedSerde"]

LONG = struct.Struct(">q")
TWO_LONGS = struct.Struct(">qq")
MAX_TIME_MS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TimeWindowedSerde(Generic[K]):
    """Key, then the window's start; the end is not written, it follows from `window_size_ms`."""

    inner: Serde[K]
    window_size_ms: int

    def serialize(self, topic: str, value: Windowed[K], /) -> bytes:
        return self.inner.serialize(topic, value.key) + LONG.pack(value.window.start)

    def deserialize(self, topic: str, data: bytes, /) -> Windowed[K]:
        if len(data) < LONG.size:
            raise SerdeError(f"a windowed key ends with 8 bytes of time, but has only {len(data)} in all")
        (start,) = LONG.unpack_from(data, len(data) - LONG.size)
        window = Window(start, min(start + self.window_size_ms, MAX_TIME_MS))
        return Windowed(self.inner.deserialize(topic, data[: -LONG.size]), window)


@dataclass(frozen=True, slots=True)
class SessionWindowedSerde(Generic[K]):
    """Key, then the session's end and its start."""

    inner: Serde[K]

    def serialize(self, topic: str, value: Windowed[K], /) -> bytes:
        return self.inner.serialize(topic, value.key) + TWO_LONGS.pack(value.window.end, value.window.start)

    def deserialize(self, topic: str, data: bytes, /) -> Windowed[K]:
        if len(data) < TWO_LONGS.size:
            raise SerdeError(f"a session's key ends with 16 bytes of time, but has only {len(data)} in all")
        end, start = TWO_LONGS.unpack_from(data, len(data) - TWO_LONGS.size)
        return Windowed(self.inner.deserialize(topic, data[: -TWO_LONGS.size]), Window(start, end))
