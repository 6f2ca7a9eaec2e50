"""Field codecs of the hot paths: take a buffer and a position, return a value and the next position.

Nothing here copies more than a name, and every length is checked against the end of the frame before it is used. All
other APIs are decoded by `protocol.messages`. Start at `uvarint`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from moldau.protocol.api import MalformedRequestError

__all__ = [
    "MAX_ELEMENTS",
    "NodeEndpoint",
    "after_tags",
    "array_length",
    "compact_array_length",
    "encode_compact_string",
    "encode_node_endpoints",
    "encode_string",
    "encode_uvarint",
    "nullable_bytes",
    "uvarint",
]

MAX_ELEMENTS: Final = 1 << 18
"""Topics and partitions in one request: an element of a few bytes on the wire takes hundreds in memory."""

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


def uvarint(view: memoryview, position: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint of at most five bytes and 32 bits."""
    value = shift = 0
    while position < end and shift < 35:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
        shift += 7
    raise MalformedRequestError("a varint is cut off or longer than 32 bits")


def encode_uvarint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def after_tags(view: memoryview, position: int, end: int) -> int:
    """Skip a section of tagged fields, whatever they are."""
    count, position = uvarint(view, position, end)
    for _ in range(count):
        _, position = uvarint(view, position, end)
        length, position = uvarint(view, position, end)
        position += length
        if position > end:
            raise MalformedRequestError("a tagged field is longer than its frame")
    return position


def array_length(view: memoryview, position: int, end: int) -> tuple[int, int]:
    """Read a classic array's length; null counts as empty, and each element takes at least a byte."""
    (length,) = _INT32.unpack_from(view, position)
    position += 4
    if length > end - position:
        raise MalformedRequestError(f"an array claims {length} elements in {end - position} bytes")
    return max(length, 0), position


def compact_array_length(view: memoryview, position: int, end: int) -> tuple[int, int]:
    """Read a compact array's length; null counts as empty, and each element takes at least a byte."""
    length, position = uvarint(view, position, end)
    if length - 1 > end - position:
        raise MalformedRequestError(f"an array claims {length - 1} elements in {end - position} bytes")
    return max(length - 1, 0), position


def nullable_bytes(view: memoryview, position: int, end: int, *, is_flexible: bool) -> tuple[bytes | None, int]:
    """Read a string or a blob of at most 32767 bytes, undecoded; `None` for null."""
    if is_flexible:
        length, position = uvarint(view, position, end)
        length -= 1
    else:
        (length,) = _INT16.unpack_from(view, position)
        position += 2
    if length < 0:
        return None, position
    stop = position + length
    if stop > end or length > 0x7FFF:
        raise MalformedRequestError(f"a string claims {length} bytes where {end - position} are left")
    return bytes(view[position:stop]), stop


def encode_string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    encoded = text.encode()[:0x7FFF]
    return _INT16.pack(len(encoded)) + encoded


def encode_compact_string(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    encoded = text.encode()[:0x7FFF]
    return encode_uvarint(len(encoded) + 1) + encoded


class NodeEndpoint(NamedTuple):
    """The address of a partition's leader on another broker."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def encode_node_endpoints(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The tagged section that ends a Produce or Fetch response: tag 0 if there are endpoints, else nothing."""
    if not endpoints:
        return b"\0"
    field = encode_uvarint(len(endpoints) + 1) + b"".join(
        _INT32.pack(node.node_id)
        + encode_compact_string(node.host)
        + _INT32.pack(node.port)
        + encode_compact_string(node.rack)
        + b"\0"
        for node in endpoints
    )
    return b"\x01\x00" + encode_uvarint(len(field)) + field
