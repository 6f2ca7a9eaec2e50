"""Schemas of data, independent of any format: Connect's model, which Avro, JSON Schema and Protobuf are mapped to.

Columns say what ksql can hold; a `DataSchema` also says what the writer of the data meant: whether a field may be null,
its default, and the name, version and parameters of a logical type. Values are those of `moldau.formats.types`, except
that structs are dicts by field name. Start at `DataSchema`; `columns_of` and `schema_of_columns` are in `inference`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from moldau.formats.errors import FormatError

__all__ = [
    "DATE",
    "DECIMAL",
    "NO_DEFAULT",
    "TIME",
    "TIMESTAMP",
    "Budget",
    "DataField",
    "DataSchema",
    "Kind",
    "decimal_schema",
]


class Kind(Enum):
    """The kinds of data; the values are the names that messages use."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
"""The names of Connect's logical types."""


class _NoDefault(Enum):
    """An enum, because its one member stays the same object when a schema is pickled."""

    NO_DEFAULT = "no default"


NO_DEFAULT: Final = _NoDefault.NO_DEFAULT


@dataclass(frozen=True, slots=True)
class DataField:
    """A field of a struct."""

    name: str
    schema: DataSchema


@dataclass(frozen=True, slots=True)
class DataSchema:
    """The schema of a value."""

    kind: Kind
    is_optional: bool = False
    name: str | None = None
    """The name of a logical type, or of a record."""

    version: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    default: Any = NO_DEFAULT
    doc: str | None = None
    fields: tuple[DataField, ...] = ()
    key: DataSchema | None = None
    """Of a map's keys."""

    value: DataSchema | None = None
    """Of a map's values or an array's elements."""

    @property
    def element(self) -> DataSchema:
        """The schema of a map's values or an array's elements."""
        assert self.value is not None, self.kind
        return self.value


class Budget:
    """Counts the nodes of a schema: types used twice at every level double it, so that a few lines have no end."""

    def __init__(self, limit: int = 10_000) -> None:
        self._left = limit

    def spend(self) -> None:
        """Raise `FormatError` if the schema has become too large."""
        self._left -= 1
        if self._left < 0:
            raise FormatError("The schema is too large when its types are written out: use fewer or flatter types")


def decimal_schema(precision: int, scale: int, *, is_optional: bool = False) -> DataSchema:
    """Connect's logical type for decimals."""
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return DataSchema(Kind.BYTES, is_optional, DECIMAL, 1, parameters)
