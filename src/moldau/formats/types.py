"""The types of typed rows, and how Python carries their values.

| type | Python value |
|---|---|
| BOOLEAN | bool |
| INTEGER, BIGINT | int, within 32 and 64 bits |
| DOUBLE | float |
| STRING | str |
| BYTES | bytes |
| DECIMAL | decimal.Decimal with exactly the type's scale |
| DATE | int, days since the epoch |
| TIME | int, milliseconds of the day |
| TIMESTAMP | int, milliseconds since the epoch, UTC |
| ARRAY | list |
| MAP | dict, in the order of insertion |
| STRUCT | tuple, in the order of the type's fields |

None is the null of every type. A row is a tuple in the order of its columns. Types print as SQL writes them
(``STRUCT<`F` INTEGER>``), because messages and descriptions quote them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = object
"""A value of a row, carried as the module's table says."""

Row: TypeAlias = tuple[Value, ...]
"""The values of a row, in the order of its columns."""


@dataclass(frozen=True, slots=True)
class SqlType:
    """Base of all types; compares by value."""


@dataclass(frozen=True, slots=True)
class Primitive(SqlType):
    """A type without parameters; the constants below are all there are."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOLEAN = Primitive("BOOLEAN")
INTEGER = Primitive("INTEGER")
BIGINT = Primitive("BIGINT")
DOUBLE = Primitive("DOUBLE")
STRING = Primitive("STRING")
BYTES = Primitive("BYTES")
DATE = Primitive("DATE")
TIME = Primitive("TIME")
TIMESTAMP = Primitive("TIMESTAMP")


@dataclass(frozen=True, slots=True)
class DecimalType(SqlType):
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType(SqlType):
    """A list of elements of one type."""

    element: SqlType

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType(SqlType):
    """Entries with keys of one type and values of another."""

    key: SqlType
    value: SqlType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct."""

    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"`{self.name}` {self.type}"


@dataclass(frozen=True, slots=True)
class StructType(SqlType):
    """Named fields, each of a type of its own."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(map(str, self.fields))}>"

    def position(self, name: str) -> int | None:
        """The position of a field, None if there is none of that name."""
        for position, field in enumerate(self.fields):
            if field.name == name:
                return position
        return None
