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
    DecimalType,
    SqlType,
)


def delimited(*types: SqlType, delimiter: str = ",") -> RowCodec:
    columns = tuple(Column(f"C{index}", sql_type) for index, sql_type in enumerate(types))
    return codec(row_format("DELIMITED", {"delimiter": delimiter}), columns)


ALL = (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DecimalType(6, 4), DATE, TIME, TIMESTAMP)


def test_every_type_is_read_and_written() -> None:
    row = (True, 1, 2**40, 1.5, "a", b"\x01", Decimal("10.0000"), 3, 4, 5)
    written = b"true,1,1099511627776,1.5,a,AQ==,10.0000,3,4,5"
    assert delimited(*ALL).encode(row) == written
    assert delimited(*ALL).decode(written) == row


@pytest.mark.parametrize(
    ("texts", "written"),
    [
        (("a", "b"), b"a,b"),
        (("-5", "-5"), b'"-5",-5'),
        (("#", "#a"), b'"#","#a"'),
        (("a,b", 'say "hi"'), b'"a,b","say ""hi"""'),
        (("x\ny", " lead"), b'"x\ny"," lead"'),
        (("trail ", "\u00fc"), '"trail ",\u00fc'.encode()),
        (("\u00fc", ""), '"\u00fc",'.encode()),
        (("", "x"), b'"",x'),
        ((None, None), b","),
    ],
)
def test_text_is_quoted_where_readers_expect_it(texts: tuple[str | None, ...], written: bytes) -> None:
    assert delimited(STRING, STRING).encode(texts) == written
    assert delimited(STRING, STRING).decode(written) == tuple(text or None for text in texts)


@pytest.mark.parametrize(
    ("record", "row"),
    [
        (b'"a" ,b', ("a", "b")),
        (b"\r\n\r\na,b\nc,d", ("a", "b")),
        (b'a"b,c', ('a"b', "c")),
        ("a\u2028b,c".encode(), ("a\u2028b", "c")),
        ('"a\u2028b",c'.encode(), ("a\u2028b", "c")),
        (b'"a\r\nb",c', ("a\r\nb", "c")),
        (b'"a",', ("a", None)),
        (b'"' + b"x" * 200_000 + b'",y', ("x" * 200_000, "y")),
    ],
)
def test_records_of_other_writers_are_read(record: bytes, row: tuple[str | None, ...]) -> None:
    assert delimited(STRING, STRING).decode(record) == row


@pytest.mark.parametrize("record", [b"", b"\n", b"a", b"a,b,c", b'"a,b', b'"a"b,c', b"\xff,a"])
def test_what_is_no_record_of_the_columns_is_an_error(record: bytes) -> None:
    with pytest.raises(RowError):
        delimited(STRING, STRING).decode(record)


@pytest.mark.parametrize(("sql_type", "field"), [(INTEGER, b"1.0"), (DOUBLE, b"x"), (DecimalType(2, 1), b"1.23")])
def test_a_field_that_does_not_fit_is_an_error(sql_type: SqlType, field: bytes) -> None:
    with pytest.raises(RowError):
        delimited(sql_type).decode(field)


def test_other_delimiters() -> None:
    assert delimited(STRING, STRING, delimiter="\t").encode(("a,b", "c\td")) == b'a,b\t"c\td"'
    assert delimited(STRING, STRING, delimiter="|").decode(b'a|"b|"') == ("a", "b|")
