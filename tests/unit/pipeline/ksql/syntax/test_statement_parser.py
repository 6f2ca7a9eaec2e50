"""Every other statement is read, by its first word."""

from __future__ import annotations

import pytest

from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expressions import IntegerLiteral, Location, StringLiteral
from moldau.pipeline.ksql.syntax.parser import parse, parse_expression
from moldau.pipeline.ksql.syntax.statements import (
    AssertSchema,
    AssertTopic,
    ConnectorKind,
    ControlQuery,
    DefineVariable,
    DescribeConnector,
    DescribeFunction,
    DescribeSource,
    DescribeSources,
    Duration,
    Emit,
    Explain,
    InsertSelect,
    InsertValues,
    Listing,
    PrintTopic,
    Property,
    Query,
    QueryAction,
    SetProperty,
    Show,
    SourceKind,
    Statement,
    TimeUnit,
    UndefineVariable,
    UnsetProperty,
)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("TERMINATE csas_a_1;", ControlQuery(QueryAction.TERMINATE, "CSAS_A_1")),
        ("PAUSE ALL;", ControlQuery(QueryAction.PAUSE, None)),
        ("RESUME `q`;", ControlQuery(QueryAction.RESUME, "q")),
        ("EXPLAIN ctas_t_0;", Explain(query_id="CTAS_T_0")),
        ("EXPLAIN show;", Explain(query_id="SHOW")),
        ("EXPLAIN SHOW TABLES;", Explain(statement=Show(Listing.TABLES))),
        ("LIST TOPICS;", Show(Listing.TOPICS)),
        ("SHOW ALL TOPICS EXTENDED;", Show(Listing.TOPICS, is_extended=True, show_all=True)),
        ("show streams extended;", Show(Listing.STREAMS, is_extended=True)),
        ("SHOW QUERIES;", Show(Listing.QUERIES)),
        ("SHOW FUNCTIONS;", Show(Listing.FUNCTIONS)),
        ("SHOW PROPERTIES;", Show(Listing.PROPERTIES)),
        ("SHOW TYPES;", Show(Listing.TYPES)),
        ("SHOW VARIABLES;", Show(Listing.VARIABLES)),
        ("SHOW CONNECTORS;", Show(Listing.CONNECTORS)),
        ("SHOW SINK CONNECTORS;", Show(Listing.CONNECTORS, connector_kind=ConnectorKind.SINK)),
        ("SHOW CONNECTOR PLUGINS;", Show(Listing.CONNECTOR_PLUGINS)),
        ("DESCRIBE s EXTENDED;", DescribeSource("S", is_extended=True)),
        ("DESCRIBE TABLES;", DescribeSources(SourceKind.TABLE)),
        ("DESCRIBE `TABLES`;", DescribeSource("TABLES")),
        ("DESCRIBE STREAMS EXTENDED;", DescribeSources(SourceKind.STREAM, is_extended=True)),
        ("DESCRIBE FUNCTION ucase;", DescribeFunction("UCASE")),
        ("DESCRIBE FUNCTION;", DescribeSource("FUNCTION")),
        ("DESCRIBE CONNECTOR c;", DescribeConnector("C")),
        ("PRINT Orders;", PrintTopic("Orders")),
        ("PRINT 'my-topic' FROM BEGINNING INTERVAL 2 LIMIT 3;", PrintTopic("my-topic", True, 2, 3)),
        ("PRINT t SAMPLE 5;", PrintTopic("t", interval=5)),
        ("SET 'a' = 'it''s';", SetProperty("a", "it's")),
        ("UNSET 'a';", UnsetProperty("a")),
        ("DEFINE Topic = 'x';", DefineVariable("Topic", "x")),
        ("UNDEFINE limit;", UndefineVariable("limit")),
        ("ASSERT TOPIC T;", AssertTopic("T")),
        (
            "ASSERT NOT EXISTS TOPIC 't-1' WITH (partitions=1) TIMEOUT 5 SECONDS;",
            AssertTopic("t-1", (Property("PARTITIONS", IntegerLiteral(1)),), Duration(5, TimeUnit.SECONDS), False),
        ),
        ("ASSERT SCHEMA SUBJECT 's-value' ID 3;", AssertSchema("s-value", 3)),
        ("ASSERT NOT EXISTS SCHEMA ID 4;", AssertSchema(schema_id=4, expects_existence=False)),
    ],
)
def test_statements(text: str, parsed: Statement) -> None:
    assert parse(text) == [parsed]


def test_insert_values_with_and_without_columns() -> None:
    assert parse("INSERT INTO s (a, `b`) VALUES (1, 'x'); INSERT INTO s VALUES (1 + 2); INSERT INTO s VALUES ();") == [
        InsertValues("S", ("A", "b"), (IntegerLiteral(1), StringLiteral("x"))),
        InsertValues("S", (), (parse_expression("1 + 2"),)),
        InsertValues("S", (), ()),
    ]


def test_insert_select_knows_where_its_target_stands() -> None:
    (statement,) = parse("INSERT INTO\n s WITH (query_id='x') SELECT * FROM t;")

    assert isinstance(statement, InsertSelect)
    assert statement.query.emit is Emit.CHANGES
    assert statement.properties == (Property("QUERY_ID", StringLiteral("x")),)
    assert statement.target_location == Location(2, 2)


def test_explain_of_a_query() -> None:
    (statement,) = parse("EXPLAIN SELECT * FROM s EMIT CHANGES;")

    assert isinstance(statement, Explain)
    assert isinstance(statement.statement, Query)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RUN SCRIPT 'x';", "line 1:1: Syntax Error\nUnknown statement 'RUN'\nDid you mean 'PRINT'?"),
        ("CRATE STREAM s;", "Unknown statement 'CRATE'\nDid you mean 'CREATE'?"),
        ("'x';", "Unknown statement ''x''"),
        (";", "Unknown statement ';'"),
        ("ASSERT VALUES s VALUES (1);", "Syntax error at or near 'VALUES'"),
        ("ASSERT STREAM s;", "Syntax error at or near 'STREAM'"),
        ("SHOW INDEXES;", "Syntax error at or near 'INDEXES'"),
        ("SHOW FUNCTIONS EXTENDED;", '"EXTENDED" is a reserved keyword'),
        ("SET a = 'b';", "Expecting STRING"),
        ("DEFINE 'a' = 'b';", "Syntax Error"),
        ("INSERT INTO s (a) SELECT * FROM t;", "Expecting 'VALUES'"),
        ("INSERT INTO s VALUES (t.a);", "'T' is not a valid stream/table name or alias."),
        ("INSERT INTO s VALUES (a = 1);", "Expecting {',', ')'}"),
        ("PRINT my-topic;", "Expecting ';'"),
        ("EXPLAIN 'x';", "Syntax error at or near ''x''"),
        ("SHOW TABLES", "line 1:12: Syntax Error\nmissing ';' at '<EOF>'"),
    ],
)
def test_what_is_no_statement_is_refused(text: str, reason: str) -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse(text)

    assert reason in refusal.value.message
