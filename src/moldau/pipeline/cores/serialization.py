"""Serdes as cores call them: plain functions of one argument.

A serde that does not care for topics may offer `encode` and `decode` itself, and say with `is_plain` that its values
are immutable and come back as they were; stores then keep such values as they are. Start at `encoder`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from moldau.pipeline.ir.serdes import Serde
from moldau.pipeline.ir.windowed_serdes import TimeWindowedSerde
from moldau.pipeline.ir.windows import Windowed

__all__ = ["Decode", "Encode", "decoder", "encoder", "is_plain"]

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]

_LONG = struct.Struct(">q")


def encoder(serde: Serde, topic: str) -> Encode:
    """Value to bytes; never called with None."""
    if isinstance(serde, TimeWindowedSerde):
        return _time_windowed_encoder(encoder(serde.inner, topic))
    encode: Encode | None = getattr(serde, "encode", None)
    return encode if encode is not None else partial(serde.serialize, topic)


def _time_windowed_encoder(encode_key: Encode) -> Encode:
    # What the serde does, with one call instead of three: windowed results are many.
    pack = _LONG.pack

    def encode(windowed: Windowed) -> bytes:
        key, window = windowed
        return encode_key(key) + pack(window[0])

    return encode


def decoder(serde: Serde, topic: str) -> Decode:
    """Bytes to value; never called with None."""
    decode: Decode | None = getattr(serde, "decode", None)
    return decode if decode is not None else partial(serde.deserialize, topic)


def is_plain(serde: Serde) -> bool:
    """Whether a store may hand out the very object it was given."""
    return bool(getattr(serde, "is_plain", False))
