"""One input becomes requests, queries and changes of the session, all read before the first is sent."""

from __future__ import annotations

import pytest

from moldau.cli.ksql.shell.steps import LocalStep, QueryStep, RequestStep, plan_steps
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.statements import DefineVariable, SetProperty


def test_statements_in_a_row_are_one_request_and_queries_split_it() -> None:
    steps = plan_steps("SHOW STREAMS; SHOW TABLES; SELECT * FROM s EMIT CHANGES; PRINT t; SHOW TOPICS", {})

    assert steps == [
        RequestStep("SHOW STREAMS;\nSHOW TABLES;"),
        QueryStep("SELECT * FROM s EMIT CHANGES;", is_print=False),
        QueryStep("PRINT t;", is_print=True),
        RequestStep("SHOW TOPICS;"),
    ]


def test_statements_about_the_session_stay_here() -> None:
    assert plan_steps("SET 'a'='b'; SHOW STREAMS;", {}) == [
        LocalStep(SetProperty("a", "b")),
        RequestStep("SHOW STREAMS;"),
    ]


def test_variables_are_put_in_also_those_that_the_input_defines() -> None:
    steps = plan_steps("DEFINE x = 's'; DESCRIBE ${X}; DESCRIBE ${y};", {"Y": "other"})

    assert steps == [LocalStep(DefineVariable("x", "s")), RequestStep("DESCRIBE s;\nDESCRIBE other;")]


def test_without_substitution_a_variable_stays() -> None:
    assert plan_steps("PRINT '${x}';", None) == [QueryStep("PRINT '${x}';", is_print=True)]


def test_an_error_in_the_last_statement_lets_none_be_sent() -> None:
    with pytest.raises(KsqlParseError):
        plan_steps("SHOW STREAMS; SELECT FROM;", {})


def test_a_pull_query_is_told_apart() -> None:
    assert plan_steps("SELECT * FROM t;", {}) == [QueryStep("SELECT * FROM t;", is_print=False, is_pull=True)]
