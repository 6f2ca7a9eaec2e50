"""A table's change as bytes, for its way to an aggregation in another partition.

Layout: one byte that says which of the two values follow (1 new, 2 old, 3 both), the length of the new value where both
do, then the values.
"""

from __future__ import annotations

import struct

from moldau.pipeline.cores.records import Change
from moldau.pipeline.cores.serialization import Decode, Encode

__all__ = ["change_decoder", "change_encoder"]

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
