"""Values of rows as JSON: exact, and in the layout that ksqlDB's clients expect."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    SqlType,
    StructType,
)
from moldau.ksql.api.row_json import row_writer, type_text

POINT = StructType((Field("X", BIGINT), Field("Y", ArrayType(STRING))))


@pytest.mark.parametrize(
    ("sql_type", "value", "text"),
    [
        (BOOLEAN, True, "true"),
        (BIGINT, 2**63 - 1, "9223372036854775807"),
        (DOUBLE, 1e10, "1.0E10"),
        (DOUBLE, float("nan"), '"NaN"'),
        (DOUBLE, float("-inf"), '"-Infinity"'),
        (STRING, 'a"ü', '"a\\"ü"'),
        (BYTES, b"\x00\xff", '"AP8="'),
        (DecimalType(30, 2), Decimal("12345678901234567890.10"), "12345678901234567890.10"),
        (DecimalType(9, 8), Decimal("0.00000001"), "0.00000001"),
        (DATE, 0, '"1970-01-01"'),
        (TIME, 3_661_000, '"01:01:01"'),
        (TIMESTAMP, 1, '"1970-01-01T00:00:00.001"'),
        (MapType(STRING, BIGINT), {"b": 1, "a": None}, '{"b":1,"a":null}'),
        (POINT, (1, ["a", None]), '{"X":1,"Y":["a",null]}'),
        (POINT, None, "null"),
    ],
)
def test_a_value_is_written(sql_type: SqlType, value: object, text: str) -> None:
    written = row_writer([sql_type])((value,))
    assert written == f"[{text}]"
    json.loads(written)


def test_types_are_named_as_clients_read_them() -> None:
    assert type_text(MapType(STRING, POINT)) == "MAP<STRING, STRUCT<`X` BIGINT, `Y` ARRAY<STRING>>>"
