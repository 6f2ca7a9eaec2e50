"""Types are read in all their spellings."""

from __future__ import annotations

import pytest

from moldau.formats.types import BIGINT, INTEGER, STRING, ArrayType, DecimalType, Field, MapType, SqlType, StructType
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expressions import NamedType
from moldau.pipeline.ksql.syntax.parser import parse_type


@pytest.mark.parametrize(
    ("text", "sql_type"),
    [
        ("int", INTEGER),
        ("INTEGER", INTEGER),
        ("varchar", STRING),
        ("VARCHAR(255)", STRING),
        ("VARCHAR(STRING)", STRING),
        ("decimal(10, 2)", DecimalType(10, 2)),
        ("ARRAY<MAP<STRING, BIGINT>>", ArrayType(MapType(STRING, BIGINT))),
        ("BIGINT ARRAY ARRAY", ArrayType(ArrayType(BIGINT))),
        ("STRUCT<a INT, `b` STRING>", StructType((Field("A", INTEGER), Field("b", STRING)))),
        ("STRUCT<>", StructType(())),
        ("STRUCT< >", StructType(())),
        ("ARRAY<address>", ArrayType(NamedType("ADDRESS"))),
        ("`address`", NamedType("address")),
    ],
)
def test_types(text: str, sql_type: SqlType) -> None:
    assert parse_type(text) == sql_type


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ARRAY<NULL>", "line 1:7: Syntax Error"),
        ("INT(x)", "Expecting {'STRING', INTEGER_VALUE}"),
        ("DECIMAL", "Syntax Error"),
        ("DECIMAL(0, 0)", "DECIMAL precision must be >= 1: DECIMAL(0,0)"),
        ("DECIMAL(2, 3)", "DECIMAL precision must be >= scale: DECIMAL(2,3)"),
        ("DECIMAL(2, -1)", "DECIMAL scale must be >= 0: DECIMAL(2,-1)"),
        ("DECIMAL(2.5, 1)", "Value must be integer for command: DECIMAL"),
        ("STRUCT<a INT, A INT>", "Duplicate field names found in STRUCT"),
        ("ARRAY<" * 1000 + "INT" + ">" * 1000, "Statement is too large to parse"),
        ("INT" + " ARRAY" * 1000, "Statement is too large to parse"),
    ],
)
def test_what_is_no_type_is_refused(text: str, reason: str) -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse_type(text)

    assert reason in refusal.value.message
