"""What the ksql printer writes, the parser reads as the same tree; and any text is read or refused."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from moldau.formats.types import BIGINT, BYTES, DOUBLE, STRING, ArrayType, DecimalType, Field, MapType, StructType
from moldau.pipeline.ksql.syntax import expressions as tree
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.parser import parse, parse_expression, parse_type
from moldau.pipeline.ksql.syntax.printer import render, render_sql, render_type
from moldau.pipeline.ksql.syntax.splitting import split_statements
from moldau.pipeline.ksql.syntax.statement_printer import render_statement
from moldau.pipeline.ksql.syntax.statements import Emit, Query, SelectAll, SelectExpression, SourceReference
from moldau.pipeline.ksql.syntax.tokens import KEYWORDS
from moldau.pipeline.ksql.syntax.variables import substitute

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.sampled_from(["A", "b", "KEY", "SELECT", "A B", "x`y", "1R", "12", "_@"]) | texts.filter(bool)
numbers = st.integers(-(2**63), 2**63 - 1)

types = st.recursive(
    st.sampled_from([BIGINT, BYTES, DOUBLE, STRING, DecimalType(10, 2)])
    | names.map(lambda name: tree.NamedType(f"{name}_TYPE")),
    lambda inner: (
        st.builds(ArrayType, inner)
        | st.builds(MapType, inner, inner)
        | st.lists(st.builds(Field, names, inner), max_size=3, unique_by=lambda field: field.name).map(
            lambda fields: StructType(tuple(fields))
        )
    ),
    max_leaves=6,
)


def integer(value: int) -> tree.Expression:
    return tree.IntegerLiteral(value) if -(2**31) <= value < 2**31 else tree.LongLiteral(value)


bare_leaves: st.SearchStrategy[tree.Expression] = st.one_of(
    st.just(tree.NullLiteral()),
    st.builds(tree.BooleanLiteral, st.booleans()),
    numbers.map(integer),
    st.builds(tree.DoubleLiteral, st.floats(allow_nan=False, allow_infinity=False)),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda value: tree.DecimalLiteral(Decimal(value))),
    st.builds(tree.StringLiteral, texts),
    st.builds(tree.ColumnReference, names),
)
leaves = bare_leaves | st.builds(tree.ColumnReference, names, names)


def composed(inner: st.SearchStrategy[tree.Expression]) -> st.SearchStrategy[tree.Expression]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    whens = st.lists(st.builds(tree.When, inner, inner), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(tree.Signed, st.sampled_from(tree.Sign), inner),
        st.builds(tree.Arithmetic, st.sampled_from(tree.ArithmeticOperator), inner, inner),
        st.builds(
            tree.Comparison,
            st.sampled_from(
                [kind for kind in tree.ComparisonOperator if kind is not tree.ComparisonOperator.IS_NOT_DISTINCT_FROM]
            ),
            inner,
            inner,
        ),
        st.builds(tree.Logical, st.sampled_from(tree.LogicalOperator), inner, inner),
        st.builds(tree.Not, inner),
        st.builds(tree.IsNull, inner, st.booleans()),
        st.builds(tree.Between, inner, inner, inner),
        st.builds(tree.In, inner, several),
        st.builds(tree.Like, inner, inner, st.none() | st.sampled_from("!'\\")),
        st.builds(tree.Case, whens, st.none() | inner, st.none() | inner),
        st.builds(tree.Cast, inner, types),
        st.builds(tree.Subscript, inner, inner),
        st.builds(tree.Dereference, inner, names),
        st.builds(tree.CreateArray, st.just(()) | several),
        st.builds(tree.CreateMap, st.lists(st.tuples(inner, inner), max_size=2).map(tuple)),
        st.builds(tree.CreateStruct, st.lists(st.tuples(names, inner), max_size=2).map(tuple)),
        st.builds(tree.FunctionCall, st.sampled_from(["COUNT", "F", "MAP", "LEFT", "TRIM"]), st.just(()) | several),
        inner.map(lambda body: tree.FunctionCall("TRANSFORM", (body, tree.Lambda(("QQ",), tree.LambdaVariable("QQ"))))),
        inner.map(lambda value: tree.FunctionCall("DATEADD", (tree.IntervalUnit("DAYS"), value))),
    )


expressions = st.recursive(leaves, composed, max_leaves=12)
of_one_source = st.recursive(bare_leaves | st.builds(tree.ColumnReference, names, st.just("S")), composed, max_leaves=6)


@given(expressions)
def test_a_printed_expression_is_read_as_the_same(expression: tree.Expression) -> None:
    printed = render_sql(expression)

    again = parse_expression(printed)

    assert again == expression
    assert render_sql(again) == printed
    assert render(again) == render(expression)


@given(types)
def test_a_printed_type_is_read_as_the_same(sql_type: StructType) -> None:
    assert parse_type(render_type(sql_type)) == sql_type


@given(st.lists(of_one_source, min_size=1, max_size=3), st.none() | of_one_source, st.none() | st.integers(0, 9))
def test_a_printed_query_is_read_as_the_same(
    selected: list[tree.Expression], where: tree.Expression | None, limit: int | None
) -> None:
    items = (SelectAll(), *(SelectExpression(expression, "ALIAS") for expression in selected))
    query = Query(items, SourceReference("S", "S"), where=where, emit=Emit.CHANGES, limit=limit)

    assert parse(render_statement(query), allow_missing_semicolon=True) == [query]


words = st.sampled_from(
    [*sorted(KEYWORDS), *"()[],;.*+-<>=", "->", "=>", ":=", "||", "a", "`b`", "'c'", "1", "1.5", "${v}"]
)
soup = st.lists(words, max_size=30).map(" ".join) | st.text(max_size=40)


@given(soup)
def test_any_text_is_read_or_refused_with_the_parsers_own_error(text: str) -> None:
    for attempt in (text, f"SELECT {text}", f"CREATE STREAM s {text};", f"SELECT a FROM s {text};"):
        with suppress(KsqlParseError):
            parse(attempt)
        with suppress(KsqlParseError):
            substitute(attempt, {"v": text})


@given(soup)
def test_splitting_loses_nothing_but_space_and_comments(text: str) -> None:
    split = split_statements(text)

    position = 0
    for part in (*split.statements, *([split.rest] if split.rest else [])):
        position = text.index(part.text, position) + len(part.text)
