"""Keys of windowed results as text, `[key@start/end]`: Kafka Streams' deserializers of windows, by their settings.

Start at `windowed_reader`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping

from moldau.cli.tool import ToolError

__all__ = ["WINDOWED", "windowed_reader"]

Reader = Callable[[bytes], bytes]

WINDOWED = ("timewindowed", "sessionwindowed")
SIZE = "window.size.ms"
INNER = ("windowed.inner.class.serde", "windowed.inner.deserializer.class")
_START = struct.Struct(">q")
_END_AND_START = struct.Struct(">qq")


def windowed_reader(
    name: str, settings: Mapping[str, str], named: Callable[[str | None], Reader | None]
) -> Reader | None:
    """The reader for TimeWindowed or SessionWindowed keys, else None; `named` finds the one for what is inside."""
    if name not in WINDOWED:
        return None
    given = next((settings[key] for key in INNER if settings.get(key)), "String")
    inner = named(re.split(r"[.$]", given)[-1].removesuffix("Serde"))
    return _sessions(inner) if name == "sessionwindowed" else _times(inner, _size_ms(settings))


def _size_ms(settings: Mapping[str, str]) -> int:
    given = settings.get(SIZE, "")
    if not given.isdigit():
        raise ToolError(
            f"TimeWindowedDeserializer needs the size of the windows in ms, and got {given or 'none'}: "
            f"--property key.deserializer.{SIZE}=60000"
        )
    return int(given)


def _times(inner: Reader | None, size_ms: int) -> Reader:
    def deserialize(content: bytes) -> bytes:
        key, (start,) = _parts(content, _START)
        return _shown(inner, key, start, start + size_ms)

    return deserialize


def _sessions(inner: Reader | None) -> Reader:
    def deserialize(content: bytes) -> bytes:
        key, (end, start) = _parts(content, _END_AND_START)
        return _shown(inner, key, start, end)

    return deserialize


def _parts(content: bytes, times: struct.Struct) -> tuple[bytes, tuple[int, ...]]:
    cut = len(content) - times.size
    if cut < 0:
        raise ValueError(f"a windowed key ends with {times.size} bytes of time, and this one has {len(content)} in all")
    return content[:cut], times.unpack_from(content, cut)


def _shown(inner: Reader | None, key: bytes, start: int, end: int) -> bytes:
    return b"[%b@%d/%d]" % (key if inner is None else inner(key), start, end)
