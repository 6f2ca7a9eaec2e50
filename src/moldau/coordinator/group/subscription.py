"""Which topics a member of the `consumer` protocol type asks for, read from what it tells its leader.

The coordinator hands that metadata on unread; only keeping and deleting offsets depends on the topics in it.

    version int16 | topics [string] | …what the assignors add
"""

from __future__ import annotations

import struct

__all__ = ["subscribed_topics"]

_INT16 = struct.Struct(">h")
_VERSION_AND_COUNT = struct.Struct(">hi")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics, or `None` where the bytes are not a consumer's subscription."""
    try:
        _, count = _VERSION_AND_COUNT.unpack_from(metadata)
        position = _VERSION_AND_COUNT.size
        if not 0 <= count <= len(metadata):
            return None
        topics = []
        for _ in range(count):
            (length,) = _INT16.unpack_from(metadata, position)
            position += _INT16.size
            if length < 0 or position + length > len(metadata):
                return None
            topics.append(metadata[position : position + length].decode())
            position += length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)
