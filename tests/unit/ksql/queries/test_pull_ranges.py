from __future__ import annotations

import pytest
from tests.unit.ksql.queries.test_pull_keys import table

from moldau.formats.types import BIGINT, DOUBLE, INTEGER, STRING, SqlType
from moldau.ksql.queries.pull_ranges import KeyRange, key_range
from moldau.pipeline.ksql.syntax.parser import parse
from moldau.pipeline.ksql.syntax.statements import Query


def found(where: str, *types: SqlType) -> KeyRange | None:
    [query] = parse(f"SELECT * FROM T {where};")
    assert isinstance(query, Query)
    return key_range(query, table(*types))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("WHERE K0 > 'b'", KeyRange(b"b", None)),
        ("WHERE 'b' <= K0 AND V = 1", KeyRange(b"b", None)),
        ("WHERE K0 < 'x'", KeyRange(b"", b"x")),
        ("WHERE K0 BETWEEN 'a' AND 'c' AND K0 > 'b'", KeyRange(b"b", b"c")),
        ("WHERE K0 > 'ö'", KeyRange("ö".encode(), None)),
        ("WHERE K0 > '😀'", None),
        ("WHERE K0 > 'a' OR V = 1", None),
        ("WHERE V > 1", None),
        ("WHERE K0 <> 'a'", None),
        ("", None),
    ],
)
def test_ranges_of_texts(where: str, expected: KeyRange | None) -> None:
    assert found(where, STRING) == expected


def test_ranges_of_numbers_begin_at_zero_or_above() -> None:
    assert found("WHERE K0 >= 5 AND K0 < 7", INTEGER) == KeyRange(b"\0\0\0\5", b"\0\0\0\7")
    assert found("WHERE K0 > 255", BIGINT) == KeyRange((255).to_bytes(8), b"\x7f" + b"\xff" * 7)
    assert found("WHERE K0 > -1", INTEGER) is None
    assert found("WHERE K0 < 7", INTEGER) is None
    assert found("WHERE K0 > 9 AND K0 < 3", INTEGER) == KeyRange(b"\0\0\0\x09", b"\0\0\0\x09")


def test_other_keys_have_no_ranges() -> None:
    assert found("WHERE K0 > 1.5", DOUBLE) is None
    assert found("WHERE K0 > 'a' AND K1 > 'b'", STRING, STRING) is None
