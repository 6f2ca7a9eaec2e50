from __future__ import annotations

import pytest

from moldau.formats.checks import MAX_TYPE_DEPTH, check_columns
from moldau.formats.codec import codec
from moldau.formats.columns import Column
from moldau.formats.errors import FormatError, RowError
from moldau.formats.format import Feature, RowFormat, format_named, parse_delimiter, row_format
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    SqlType,
    StructType,
)


def key_of(name: str, *types: SqlType) -> tuple[RowFormat, tuple[Column, ...]]:
    columns = tuple(Column(f"K{index or ''}", sql_type) for index, sql_type in enumerate(types))
    return row_format(name).for_key(columns), columns


def test_formats_are_found_in_any_case() -> None:
    assert format_named("AvRo").name == "AVRO"
    with pytest.raises(FormatError, match="Unknown format: FOO"):
        format_named("foo")


def test_options_of_other_formats_are_refused() -> None:
    with pytest.raises(FormatError, match=r"JSON does not support the following configs: \[delimiter\]"):
        row_format("json", {"delimiter": "|"})


@pytest.mark.parametrize(("text", "delimiter"), [("|", "|"), ("tab", "\t"), ("SPACE", " ")])
def test_delimiters(text: str, delimiter: str) -> None:
    assert parse_delimiter(text) == delimiter


@pytest.mark.parametrize("text", ["", " ", "\t", "<~>", "TABS"])
def test_what_is_no_delimiter_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_delimiter(text)


@pytest.mark.parametrize(
    ("name", "types", "reason"),
    [
        ("KAFKA", [BOOLEAN], "The 'KAFKA' format does not support type 'BOOLEAN'"),
        ("KAFKA", [DecimalType(2, 1)], "columns=[`K` DECIMAL(2, 1) KEY], features=[]}\nreason: The 'KAFKA' format"),
        ("KAFKA", [INTEGER, STRING], "only supports a single field. Got: [`K` INTEGER KEY, `K1` STRING KEY]"),
        (
            "DELIMITED",
            [ArrayType(DOUBLE)],
            "Key format does not support schema.\nformat: DELIMITED\n"
            "schema: Persistence{columns=[`K` ARRAY<DOUBLE> KEY], features=[]}\n"
            "reason: The 'DELIMITED' format does not support type 'ARRAY', column: `K`",
        ),
        ("NONE", [STRING], "The 'NONE' format can only be used when no columns are defined. Got: [`K` STRING KEY]"),
        (
            "JSON",
            [ArrayType(MapType(STRING, INTEGER))],
            "Key column name: `K`. Column type: ARRAY<MAP<STRING, INTEGER>>",
        ),
    ],
)
def test_keys_that_a_format_cannot_hold(name: str, types: list[SqlType], reason: str) -> None:
    with pytest.raises(FormatError) as refusal:
        check_columns(*key_of(name, *types))
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "column", "reason"),
    [
        ("JSON", Column("V", MapType(INTEGER, STRING)), "JSON only supports MAP types with STRING keys"),
        ("AVRO", Column("V", MapType(INTEGER, STRING)), "Avro only supports MAPs with STRING keys"),
        ("PROTOBUF", Column("V", MapType(INTEGER, STRING)), "PROTOBUF format only supports MAP types with STRING keys"),
        ("AVRO", Column("1V", INTEGER), "Schema is not compatible with Avro: Illegal initial character: 1V"),
        ("AVRO", Column("a-b", INTEGER), "Schema is not compatible with Avro: Illegal character in: a-b"),
        ("AVRO", Column("V", StructType((Field("f.g", INTEGER),))), "Illegal character in: f.g"),
    ],
)
def test_values_that_a_format_cannot_hold(name: str, column: Column, reason: str) -> None:
    with pytest.raises(FormatError) as refusal:
        check_columns(row_format(name), (column,))
    assert reason in str(refusal.value)


def test_types_nested_too_deep_are_refused() -> None:
    sql_type: SqlType = INTEGER
    for _ in range(20 * MAX_TYPE_DEPTH):
        sql_type = ArrayType(sql_type)
    with pytest.raises(FormatError, match="nested more than"):
        check_columns(row_format("JSON"), (Column("A", sql_type),))


def test_a_single_key_column_is_bare_where_the_format_can_choose() -> None:
    assert key_of("JSON", STRING)[0].wrapping is Feature.UNWRAP_SINGLES
    assert key_of("JSON", STRING, STRING)[0].wrapping is None
    assert key_of("PROTOBUF", STRING)[0].wrapping is None
    assert key_of("KAFKA", STRING)[0].wrapping is None


def test_single_values_are_wrapped_as_statement_settings_and_format_say() -> None:
    one, two = (Column("A", INTEGER),), (Column("A", INTEGER), Column("B", INTEGER))
    json = row_format("JSON")
    assert not json.for_value(one).is_bare(one)
    assert json.for_value(one, wrap=False).is_bare(one)
    assert json.for_value(one, wrap_by_default=False).is_bare(one)
    assert not json.for_value(two, wrap_by_default=False).is_bare(two)
    assert row_format("KAFKA").for_value(one).is_bare(one)
    with pytest.raises(FormatError, match="only valid for single-field value schemas"):
        json.for_value(two, wrap=True)
    with pytest.raises(FormatError, match="Format 'PROTOBUF' does not support 'WRAP_SINGLE_VALUE' set to 'false'"):
        row_format("PROTOBUF").for_value(one, wrap=False)


@pytest.mark.parametrize(
    ("sql_type", "value", "data"),
    [
        (INTEGER, -2, b"\xff\xff\xff\xfe"),
        (BIGINT, 1, b"\0\0\0\0\0\0\0\1"),
        (DOUBLE, 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        (STRING, "é", b"\xc3\xa9"),
        (BYTES, b"\0", b"\0"),
    ],
)
def test_kafka_values(sql_type: SqlType, value: object, data: bytes) -> None:
    rows = codec(*key_of("KAFKA", sql_type))
    assert rows.encode((value,)) == data
    assert rows.decode(data) == (value,)
    assert rows.encode((None,)) is None
    assert rows.decode(None) is None


def test_kafka_numbers_of_another_size_are_errors() -> None:
    with pytest.raises(RowError):
        codec(*key_of("KAFKA", INTEGER)).decode(b"\0" * 8)


@pytest.mark.parametrize("name", ["NONE", "KAFKA", "JSON", "DELIMITED"])
def test_a_key_without_columns_is_ignored(name: str) -> None:
    rows = codec(*key_of(name))
    assert rows.decode(b"anything") is None
    assert rows.encode(()) is None


@pytest.mark.parametrize(
    ("name", "written"),
    [("JSON", b'{"V":"a?"}'), ("DELIMITED", b"a?"), ("KAFKA", b"a?"), ("PROTOBUF_NOSR", b"\n\x02a?")],
)
def test_half_a_surrogate_pair_is_written_as_java_does(name: str, written: bytes) -> None:
    """`SUBSTRING` may cut through an emoji."""
    columns = (Column("V", STRING),)
    assert codec(row_format(name).for_value(columns), columns).encode(("a\ud83d",)) == written
