"""Expressions are printed as ksqlDB's messages quote them."""

from __future__ import annotations

import pytest

from moldau.pipeline.ksql.syntax import expressions
from moldau.pipeline.ksql.syntax.expressions import DoubleLiteral, Expression
from moldau.pipeline.ksql.syntax.parser import parse_expression
from moldau.pipeline.ksql.syntax.printer import _RULES, quote_if_needed, render, render_sql


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Array[1,2,3] + NULL", "(ARRAY[1, 2, 3] + null)"),
        ("MAP(1 := 'cat') + NULL", "(MAP(1:='cat') + null)"),
        ("random() + 1.5", "(RANDOM() + 1.5)"),
        ("l.a = null", "(L.A = null)"),
        ("`lower`->`Field`", "lower->Field"),
        ("substring(source, 0, 1)", "SUBSTRING(SOURCE, 0, 1)"),
        ("count(*)", "COUNT(*)"),
        ("transform(a, x => x + 1)", "TRANSFORM(A, (X) => (X + 1))"),
        ("cast(a as struct<f int>)", "CAST(A AS STRUCT<F INTEGER>)"),
        ("case a when 1 then true end", "(CASE A WHEN 1 THEN true END)"),
        ("'it''s'", "'it''s'"),
        ("- -1", "- -1"),
        ("-(5)", "-5"),
    ],
)
def test_messages_quote_expressions_so(text: str, printed: str) -> None:
    assert render(parse_expression(text)) == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [(0.0, "0E0"), (-0.0, "-0E0"), (1.5, "1.5E0"), (-10.0, "-1E1"), (0.00025, "2.5E-4"), (1.7e308, "1.7E308")],
)
def test_doubles_have_an_exponent(value: float, printed: str) -> None:
    assert render(DoubleLiteral(value)) == printed


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("A", "A"),
        ("KEY", "KEY"),
        ("1R", "1R"),
        ("A@B", "A@B"),
        ("a", "`a`"),
        ("SELECT", "`SELECT`"),
        ("A B", "`A B`"),
        ("A`B", "`A``B`"),
        ("12", "`12`"),
        ("1E5", "`1E5`"),
        ("É", "`É`"),
        ("", "``"),
        ('"A"', '`"A"`'),
        ("--", "`--`"),
        (" A", "` A`"),
    ],
)
def test_names_are_quoted_where_they_must_be(name: str, written: str) -> None:
    assert quote_if_needed(name) == written


@pytest.mark.parametrize(
    "text", ["-(5)", "(-a)[1]", "`MAP`(1)", "`left`(a)", "DECIMAL '5'", "0.00000001", "-(1.5)", "- -1", "a.`1R`"]
)
def test_sql_that_would_read_otherwise_is_written_so_that_it_does_not(text: str) -> None:
    expression = parse_expression(text)

    assert parse_expression(render_sql(expression)) == expression


def test_every_kind_of_expression_is_printed() -> None:
    kinds = {kind for kind in vars(expressions).values() if isinstance(kind, type) and issubclass(kind, Expression)}

    assert set(_RULES) == kinds - {Expression}
