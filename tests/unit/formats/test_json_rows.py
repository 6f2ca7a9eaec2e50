from __future__ import annotations

from decimal import Decimal

import pytest

from moldau.formats.codec import RowCodec, codec
from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.format import row_format
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
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


def json_codec(*columns: tuple[str, SqlType]) -> RowCodec:
    return codec(row_format("JSON"), tuple(Column(name, sql_type) for name, sql_type in columns))


def bare_codec(sql_type: SqlType) -> RowCodec:
    columns = (Column("V", sql_type),)
    return codec(row_format("JSON").for_value(columns, wrap=False), columns)


def test_members_match_exactly_or_in_upper_case() -> None:
    rows = json_codec(("ID", INTEGER), ("name", STRING))
    assert rows.decode(b'{"id":1,"name":"a"}') == (1, "a")
    assert rows.decode(b'{"Id":1,"NAME":"a"}') == (1, None)
    assert rows.decode(b'{"id":1,"ID":2,"iD":3}') == (2, None)
    assert rows.decode(b'{"id":1,"iD":3}') == (3, None)


def test_unknown_members_are_ignored_and_missing_ones_are_null() -> None:
    assert json_codec(("A", INTEGER), ("B", INTEGER)).decode(b'{"b":1,"c":{"d":[]}}') == (None, 1)


def test_records_of_any_number_of_shapes_are_read() -> None:
    rows = json_codec(("A", INTEGER), ("B", INTEGER))
    for number in range(300):
        assert rows.decode(b'{"a":%d,"x%d":0,"B":2}' % (number, number)) == (number, 2)


def test_a_null_document_is_a_null_record_unless_it_is_bare() -> None:
    assert json_codec(("A", INTEGER)).decode(b"null") is None
    assert bare_codec(INTEGER).decode(b"null") == (None,)
    assert bare_codec(INTEGER).encode((None,)) is None
    assert bare_codec(INTEGER).decode(None) is None


@pytest.mark.parametrize(
    ("sql_type", "document", "value"),
    [
        (INTEGER, b"3.99", 3),
        (INTEGER, b"-3.99", -3),
        (INTEGER, b'"12"', 12),
        (INTEGER, b"4294967297", 1),
        (BIGINT, b"9223372036854775808", -(2**63)),
        (BIGINT, b"9007199254740993.0", 9007199254740993),
        (DOUBLE, b"1", 1.0),
        (DOUBLE, b'"1.5"', 1.5),
        (DOUBLE, b'"-Infinity"', float("-inf")),
        (DOUBLE, b"1e400", float("inf")),
        (STRING, b"1.10", "1.10"),
        (STRING, b"12345678901234567890123", "12345678901234567890123"),
        (STRING, b"true", "true"),
        (STRING, b'{"a": [1.50, "x\\n"], "b": null}', '{"a":[1.50,"x\\n"],"b":null}'),
        (STRING, b'[1, "a", null, [2.0]]', "[1, a, null, [2.0]]"),
        (BOOLEAN, b"true", True),
        (BYTES, b'"AQI="', b"\x01\x02"),
        (DECIMAL := DecimalType(4, 2), b"10.1", Decimal("10.10")),
        (DECIMAL, b'"-1"', Decimal("-1.00")),
        (DECIMAL, b"1.500", Decimal("1.50")),
        (DATE, b"-10", -10),
        (TIME, b"86399999", 86399999),
        (TIMESTAMP, b"1600000000000", 1600000000000),
        (ArrayType(STRING), b"[1,null]", ["1", None]),
        (MapType(STRING, INTEGER), b'{"a":1,"b":null}', {"a": 1, "b": None}),
        (StructType((Field("F", INTEGER),)), b'{"f":1}', (1,)),
    ],
)
def test_values_are_coerced(sql_type: SqlType, document: bytes, value: object) -> None:
    row = bare_codec(sql_type).decode(document)
    assert row == (value,)
    assert [type(value)] == [type(one) for one in row or ()]


@pytest.mark.parametrize(
    ("sql_type", "document"),
    [
        (BOOLEAN, b'"true"'),
        (BOOLEAN, b"1"),
        (INTEGER, b'"1.5"'),
        (INTEGER, b"true"),
        (INTEGER, b"[]"),
        (DOUBLE, b"false"),
        (BYTES, b'"%"'),
        (BYTES, b"1"),
        (DecimalType(4, 2), b"1.234"),
        (DecimalType(4, 2), b"100"),
        (DecimalType(4, 2), b"1e999999999"),
        (DecimalType(4, 2), b'"NaN"'),
        (DecimalType(4, 2), b"true"),
        (TIME, b"-1"),
        (ArrayType(INTEGER), b"{}"),
        (MapType(STRING, INTEGER), b"[]"),
        (StructType((Field("F", INTEGER),)), b"1"),
        (STRING, b"NaN"),
        (STRING, b"{"),
        (STRING, b""),
        (STRING, b'"\xff"'),
        (INTEGER, b"1" * 10_000),
        (STRING, b"[" * 100_000),
        (STRING, b"[" * 900 + b"]" * 900),
        (STRING, b'{"a":' * 900 + b"1" + b"}" * 900),
        (INTEGER, b"[" * 5_000 + b"]" * 5_000),
    ],
)
def test_what_does_not_fit_is_an_error_of_that_record(sql_type: SqlType, document: bytes) -> None:
    with pytest.raises(RowError):
        bare_codec(sql_type).decode(document)


def test_an_object_is_needed_for_a_row() -> None:
    with pytest.raises(RowError):
        json_codec(("A", INTEGER)).decode(b"[1]")


def test_rows_are_written_with_all_names_and_javas_numbers() -> None:
    rows = json_codec(
        ("ID", BIGINT), ("d", DOUBLE), ("DEC", DecimalType(6, 4)), ("S", StructType((Field("F", BYTES),))), ("M", MAP)
    )
    written = rows.encode((1, 1e10, Decimal("10.0000"), (b"\x01",), {"a": 1e-5, "b": None}))
    assert written == b'{"ID":1,"d":1.0E10,"DEC":10.0000,"S":{"F":"AQ=="},"M":{"a":1.0E-5,"b":null}}'
    assert rows.encode((None,) * 5) == b'{"ID":null,"d":null,"DEC":null,"S":null,"M":null}'
    assert rows.encode(None) is None


MAP = MapType(STRING, DOUBLE)


def test_doubles_that_json_cannot_hold_are_written_as_strings() -> None:
    rows = json_codec(("D", ArrayType(DOUBLE)))
    assert rows.encode(([float("nan"), float("inf"), 0.5],)) == b'{"D":["NaN","Infinity",0.5]}'


def test_a_null_key_of_a_map_is_written_by_name() -> None:
    assert json_codec(("M", MapType(STRING, INTEGER))).encode(({"a": 1, None: 2},)) == b'{"M":{"a":1,"null":2}}'
    assert json_codec(("M", MAP)).encode(({None: None},)) == b'{"M":{"null":null}}'


def test_a_row_that_cannot_be_written_is_an_error_of_that_record() -> None:
    with pytest.raises(RowError):
        json_codec(("S", STRING)).encode((object(),))


def test_what_follows_a_document_is_ignored() -> None:
    assert json_codec(("A", INTEGER)).decode(b' {"a":1} {"a":2}') == (1,)
