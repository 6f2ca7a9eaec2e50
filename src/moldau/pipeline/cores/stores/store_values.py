"""How stores hold values in memory: as objects where they are immutable, else serialized.

A *held* value is the form in the cache; a *given* value is what the user sees. Start at `Holding`.
"""

from __future__ import annotations

import struct
from typing import Any

from moldau.pipeline.cores.records import ValueAndTimestamp
from moldau.pipeline.cores.stores.store import Codec

__all__ = ["Holding", "TimestampedHolding", "split_timestamp"]

_TIMESTAMP = struct.Struct(">q")
_new = tuple.__new__


def split_timestamp(data: bytes) -> tuple[bytes, int]:
    """Value and timestamp of an entry that a `TimestampedHolding` wrote."""
    return data[8:], _TIMESTAMP.unpack_from(data)[0]


class Holding:
    """Values of a store without timestamps."""

    __slots__ = ("_decode", "_encode", "_explain", "_is_held_as_is", "_type", "is_plain")

    def __init__(self, codec: Codec) -> None:
        self.is_plain = codec.is_plain
        self._is_held_as_is = codec.is_plain and codec.is_checked
        self._encode = codec.encode_value
        self._decode = codec.decode_value
        self._explain = codec.explain_value
        self._type: type[Any] | None = None
        """The type of values that may be held as objects: the type that deserialization returns."""

    def hold(self, value: Any) -> Any:
        """The held form of a given value; raises where the serde cannot serialize it."""
        if self._is_held_as_is:
            return value
        try:
            data = self._encode(value)
        except Exception:
            self._explain(value)
            raise
        if not self.is_plain:
            return data
        return value if type(value) is self._type else self._as_read(data)

    def _as_read(self, data: bytes) -> Any:
        # An int in a store of doubles must be read as a float right away, not only after a restart.
        value = self._decode(data)
        self._type = type(value)
        return value

    def give(self, held: Any) -> Any:
        """The given form of a held value, never a mutable object that is shared."""
        return held if self.is_plain else self._decode(held)

    def write(self, held: Any) -> bytes:
        """The serialized form of a held value, for the backend."""
        data: bytes = self._encode(held) if self.is_plain else held
        return data

    def read(self, data: bytes) -> Any:
        """The held form of bytes from the backend."""
        return self._decode(data) if self.is_plain else data


class TimestampedHolding(Holding):
    """Values of type `ValueAndTimestamp`, held as such, with the inner value serialized where it is not plain."""

    __slots__ = ()

    def hold(self, value: Any) -> Any:
        return self.hold_row(value[0], value[1])

    def hold_row(self, value: Any, timestamp: int) -> Any:
        """The same for a separate value and timestamp."""
        if self._is_held_as_is:
            return _new(ValueAndTimestamp, (value, timestamp))
        try:
            data = self._encode(value)
        except Exception:
            self._explain(value)
            raise
        if not self.is_plain:
            return _new(ValueAndTimestamp, (data, timestamp))
        if type(value) is not self._type:
            value = self._as_read(data)
        return _new(ValueAndTimestamp, (value, timestamp))

    def give(self, held: Any) -> Any:
        return held if self.is_plain else ValueAndTimestamp(self._decode(held[0]), held[1])

    def write(self, held: Any) -> bytes:
        value, timestamp = held
        return _TIMESTAMP.pack(timestamp) + (self._encode(value) if self.is_plain else value)

    def read(self, data: bytes) -> Any:
        value = self._decode(data[8:]) if self.is_plain else data[8:]
        return ValueAndTimestamp(value, _TIMESTAMP.unpack_from(data)[0])
