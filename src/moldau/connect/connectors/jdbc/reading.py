"""Columns of tables and queries as fields: their schemas, and values on the way from the database.

Start at `table_columns` and `query_columns`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from sqlalchemy import types as sql
from sqlalchemy.dialects import mysql, postgresql

from moldau.connect.api.errors import ConnectError, DataError
from moldau.connect.api.schemas import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    DataSchema,
    decimal,
    optional,
)
from moldau.connect.connectors.jdbc.database import Database
from moldau.formats.types import DecimalType
from moldau.formats.values import fit_decimal

__all__ = ["Column", "epoch_micros", "query_columns", "table_columns"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY: Final = date(1970, 1, 1)
UNLIMITED: Final = DecimalType(60, 20)
"""For a NUMERIC that says neither precision nor scale."""

Convert = Callable[[Any], Any]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Column:
    """A column that becomes a field."""

    name: str
    schema: DataSchema
    convert: Convert
    """From the driver's value to Connect's; never called with None."""

    def values(self, given: Sequence[Any]) -> Sequence[Any]:
        """The driver's values of many rows as Connect's."""
        convert = self.convert
        kinds = set(map(type, given)) - {type(None)}
        if kinds <= {convert}:  # `int` of integers, `str` of texts: nothing to do
            return given
        return [None if one is None else convert(one) for one in given]


@dataclass(frozen=True, slots=True)
class Mapping:
    """How types become schemas."""

    database: Database
    numeric: str = "none"
    granularity: str = "connect_logical"


def table_columns(inspector: Any, table: str, schema: str | None, mapping: Mapping) -> list[Column]:
    """The columns of a table; those with types that have no schema are left out, with a warning."""
    found = []
    for one in inspector.get_columns(table, schema=schema):
        made = _column(one["name"], one["type"], mapping)
        if made is None:
            log.warning("column %s.%s of type %s has no Connect type and is ignored", table, one["name"], one["type"])
            continue
        is_key = mapping.database.kind == "sqlite" and bool(one.get("primary_key"))
        nullable = one.get("nullable", True) and not is_key
        found.append(Column(made.name, optional(made.schema) if nullable else made.schema, made.convert))
    return found


def _column(name: str, kind: Any, mapping: Mapping) -> Column | None:
    found = _schema(kind, mapping)
    return None if found is None else Column(name, *found)


def _schema(kind: Any, mapping: Mapping) -> tuple[DataSchema, Convert] | None:
    is_unsigned = bool(getattr(kind, "unsigned", False))
    match kind:
        case sql.Boolean():
            return BOOLEAN, bool
        case mysql.TINYINT() if kind.display_width == 1:
            return INT8, int
        case mysql.TINYINT():
            return (INT16 if is_unsigned else INT8), int
        case mysql.BIT() | postgresql.BIT():
            return INT8, _bit
        case sql.SmallInteger():
            return (INT32 if is_unsigned else INT16), int
        case sql.BigInteger():
            return INT64, int
        case sql.Integer():
            return (INT64 if is_unsigned or mapping.database.kind == "sqlite" else INT32), int
        case sql.Float():
            is_real = isinstance(kind, sql.REAL) and mapping.database.kind == "postgresql"
            is_real = is_real or (isinstance(kind, mysql.FLOAT))
            return (FLOAT32 if is_real else FLOAT64), float
        case sql.Numeric():
            return _numeric(kind, mapping)
        case sql.DateTime():
            return _timestamp(mapping)
        case sql.Date():
            return DATE, _day
        case sql.Time():
            return TIME, _time_ms
        case sql.Uuid() | sql.Enum() | sql.String():
            return STRING, str
        case sql.JSON():
            return STRING, _json_text
        case sql.LargeBinary() | sql.BINARY() | sql.VARBINARY():
            return BYTES, bytes
    return _by_name(kind, mapping)


def _by_name(kind: Any, mapping: Mapping) -> tuple[DataSchema, Convert] | None:
    """Types that SQLAlchemy has no family for."""
    if isinstance(kind, sql.NullType) and mapping.database.kind == "sqlite":
        return STRING, str
    if type(kind).__name__.upper() in ("CITEXT", "INET", "CIDR", "MACADDR", "XML", "SET", "TSVECTOR"):
        return STRING, str
    if type(kind).__name__.upper() == "YEAR":
        return INT32, int
    return None


def _numeric(kind: Any, mapping: Mapping) -> tuple[DataSchema, Convert]:
    precision, scale = kind.precision, kind.scale or 0
    is_covered = mapping.database.kind == "postgresql" or not isinstance(kind, sql.DECIMAL)
    if precision is None:
        if is_covered and mapping.numeric == "best_fit_eager_double":
            return FLOAT64, float
        return _decimal(UNLIMITED.precision, UNLIMITED.scale)
    if is_covered and mapping.numeric != "none" and precision <= 18 and scale <= 0:
        width = INT8 if precision <= 2 else INT16 if precision <= 4 else INT32 if precision <= 9 else INT64
        return width, int
    is_double = mapping.numeric == "best_fit_eager_double" or (mapping.numeric == "best_fit" and precision <= 18)
    if is_covered and scale > 0 and is_double:
        return FLOAT64, float
    return _decimal(precision, scale)


def _decimal(precision: int, scale: int) -> tuple[DataSchema, Convert]:
    wanted = DecimalType(max(precision, 1), scale)

    def convert(value: Any) -> Decimal:
        try:
            return fit_decimal(value if isinstance(value, (Decimal, int)) else Decimal(str(value)), wanted)
        except (ValueError, InvalidOperation) as error:
            raise DataError(
                f"{value!r}: {error}; give the column a scale, or set numeric.mapping=best_fit_eager_double"
            ) from None

    return decimal(scale, precision), convert


def _timestamp(mapping: Mapping) -> tuple[DataSchema, Convert]:
    zone, granularity = mapping.database.zone, mapping.granularity

    def micros(value: Any) -> int:
        return epoch_micros(value, zone)

    if granularity == "connect_logical":
        return TIMESTAMP, lambda value: micros(value) // 1000
    unit = 1000 if granularity.startswith("nanos") else 1
    digits = 9 if unit == 1000 else 6
    if granularity.endswith("_long"):
        return INT64, lambda value: micros(value) * unit
    if granularity.endswith("_iso_datetime_string"):
        return STRING, lambda value: _iso(micros(value), digits)
    return STRING, lambda value: str(micros(value) * unit)


def _iso(micros: int, digits: int) -> str:
    at = EPOCH + timedelta(microseconds=micros)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06d}".ljust(20 + digits, "0")


def epoch_micros(value: Any, zone: Any) -> int:
    """A moment in microseconds since the epoch; SQLite keeps moments as texts or as milliseconds."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    elif isinstance(value, (int, float)):
        return int(value * 1000)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise DataError(f"{value!r} is not a date or time")
    moment = value.replace(tzinfo=zone) if value.tzinfo is None else value
    micros: int = (moment - EPOCH) // timedelta(microseconds=1)
    return micros


