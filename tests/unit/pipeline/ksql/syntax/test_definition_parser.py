"""CREATE, ALTER and DROP are read with their columns and properties."""

from __future__ import annotations

import pytest

from moldau.formats.types import BYTES, INTEGER, STRING, ArrayType, Field, StructType
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expressions import BooleanLiteral, IntegerLiteral, StringLiteral
from moldau.pipeline.ksql.syntax.parser import parse, parse_column_list
from moldau.pipeline.ksql.syntax.statements import (
    AlterSource,
    AlterSystem,
    ColumnConstraint,
    ColumnDefinition,
    ConnectorKind,
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    CreateType,
    DropConnector,
    DropSource,
    DropType,
    Emit,
    Property,
    SourceKind,
    Statement,
)


def statement(text: str) -> Statement:
    (parsed,) = parse(text)
    return parsed


def test_a_stream_with_columns_and_properties() -> None:
    assert statement(
        "create or replace stream if not exists s (k int key, `v` string, h bytes header('trace')) "
        "with (kafka_topic='t', 'Odd.name' = true, partitions=3);"
    ) == CreateSource(
        SourceKind.STREAM,
        "S",
        (
            ColumnDefinition("K", INTEGER, ColumnConstraint.KEY),
            ColumnDefinition("v", STRING),
            ColumnDefinition("H", BYTES, ColumnConstraint.HEADER, "trace"),
        ),
        (
            Property("KAFKA_TOPIC", StringLiteral("t")),
            Property("Odd.name", BooleanLiteral(True)),
            Property("PARTITIONS", IntegerLiteral(3)),
        ),
        or_replace=True,
        if_not_exists=True,
    )


def test_a_read_only_table_without_columns() -> None:
    assert statement("CREATE SOURCE TABLE t WITH (format='AVRO');") == CreateSource(
        SourceKind.TABLE, "T", (), (Property("FORMAT", StringLiteral("AVRO")),), is_read_only=True
    )


def test_words_of_the_language_are_column_names() -> None:
    columns = parse_column_list("timestamp BIGINT, id INT KEY, key STRING KEY, type DATE", SourceKind.STREAM)

    assert [column.name for column in columns] == ["TIMESTAMP", "ID", "KEY", "TYPE"]
    assert [column.constraint.value for column in columns] == ["", "KEY", "KEY", ""]


def test_a_column_of_all_headers() -> None:
    (column,) = parse_column_list("h ARRAY<STRUCT<key STRING, value BYTES>> HEADERS", SourceKind.STREAM)

    assert column.type == ArrayType(StructType((Field("KEY", STRING), Field("VALUE", BYTES))))
    assert column.constraint is ColumnConstraint.HEADERS


def test_create_as_select_emits_changes_by_default() -> None:
    changes = statement("CREATE TABLE t WITH (partitions=1) AS SELECT a, count(*) FROM s GROUP BY a;")
    final = statement("CREATE OR REPLACE STREAM x AS SELECT a FROM s EMIT FINAL;")

    assert isinstance(changes, CreateAsSelect)
    assert isinstance(final, CreateAsSelect)
    assert (changes.kind, changes.query.emit) == (SourceKind.TABLE, Emit.CHANGES)
    assert (final.or_replace, final.query.emit) == (True, Emit.FINAL)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (
            "ALTER STREAM s ADD COLUMN a INT, ADD b STRING;",
            AlterSource(SourceKind.STREAM, "S", (ColumnDefinition("A", INTEGER), ColumnDefinition("B", STRING))),
        ),
        ("ALTER SYSTEM 'a.b' = 'c';", AlterSystem("a.b", "c")),
        ("DROP STREAM s;", DropSource(SourceKind.STREAM, "S")),
        (
            "DROP TABLE IF EXISTS t DELETE TOPIC;",
            DropSource(SourceKind.TABLE, "T", if_exists=True, delete_topic=True),
        ),
        ("CREATE TYPE IF NOT EXISTS x AS INT ARRAY;", CreateType("X", ArrayType(INTEGER), if_not_exists=True)),
        ("DROP TYPE IF EXISTS x;", DropType("X", if_exists=True)),
        (
            "CREATE SINK CONNECTOR IF NOT EXISTS `c-1` WITH ('connector.class'='File');",
            CreateConnector(
                ConnectorKind.SINK, "c-1", (Property("connector.class", StringLiteral("File")),), if_not_exists=True
            ),
        ),
        ("DROP CONNECTOR c;", DropConnector("C")),
    ],
)
def test_other_definitions(text: str, parsed: Statement) -> None:
    assert statement(text) == parsed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "CREATE TABLE t (a INT, b INT KEY);",
            "Line: 1, Col: 24: Column `B` is a 'KEY' column: please use 'PRIMARY KEY' for tables.",
        ),
        (
            "CREATE STREAM s (a INT PRIMARY KEY);",
            "Line: 1, Col: 18: Column `A` is a 'PRIMARY KEY' column: please use 'KEY' for streams.",
        ),
        ("CREATE STREAM s (select INT);", "Syntax error at or near 'select' at line 1:18"),
        ("CREATE STREAM s (a INT KEY KEY);", "Expecting {',', ')'}"),
        ("CREATE STREAM s () WITH (a='b');", "Syntax Error"),
        ("CREATE STREAM s WITH ();", "Syntax Error"),
        ("CREATE STREAM s WITH (a=b);", "Syntax error at or near 'b' at line 1:25"),
        ("CREATE STREAM s WITH (a='b', A='c');", "Multiple entries with same key: A"),
        ("CREATE STREAM s (a INT) AS SELECT * FROM t;", "Expecting ';'"),
        (
            "CREATE STREAM s AS SELECT * FROM t LIMIT 1;",
            "CREATE STREAM AS SELECT statements don't support LIMIT clause.",
        ),
        ("CREATE TOPIC t;", "Syntax error at or near 'TOPIC'"),
        ("CREATE SINK CONNECTOR c;", "Expecting 'WITH'"),
        ("DROP VIEW v;", "Syntax error at or near 'VIEW'"),
        ("CREATE STREAM `a b` (x INT);", "Source names may only contain alphanumeric values, '_' or '-'. Got: 'a b'"),
    ],
)
def test_what_is_no_definition_is_refused(text: str, reason: str) -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse(text)

    assert reason in refusal.value.message
