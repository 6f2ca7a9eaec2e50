"""Serdes as plain functions of one argument, for the cores.

A serde that needs no topic may offer `encode` and `decode` itself, and say with `is_plain` that its values are
immutable and survive a round trip unchanged; stores then keep such values as objects. A serde that uses headers gets
those of the record being read or written, and none in stores.

A table's change in a repartitioning is one byte that says which values follow (1 new, 2 old, 3 both), the length of the
new value if both follow, then the values. Start at `encoder`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from moldau.pipeline.cores.records import Change
from moldau.serdes.serde import Headers, Serde, bound_deserializer, bound_serializer, wants_headers
from moldau.serdes.windowed import TimeWindowedSerde, Windowed

__all__ = ["CurrentHeaders", "Decode", "Encode", "change_decoder", "change_encoder", "decoder", "encoder", "is_plain"]


Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]
CurrentHeaders = Callable[[], Headers]

_LONG = struct.Struct(">q")


def no_headers() -> Headers:
    """The headers of store entries: none."""
    return ()


def encoder(serde: Serde, topic: str, headers: CurrentHeaders = no_headers) -> Encode:
    """Value to bytes; never called with None. `headers` returns those of the record, for serdes that use them."""
    if wants_headers(serde):
        serialize = bound_serializer(serde)
        return lambda value: serialize(topic, value, headers())
    if isinstance(serde, TimeWindowedSerde):
        return _time_windowed_encoder(encoder(serde.inner, topic))
    encode: Encode | None = getattr(serde, "encode", None)
    return encode if encode is not None else partial(serde.serialize, topic)


def _time_windowed_encoder(encode_key: Encode) -> Encode:
    # Equivalent to the serde, with one call instead of three: this is a hot path.
    pack = _LONG.pack

    def encode(windowed: Windowed) -> bytes:
        key, window = windowed
        return encode_key(key) + pack(window[0])

    return encode


def decoder(serde: Serde, topic: str, headers: CurrentHeaders = no_headers) -> Decode:
    """Bytes to value; never called with None. `headers` is as in `encoder`."""
    if wants_headers(serde):
        deserialize = bound_deserializer(serde)
        return lambda data: deserialize(topic, data, headers())
    decode: Decode | None = getattr(serde, "decode", None)
    return decode if decode is not None else partial(serde.deserialize, topic)


def is_plain(serde: Serde) -> bool:
    """Whether a store may return the same object that was put."""
    return bool(getattr(serde, "is_plain", False))


_LENGTH = struct.Struct(">BI")


def change_encoder(encode: Encode) -> Encode:
    """Write changes with the serializer of their values."""

    def encode_change(change: Change) -> bytes:
        new, old = change[0], change[1]
        if old is None:
            return b"\x01" + encode(new)
        if new is None:
            return b"\x02" + encode(old)
        new_bytes = encode(new)
        return _LENGTH.pack(3, len(new_bytes)) + new_bytes + encode(old)

    return encode_change


def change_decoder(decode: Decode) -> Decode:
    """Read what `change_encoder` wrote."""

    def decode_change(data: bytes) -> Change:
        if data[0] == 1:
            return Change(decode(data[1:]), None)
        if data[0] == 2:
            return Change(None, decode(data[1:]))
        _, length = _LENGTH.unpack_from(data)
        split = _LENGTH.size + length
        return Change(decode(data[_LENGTH.size : split]), decode(data[split:]))

    return decode_change
