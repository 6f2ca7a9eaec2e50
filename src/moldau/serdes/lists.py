"""Serde for lists, in the format of Kafka's list serde. Start at `ListSerde`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from moldau.serdes.plain import DoubleSerde, FloatSerde, IntegerSerde, LongSerde, ShortSerde, UuidSerde
from moldau.serdes.serde import (
    Headers,
    Serde,
    SerdeError,
    T,
    bound_deserializer,
    bound_serializer,
    refuse,
    short_repr,
    wants_headers,
)

__all__ = ["ListSerde"]

FIXED_SIZES: dict[type, int] = {
    ShortSerde: 2,
    IntegerSerde: 4,
    LongSerde: 8,
    FloatSerde: 4,
    DoubleSerde: 8,
    UuidSerde: 36,
}
"""Entry sizes in bytes of the serdes whose entries Kafka's list serde writes without a length prefix."""

INT = struct.Struct(">i")
CONSTANT_SIZE, VARIABLE_SIZE, NULL_SIZE = 0, 1, -1


@dataclass(frozen=True, slots=True)
class ListSerde(Generic[T]):
    """Lists of values of `inner`, which may include nulls; entries of fixed size have no length prefix."""

    has_inner: ClassVar[bool] = True

    inner: Serde[T]

    @property
    def uses_headers(self) -> bool:
        return wants_headers(self.inner)

    def serialize(self, topic: str, value: Sequence[T | None], headers: Headers | None = None) -> bytes:
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            refuse(value, "a list")
        serialize = bound_serializer(self.inner)
        is_fixed = type(self.inner) in FIXED_SIZES
        entries = [None if entry is None else serialize(topic, entry, headers or ()) for entry in value]
        parts = [bytes([CONSTANT_SIZE if is_fixed else VARIABLE_SIZE])]
        if is_fixed:
            nulls = [index for index, entry in enumerate(entries) if entry is None]
            parts += [INT.pack(len(nulls)), *map(INT.pack, nulls)]
        parts.append(INT.pack(len(entries)))
        for entry in entries:
            if not is_fixed:
                parts.append(INT.pack(NULL_SIZE if entry is None else len(entry)))
            parts.append(entry or b"")
        return b"".join(parts)

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> list[T | None]:
        deserialize = bound_deserializer(self.inner)
        try:
            pieces = list(_fixed_pieces(data, self.inner) if data[0] == CONSTANT_SIZE else _sized_pieces(data))
        except (struct.error, IndexError):
            raise SerdeError(f"{short_repr(data)} is not a list: it ends too early") from None
        return [None if piece is None else deserialize(topic, piece, headers or ()) for piece in pieces]


class _Reading:
    """Reader of bytes, starting at the second one; raises `IndexError` or `struct.error` if they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 1

    def number(self) -> int:
        (number,) = INT.unpack(self.piece(INT.size))
        return int(number)

    def piece(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise IndexError(size)
        piece = self._data[self._position : end]
        self._position = end
        return piece


def _fixed_pieces(data: bytes, inner: Serde[Any]) -> Iterator[bytes | None]:
    """Entries of fixed size; the indexes of nulls are at the start, and nulls have no bytes in the list."""
    size = FIXED_SIZES.get(type(inner))
    if size is None:
        raise SerdeError(
            f"{short_repr(data)} is a list of entries of one size, but {inner!r} writes entries of various sizes"
        )
    reading = _Reading(data)
    nulls = {reading.number() for _ in range(reading.number())}
    for index in range(reading.number()):
        yield None if index in nulls else reading.piece(size)


def _sized_pieces(data: bytes) -> Iterator[bytes | None]:
    """Entries with a size prefix each."""
    reading = _Reading(data)
    for _ in range(reading.number()):
        size = reading.number()
        yield None if size == NULL_SIZE else reading.piece(size)