def _day(value: Any) -> int:
    if isinstance(value, str):
        value = date.fromisoformat(value[:10])
    elif isinstance(value, int):
        return value // 86_400_000
    return (date(value.year, value.month, value.day) - EPOCH_DAY).days


def _time_ms(value: Any) -> int:
    if isinstance(value, str):
        value = time.fromisoformat(value)
    if isinstance(value, timedelta):
        return int(value / timedelta(milliseconds=1))
    if isinstance(value, int):
        return value
    seconds = (int(value.hour) * 60 + int(value.minute)) * 60 + int(value.second)
    return seconds * 1000 + int(value.microsecond) // 1000


def _bit(value: Any) -> int:
    if isinstance(value, bytes):
        return int.from_bytes(value, "big")
    return int(value, 2) if isinstance(value, str) else int(value)


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# Queries

_POSTGRES_TYPES: Final[dict[str, Any]] = {
    "bool": sql.Boolean(),
    "int2": sql.SmallInteger(),
    "int4": sql.Integer(),
    "int8": sql.BigInteger(),
    "float4": sql.REAL(),
    "float8": sql.Double(),
    "text": sql.Text(),
    "varchar": sql.Text(),
    "bpchar": sql.Text(),
    "name": sql.Text(),
    "uuid": sql.Text(),
    "json": sql.JSON(),
    "jsonb": sql.JSON(),
    "bytea": sql.LargeBinary(),
    "date": sql.Date(),
    "time": sql.Time(),
    "timetz": sql.Time(),
    "timestamp": sql.DateTime(),
    "timestamptz": sql.DateTime(),
}


def query_columns(cursor: Any, first_row: Sequence[Any] | None, mapping: Mapping) -> list[Column]:
    """The columns of a query's result, all optional; SQLite knows types only by the values of the first row."""
    found = []
    for index, description in enumerate(cursor.description):
        if mapping.database.kind == "postgresql":
            kind = _postgres_type(description)
        elif mapping.database.kind == "mysql":
            kind = _mysql_type(description)
        else:
            kind = _type_of_value(None if first_row is None else first_row[index])
        made = _column(description[0], kind, mapping)
        if made is None:
            raise ConnectError(
                f"column {description[0]} of the query has a type without a Connect type; cast it to text"
            )
        found.append(Column(made.name, optional(made.schema), made.convert))
    return found


def _postgres_type(description: Any) -> Any:
    import psycopg

    info = psycopg.adapters.types.get(description.type_code)
    name = "text" if info is None else info.name
    if name == "numeric":
        return sql.Numeric(description.precision, description.scale)
    return _POSTGRES_TYPES.get(name, sql.Text())


def _mysql_type(description: Any) -> Any:
    from pymysql.constants import FIELD_TYPE

    by_code: dict[int, Any] = {
        FIELD_TYPE.TINY: mysql.TINYINT(),
        FIELD_TYPE.SHORT: sql.SmallInteger(),
        FIELD_TYPE.INT24: sql.Integer(),
        FIELD_TYPE.LONG: sql.Integer(),
        FIELD_TYPE.LONGLONG: sql.BigInteger(),
        FIELD_TYPE.FLOAT: mysql.FLOAT(),
        FIELD_TYPE.DOUBLE: sql.Double(),
        FIELD_TYPE.DATE: sql.Date(),
        FIELD_TYPE.TIME: sql.Time(),
        FIELD_TYPE.DATETIME: sql.DateTime(),
        FIELD_TYPE.TIMESTAMP: sql.DateTime(),
        FIELD_TYPE.YEAR: sql.Integer(),
    }
    code = description[1]
    if code in (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL):
        return mysql.DECIMAL(description[4], description[5])
    return by_code.get(code, sql.Text())


def _type_of_value(value: Any) -> Any:
    match value:
        case int():
            return sql.BigInteger()
        case float():
            return sql.Double()
        case bytes():
            return sql.LargeBinary()
    return sql.Text()
