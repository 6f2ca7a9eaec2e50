"""The placeholder for the default serdes of the settings, and the SQL types of serdes.

The serdes are in `moldau.serdes`. Start at `DefaultSerde` and `type_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.pipeline.ir.types import Array, DataType, Primitive
from moldau.serdes.lists import ListSerde
from moldau.serdes.plain import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
)
from moldau.serdes.serde import Headers, Serde, SerdeError

__all__ = ["DefaultSerde", "type_of"]

_TYPES: Mapping[type, DataType] = {
    StringSerde: Primitive.STRING,
    UuidSerde: Primitive.STRING,
    BytesSerde: Primitive.BYTES,
    BooleanSerde: Primitive.BOOLEAN,
    ShortSerde: Primitive.INTEGER,
    IntegerSerde: Primitive.INTEGER,
    LongSerde: Primitive.BIGINT,
    FloatSerde: Primitive.DOUBLE,
    DoubleSerde: Primitive.DOUBLE,
}


def type_of(serde: Serde) -> DataType | None:
    """The type of a serde's values, if known: a serde may declare it as its `data_type`."""
    if isinstance(serde, ListSerde):
        items = type_of(serde.inner)
        return None if items is None else Array(items)
    return _TYPES.get(type(serde)) or getattr(serde, "data_type", None)


@dataclass(frozen=True, slots=True)
class DefaultSerde:
    """Placeholder for `default.key.serde` or `default.value.serde`; `rewrites.serde_places` replaces it."""

    part: str

    def serialize(self, topic: str, value: Any, headers: Headers | None = None) -> bytes:
        raise self.missing()

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Any:
        raise self.missing()

    def missing(self) -> SerdeError:
        """The error where neither the operator nor the settings name a serde."""
        return SerdeError(
            f"no serde for a {self.part}: name one where records are read, grouped, joined, kept or written "
            f"(Consumed, Grouped, Joined, Materialized, Produced), or set default.{self.part}.serde"
        )
