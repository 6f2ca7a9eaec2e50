"""Expressions are read with ksqlDB's precedence, as the printer's parentheses show."""

from __future__ import annotations

from decimal import Decimal

import pytest

from moldau.formats.types import INTEGER, STRING, ArrayType, DecimalType, Field, StructType
from moldau.pipeline.ksql.syntax.errors import KsqlParseError
from moldau.pipeline.ksql.syntax.expressions import (
    Case,
    Cast,
    ColumnReference,
    CreateStruct,
    DecimalLiteral,
    DoubleLiteral,
    Expression,
    FunctionCall,
    IntegerLiteral,
    IntervalUnit,
    Lambda,
    LambdaVariable,
    Like,
    Location,
    Logical,
    LongLiteral,
    NullLiteral,
    Sign,
    Signed,
    StringLiteral,
    Subscript,
    When,
)
from moldau.pipeline.ksql.syntax.parser import parse_expression
from moldau.pipeline.ksql.syntax.printer import render


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a or b and not c", "(A OR (B AND (NOT C)))"),
        ("not a = b and c", "((NOT (A = B)) AND C)"),
        ("a + b * c - d", "((A + (B * C)) - D)"),
        ("a || b + c || d", "CONCAT(CONCAT(A, (B + C)), D)"),
        ("-a * b % -3", "((-A * B) % -3)"),
        ("a - -b", "(A - -B)"),
        ("a between 1 and 2 and b", "((A BETWEEN 1 AND 2) AND B)"),
        ("a not in (1, 2)", "(NOT (A IN (1, 2)))"),
        ("a not like 'x%' escape '!'", "(NOT (A LIKE 'x%' ESCAPE '!'))"),
        ("a is not null or b is null", "((A IS NOT NULL) OR (B IS NULL))"),
        ("a is not distinct from b", "(NOT (A IS DISTINCT FROM B))"),
        ("a != b", "(A <> B)"),
        ("(a = b) = (c = d)", "((A = B) = (C = D))"),
        ("s->f[2]->g", "S->F[2]->G"),
        ("s→f", "S->F"),
        ("t.a[-1] = `t`.`a`", "(T.A[-1] = t.a)"),
        ("case when a then 1 else 2 end + 1", "((CASE WHEN A THEN 1 ELSE 2 END) + 1)"),
    ],
)
def test_operators_bind_by_precedence(text: str, grouped: str) -> None:
    assert render(parse_expression(text)) == grouped


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("2147483647", IntegerLiteral(2147483647)),
        ("-2147483648", IntegerLiteral(-2147483648)),
        ("2147483648", LongLiteral(2147483648)),
        ("-9223372036854775808", LongLiteral(-9223372036854775808)),
        ("000000000000000000000000007", IntegerLiteral(7)),
        ("1.50", DecimalLiteral(Decimal("1.50"))),
        ("-.8", DecimalLiteral(Decimal("-0.8"))),
        ("DECIMAL '2.50'", DecimalLiteral(Decimal("2.50"))),
        ("1.5e3", DoubleLiteral(1500.0)),
        ("'it''s'", StringLiteral("it's")),
        ("null", NullLiteral()),
    ],
)
def test_literals_have_the_type_that_their_form_gives(text: str, literal: Expression) -> None:
    parsed = parse_expression(text)

    assert parsed == literal
    assert repr(parsed) == repr(literal)


def test_a_decimal_literal_keeps_its_scale() -> None:
    literal = parse_expression("10.00")

    assert isinstance(literal, DecimalLiteral)
    assert literal.value.as_tuple().exponent == -2


def test_a_sign_before_parentheses_is_an_operator() -> None:
    assert parse_expression("-(5)") == Signed(Sign.MINUS, IntegerLiteral(5))


def test_constructors_and_functions() -> None:
    assert parse_expression("STRUCT(a := 1, `b` := 'x')") == CreateStruct(
        (("A", IntegerLiteral(1)), ("b", StringLiteral("x")))
    )
    assert render(parse_expression("array[1, array[], map(), map('k' := 2), struct()]")) == (
        "ARRAY[1, ARRAY[], MAP(), MAP('k':=2), STRUCT()]"
    )
    assert parse_expression("count(*)") == parse_expression("COUNT()") == FunctionCall("COUNT")
    assert parse_expression("timestampadd(days, 2, t)") == FunctionCall(
        "TIMESTAMPADD", (IntervalUnit("DAYS"), IntegerLiteral(2), ColumnReference("T"))
    )


