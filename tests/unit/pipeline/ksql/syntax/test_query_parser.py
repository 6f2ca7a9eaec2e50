"""Queries are read clause by clause."""

from __future__ import annotations

import pytest

from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expressions import ColumnReference, Dereference, Location
from moldau.pipeline.ksql.syntax.parser import parse, parse_expression
from moldau.pipeline.ksql.syntax.statements import (
    Duration,
    Emit,
    HoppingWindow,
    JoinKind,
    Query,
    SelectAll,
    SelectExpression,
    SelectStructAll,
    SessionWindow,
    SourceReference,
    TimeUnit,
    TumblingWindow,
    Window,
    Within,
)


def query(text: str) -> Query:
    (statement,) = parse(text)
    assert isinstance(statement, Query)
    return statement


def test_every_kind_of_select_item() -> None:
    assert query("SELECT a, b AS c, d `e`, *, s.*, s.x->y->* FROM s;").select == (
        SelectExpression(ColumnReference("A")),
        SelectExpression(ColumnReference("B"), "C"),
        SelectExpression(ColumnReference("D"), "e"),
        SelectAll(),
        SelectAll("S"),
        SelectStructAll(Dereference(ColumnReference("X", "S"), "Y")),
    )


def test_all_clauses_in_their_order() -> None:
    parsed = query(
        "SELECT a FROM s WINDOW TUMBLING (SIZE 1 HOUR) WHERE a > 1 GROUP BY a, b PARTITION BY c HAVING count(*) > 2 "
        "EMIT FINAL LIMIT 3;"
    )

    assert parsed.source == SourceReference("S", "S")
    assert parsed.window == TumblingWindow(Duration(1, TimeUnit.HOURS))
    assert parsed.where == parse_expression("a > 1")
    assert parsed.group_by == (ColumnReference("A"), ColumnReference("B"))
    assert parsed.partition_by == (ColumnReference("C"),)
    assert parsed.having == parse_expression("count(*) > 2")
    assert (parsed.emit, parsed.limit, parsed.is_pull) == (Emit.FINAL, 3, False)


def test_a_query_without_emit_is_a_pull_query() -> None:
    assert query("SELECT * FROM t WHERE k = 1;").is_pull
    assert not query("SELECT * FROM t EMIT CHANGES;").is_pull


@pytest.mark.parametrize(
    ("text", "window"),
    [
        (
            "TUMBLING (SIZE 30 SECONDS, RETENTION 1 DAY, GRACE PERIOD 10 MINUTES)",
            TumblingWindow(Duration(30, TimeUnit.SECONDS), Duration(1, TimeUnit.DAYS), Duration(10, TimeUnit.MINUTES)),
        ),
        (
            "pairs HOPPING (SIZE 1 MINUTE, ADVANCE BY 500 MILLISECONDS)",
            HoppingWindow(Duration(1, TimeUnit.MINUTES), Duration(500, TimeUnit.MILLISECONDS)),
        ),
        (
            "SESSION (5 MINUTES, GRACE PERIOD 0 SECONDS)",
            SessionWindow(Duration(5, TimeUnit.MINUTES), grace=Duration(0, TimeUnit.SECONDS)),
        ),
    ],
)
def test_windows(text: str, window: Window) -> None:
    assert query(f"SELECT a FROM s WINDOW {text} GROUP BY a EMIT CHANGES;").window == window


def test_a_duration_is_known_in_milliseconds() -> None:
    assert Duration(2, TimeUnit.HOURS).ms == 7_200_000


def test_joins_of_every_kind() -> None:
    parsed = query(
        "SELECT * FROM a JOIN b ON a.x = b.x INNER JOIN c cc ON a.x = cc.x LEFT JOIN d AS dd WITHIN 1 HOUR "
        "ON a.x = dd.x RIGHT OUTER JOIN e WITHIN (1 SECOND, 2 SECONDS) GRACE PERIOD 3 SECONDS ON a.x = e.x "
        "FULL OUTER JOIN f ON a.x = f.x;"
    )

    assert [join.kind for join in parsed.joins] == [
        JoinKind.INNER,
        JoinKind.INNER,
        JoinKind.LEFT,
        JoinKind.RIGHT,
        JoinKind.FULL,
    ]
    assert [source.alias for source in parsed.sources] == ["A", "B", "CC", "DD", "E", "F"]
    hour = Duration(1, TimeUnit.HOURS)
    assert parsed.joins[2].within == Within(hour, hour)
    one, two, three = (Duration(number, TimeUnit.SECONDS) for number in (1, 2, 3))
    assert parsed.joins[3].within == Within(one, two, three)
    assert parsed.joins[0].condition == parse_expression("a.x = b.x")


def test_words_that_start_clauses_are_aliases_only_where_no_clause_follows() -> None:
    assert query("SELECT * FROM s EMIT CHANGES;").source.alias == "S"
    assert query("SELECT * FROM s emit EMIT CHANGES;").source.alias == "EMIT"
    assert query("SELECT * FROM s PARTITION BY x EMIT CHANGES;").source.alias == "S"


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a, b", ["a", "b"]),
        ("(a, b)", ["a", "b"]),
        ("(a)", ["a"]),
        ("(a) + 1, b", ["(a) + 1", "b"]),
        ("(a = b OR f(a, b))", ["(a = b OR f(a, b))"]),
        ("()", []),
    ],
)
def test_keys_stand_in_one_pair_of_parentheses_or_none(text: str, keys: list[str]) -> None:
    assert query(f"SELECT a FROM s GROUP BY {text} EMIT CHANGES;").group_by == tuple(map(parse_expression, keys))


def test_places_are_those_of_the_text() -> None:
    parsed = query("SELECT a\nFROM s\n JOIN t ON s.x = t.x EMIT CHANGES;")

    assert parsed.joins[0].location == Location(3, 2)
    assert parsed.joins[0].condition.location == Location(3, 16)
    assert parsed.joins[0].source.location == Location(3, 7)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT FROM s;", "line 1:8: Syntax Error\nSyntax error at or near 'FROM' at line 1:8"),
        ("SELECT a s;", "Expecting 'FROM'"),
        ("SELECT a FROM s GROUP BY a AND b;", "line 1:28: Syntax Error\nExpecting ';'"),
        ("SELECT a FROM s WHERE a LIMIT many;", "line 1:31: Syntax Error\n"),
        ("SELECT a FROM s LIMIT 1.5;", "Failed to prepare statement: Value must be integer for command: LIMIT"),
        ("SELECT a FROM s EMIT NOW;", "Expecting ';'"),
        ("SELECT a FROM s x EMIT NOW;", "Expecting {'CHANGES', 'FINAL'}"),
        ("SELECT a FROM s HAVING a WHERE b;", "Expecting ';'"),
        ("SELECT a FROM explode(b);", "Syntax Error"),
        ("SELECT a FROM s JOIN t;", "Expecting 'ON'"),
        ("SELECT a FROM s WINDOW SLIDING (SIZE 1 DAY);", "Syntax Error"),
        ("SELECT a FROM s WINDOW TUMBLING (SIZE 1 WEEK);", "Syntax error at or near 'WEEK'"),
        ("SELECT a FROM s WINDOW TUMBLING (SIZE 1.5 DAYS);", 'For input string: "1.5"'),
        ("SELECT a FROM `s.t`;", "Illegal argument at Line: 1, Col: 15. Source names may only contain"),
    ],
)
def test_what_is_no_query_is_refused_with_the_place(text: str, reason: str) -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse(text)

    assert reason in refusal.value.message
