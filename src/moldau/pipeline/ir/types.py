"""The data types of expressions: those of SQL, independent of any engine or format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Primitive(Enum):
    """Types without parts."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number with `precision` digits, `scale` of them behind the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Array:
    """Values of one type, in order."""

    items: DataType


@dataclass(frozen=True, slots=True)
class Map:
    """Values of one type by key."""

    keys: DataType
    values: DataType


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields, in order."""

    fields: tuple[tuple[str, DataType], ...]


DataType = Primitive | Decimal | Array | Map | Struct