def test_words_that_also_open_constructors_are_names_elsewhere() -> None:
    assert parse_expression("map[array]") == Subscript(ColumnReference("MAP"), ColumnReference("ARRAY"))
    assert parse_expression("date") == ColumnReference("DATE")


def test_a_cast_has_its_type() -> None:
    struct = StructType((Field("A", DecimalType(4, 2)), Field("b", ArrayType(STRING))))

    assert parse_expression("CAST(x AS STRUCT<a DECIMAL(4, 2), `b` VARCHAR ARRAY>)") == Cast(
        ColumnReference("X"), struct
    )
    assert parse_expression("cast(x as int)") == Cast(ColumnReference("X"), INTEGER)


def test_names_in_a_lambda_are_its_parameters_or_columns() -> None:
    call = parse_expression("reduce(items, 0, (s, x) => s + x * factor)")

    assert isinstance(call, FunctionCall)
    body = parse_expression("placeholder")
    match call.arguments[2]:
        case Lambda(("S", "X"), body):
            assert render(body) == "(S + (X * FACTOR))"
        case other:
            pytest.fail(f"not a lambda: {other}")
    assert LambdaVariable("S") in _leaves(body)
    assert ColumnReference("FACTOR") in _leaves(body)


def _leaves(expression: Expression) -> list[Expression]:
    left, right = getattr(expression, "left", None), getattr(expression, "right", None)
    return [expression] if left is None or right is None else _leaves(left) + _leaves(right)


def test_a_lambda_parameter_ends_with_its_lambda() -> None:
    call = parse_expression("f(transform(a, x => x), x)")

    assert isinstance(call, FunctionCall)
    assert call.arguments[1] == ColumnReference("X")


def test_both_forms_of_case() -> None:
    when = When(IntegerLiteral(1), StringLiteral("one"))

    assert parse_expression("case x when 1 then 'one' end") == Case((when,), None, ColumnReference("X"))
    assert parse_expression("case when 1 then 'one' else null end") == Case((when,), NullLiteral())


def test_equality_leaves_places_out_and_nodes_keep_them() -> None:
    first, second = parse_expression("a  +  1"), parse_expression("A+1")

    assert first == second
    assert (first.location, second.location) == (Location(1, 4), Location(1, 2))


def test_like_keeps_its_escape() -> None:
    assert parse_expression("a like '%!%' escape '!'") == Like(ColumnReference("A"), StringLiteral("%!%"), "!")


def test_a_long_list_of_alternatives_is_a_shallow_tree() -> None:
    expression = parse_expression(" OR ".join(f"a = {number}" for number in range(5000)))

    depth, node = 0, expression
    while isinstance(node, Logical):
        depth, node = depth + 1, node.left
    assert depth == 13
    assert render(expression).replace("(", "").replace(")", "") == " OR ".join(f"A = {n}" for n in range(5000))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("9223372036854775808", "line 1:2: Invalid numeric literal: 9223372036854775808"),
        ("a + 1e999", "line 1:6: Number overflows DOUBLE: 1e999"),
        ("DECIMAL 'much'", "Invalid numeric literal: much"),
        ("DECIMAL '1E999999999'", "Invalid numeric literal: 1E999999999"),
        ("DATE '2020-01-01'", "Unknown type: DATE, location:Optional[Line: 1, Col: 1]"),
        ("a like b escape '!!'", "Line: 1, Col: 17: Expected single character escape but got: !!"),
        ("a in ()", "Syntax error at or near ')' at line 1:7"),
        ("a +", "Syntax error at or near '<EOF>' at line 1:4"),
        ("a = b = c", "Expecting '<EOF>'"),
        ("a not b", "Expecting {'BETWEEN', 'IN', 'LIKE'}"),
        ("a is b", "Expecting {'NULL', 'DISTINCT'}"),
        ("from", "Syntax error at or near 'from' at line 1:1"),
        ("f(x => x)", "Expecting {',', ')'}"),
        ("f(a, x => x, b)", "Syntax error at or near 'b' at line 1:14"),
        ("(a", "'}', ']', or ')' is missing"),
        ("'abc", "Syntax error at or near ''' at line 1:1: not closed"),
        ("${x}", "Syntax error at or near '${x}' at line 1:1"),
        ("case x end", "Expecting 'WHEN'"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_place(text: str, reason: str) -> None:
    with pytest.raises(KsqlParseError) as refusal:
        parse_expression(text)

    assert reason in refusal.value.message
