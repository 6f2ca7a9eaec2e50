"""The types of SQL that have the same values as a type of Spark's. Pure: independent of Spark. Start at `spark_name`.

Times are numbers, as in rows: milliseconds, or days for DATE.
"""

from __future__ import annotations

from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    DecimalType,
    SqlType,
)

__all__ = ["DIGITS", "MAX_PRECISION", "TIMES", "WHOLE", "is_native", "spark_name", "whole_digits"]

MAX_PRECISION = 38
"""Most digits of Spark's decimals."""

WHOLE = (INTEGER, BIGINT)
TIMES = (DATE, TIME, TIMESTAMP)
DIGITS = {INTEGER: 10, BIGINT: 19}
"""How many digits whole numbers may have."""

_NAMES: dict[SqlType, str] = {
    BOOLEAN: "boolean",
    INTEGER: "int",
    BIGINT: "bigint",
    DOUBLE: "double",
    STRING: "string",
    DATE: "int",
    TIME: "bigint",
    TIMESTAMP: "bigint",
}


def is_native(sql_type: SqlType | None) -> bool:
    """Whether Spark has a type with the same values."""
    if isinstance(sql_type, DecimalType):
        return sql_type.precision <= MAX_PRECISION
    return sql_type in _NAMES


def spark_name(sql_type: SqlType | None) -> str:
    """The type in Spark's SQL; only for native types."""
    if isinstance(sql_type, DecimalType):
        return f"decimal({sql_type.precision},{sql_type.scale})"
    assert sql_type is not None, "NULL has no type of its own"
    return _NAMES[sql_type]


def whole_digits(sql_type: SqlType | None) -> tuple[int, int] | None:
    """The digits before and after the point of an exact number; None for other types."""
    if isinstance(sql_type, DecimalType):
        return sql_type.precision - sql_type.scale, sql_type.scale
    return (DIGITS[sql_type], 0) if sql_type in DIGITS else None
