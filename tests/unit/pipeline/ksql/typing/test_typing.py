from __future__ import annotations

import pickle

import pytest
from tests.unit.pipeline.cores.sql.evaluating import evaluate, scope_of, type_of

from moldau.formats.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, ArrayType, DecimalType, SqlType
from moldau.pipeline.cores.sql.rows import compile_filter, compile_row
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.syntax.parser import parse_expression, parse_type
from moldau.pipeline.ksql.typing.typing import typed_condition, typed_constant, typed_select

COLUMNS = {
    "I": ("INT", 5),
    "L": ("BIGINT", 7),
    "D": ("DOUBLE", 2.5),
    "DEC": ("DECIMAL(4,2)", None),
    "S": ("STRING", "hello"),
    "B": ("BOOLEAN", True),
    "A": ("ARRAY<INT>", [1]),
    "M": ("MAP<STRING, INT>", {}),
    "ST": ("STRUCT<F INT, `g` STRING>", (1, "x")),
    "DT": ("DATE", 1),
    "TS": ("TIMESTAMP", 86_400_000),
    "ROWTIME": ("BIGINT", 1_577_836_800_000),
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("I + I", INTEGER),
        ("I + L", BIGINT),
        ("I + D", DOUBLE),
        ("DEC + D", DOUBLE),
        ("I + DEC", DecimalType(13, 2)),
        ("DEC * DEC", DecimalType(9, 4)),
        ("DEC / DEC", DecimalType(11, 7)),
        ("DEC % I", DecimalType(4, 2)),
        ("S + S", STRING),
        ("0.005", DecimalType(4, 3)),
        (".8", DecimalType(2, 1)),
        ("I = L", BOOLEAN),
        ("ARRAY[1, L]", "ARRAY<BIGINT>"),
        ("ARRAY[1, '2.50']", "ARRAY<DECIMAL(12, 2)>"),
        ("ARRAY['a', 1, true]", "ARRAY<STRING>"),
        ("ARRAY[NULL, 1]", "ARRAY<INTEGER>"),
        ("ARRAY[STRUCT(A := 1), STRUCT(B := 2)]", "ARRAY<STRUCT<`B` INTEGER, `A` INTEGER>>"),
        ("MAP('a' := 1, 'b' := L)", "MAP<STRING, BIGINT>"),
        ("STRUCT(X := I, `y` := S)", "STRUCT<`X` INTEGER, `y` STRING>"),
        ("ST->`g`", STRING),
        ("CASE WHEN B THEN NULL ELSE L END", BIGINT),
        ("CAST(NULL AS DATE)", DATE),
        ("-DEC", DecimalType(4, 2)),
    ],
)
def test_types(expression: str, expected: object) -> None:
    assert str(type_of(expression, **COLUMNS)) == str(expected)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("X", "SELECT column 'X' cannot be resolved."),
        ("I + S", "Error processing expression: (I + S). Arithmetic on types INTEGER and STRING are not supported."),
        ("I = S", "Cannot compare I (INTEGER) to S (STRING) with EQUAL."),
        ("B < B", "Cannot compare B (BOOLEAN) to B (BOOLEAN) with LESS_THAN."),
        ("A > A", "Cannot compare A (ARRAY<INTEGER>) to A (ARRAY<INTEGER>) with GREATER_THAN."),
        ("I <> NULL", "Comparison with NULL not supported: INTEGER <> NULL"),
        ("ARRAY[]", "Array constructor cannot be empty."),
        ("ARRAY[NULL]", "Cannot construct an array with all NULL elements"),
        ("MAP()", "Map constructor cannot be empty."),
        ("MAP('a' := NULL)", "Cannot construct a map with all NULL values"),
        ("ARRAY[1, 'x']", 'invalid input syntax for type INTEGER: "x".'),
        ("ARRAY[1, S]", "operator does not exist: INTEGER = STRING (S)"),
        ("I IN (1, true)", "Invalid Select: operator does not exist: INTEGER = BOOLEAN (true)"),
        ("STRUCT(F := 1, F := 2)", "Duplicate field names found in STRUCT"),
        ("ST->H", "Could not find field 'H' in 'ST'."),
        ("S->H", "Expected STRUCT type, got: STRING"),
        ("ST[1]", "Use the dereference operator for STRUCTS: ST->1"),
        ("CASE WHEN I THEN 1 END", "WHEN operand type should be boolean.\nType for 'I' is INTEGER"),
        ("CASE WHEN B THEN 1 WHEN B THEN 'x' END", "Type for all 'THEN' clauses should be the same."),
        ("CASE WHEN B THEN 1 ELSE 'x' END", "THEN type: INTEGER.\nDEFAULT type: STRING."),
        ("CASE I WHEN 1 THEN 2 END", "CASE"),
        ("CAST(S AS ARRAY<INT>)", "Invalid Select: Cast of STRING to ARRAY<INTEGER> is not supported"),
        ("CAST(B AS INT)", "Cast of BOOLEAN to INTEGER is not supported"),
        ("NULL", "Can't infer a type of null."),
        ("NO_SUCH(I)", "Can't find any functions with the name 'NO_SUCH'"),
        ("SUBSTRING(I)", "Function 'substring' does not accept parameters (INTEGER).\nValid alternatives are:\n"),
        (
            "GREATEST(I, L)",
            "Function 'greatest' cannot be resolved due to ambiguous method parameters (INTEGER, BIGINT).",
        ),
        ("COALESCE()", "Function 'COALESCE' does not accept parameters ()."),
        ("IFNULL(I, S)", "Function 'IFNULL' does not accept parameters (INTEGER, STRING)."),
        ("TRANSFORM(A, I => 1)", "Lambda function argument can't be a column name: I"),
        ("TRANSFORM(A, x => TRANSFORM(A, x => x))", "Reusing lambda arguments in nested lambda is not allowed"),
        ("COUNT(I)", "COUNT is an aggregate function"),
        ("B AND I", "operand of AND should be BOOLEAN"),
    ],
)
def test_refusals(expression: str, message: str) -> None:
    with pytest.raises(KsqlError) as caught:
        typed_select(parse_expression(expression), scope_of(COLUMNS))
    assert message in str(caught.value)


def test_the_alternatives_of_a_function_are_listed() -> None:
    with pytest.raises(KsqlError) as caught:
        typed_select(parse_expression("ELT('x')"), scope_of(COLUMNS))
    assert "elt(INT position, VARCHAR... values)" in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "I >= 'x'",
            "Error in WHERE expression: Cannot compare I (INTEGER) to 'x' (STRING) with GREATER_THAN_OR_EQUAL.",
        ),
        ("S", "Type error in WHERE expression: Should evaluate to boolean but is S (STRING) instead."),
        ("B AND I", "Should evaluate to boolean but is (B AND I) (INTEGER) instead."),
        ("I IN (10, S)", "Invalid Predicate: operator does not exist: INTEGER = STRING (S)"),
    ],
)
def test_refused_conditions_name_their_clause(expression: str, message: str) -> None:
    with pytest.raises(KsqlError) as caught:
        typed_condition(parse_expression(expression), scope_of(COLUMNS), "WHERE")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ROWTIME >= '2020-01-01'", True),
        ("ROWTIME < '2020-01-01T00:00:00.001'", True),
        ("ROWTIME BETWEEN '2019' AND '2020-01-01T01:00+02:00'", False),
        ("DT = '1970-01-02'", True),
        ("DT = TS", True),
        ("TS > DT", False),
    ],
)
def test_times_compared_with_texts(expression: str, expected: bool) -> None:
    assert evaluate(expression, **COLUMNS) is expected


def test_a_literal_that_is_no_date_fails_row_by_row() -> None:
    assert evaluate("DATEADD(DAYS, 1, 'soon')") is None
    assert evaluate("DT = 'soon'", **COLUMNS) is None


def test_constants_take_the_type_of_their_column() -> None:
    assert typed_constant(ast.IntegerLiteral(1), BIGINT).type == BIGINT
    assert typed_constant(ast.StringLiteral("2020-01-01"), DATE).type == DATE
    assert typed_constant(ast.NullLiteral(), DATE).type == DATE
    assert typed_constant(parse_expression("1.5"), DOUBLE).type == DOUBLE
    assert typed_constant(parse_expression("ARRAY[1, 2]"), ArrayType(BIGINT)).type == ArrayType(BIGINT)


@pytest.mark.parametrize(
    ("expression", "expected"), [("STRUCT()", (None, None)), ("STRUCT(B := 2, X := 'left out')", (None, 2))]
)
def test_structs_for_columns_may_have_other_fields(expression: str, expected: object) -> None:
    target = parse_type("STRUCT<A STRING, B BIGINT>")
    assert compile_row([typed_constant(parse_expression(expression), target)])(()) == (expected,)


@pytest.mark.parametrize(
    ("expression", "target", "message"),
    [
        ("'10'", INTEGER, "Expected type INTEGER for field `F` but got STRING(10)"),
        ("1.5", INTEGER, "Expected type INTEGER for field `F` but got DECIMAL(2, 1)(1.5)"),
        ("5", STRING, "Expected type STRING for field `F` but got INTEGER(5)"),
        ("ARRAY['a']", ArrayType(INTEGER), "Expected type ARRAY<INTEGER> for field `F` but got ARRAY<STRING>"),
        ("'soon'", DATE, "invalid input syntax for type DATE"),
    ],
)
def test_constants_are_only_widened(expression: str, target: SqlType, message: str) -> None:
    with pytest.raises(KsqlError) as caught:
        typed_constant(parse_expression(expression), target, column="F")
    assert message in str(caught.value)


def test_nesting_beyond_the_limit_is_refused_without_a_crash() -> None:
    deep: ast.Expression = ast.ColumnReference("I")
    for _ in range(5000):
        deep = ast.Signed(ast.Sign.MINUS, deep)
    with pytest.raises(KsqlError, match="nested more than"):
        typed_select(deep, scope_of(COLUMNS))


def test_nesting_up_to_the_limit_works_in_every_kind_of_node() -> None:
    for opening, closing in (("(1 + ", ")"), ("ABS(", ")"), ("CASE WHEN B THEN ", " END"), ("ARRAY[", "][1]")):
        text = opening * 40 + "I" + closing * 40
        typed = typed_select(parse_expression(text), scope_of(COLUMNS))
        row = tuple(value for _, value in COLUMNS.values())
        assert compile_row([pickle.loads(pickle.dumps(typed))])(row)[0] is not None


def test_thousands_of_conditions_are_one_level() -> None:
    text = " OR ".join(f"I = {number}" for number in range(5000, 0, -1))
    typed = typed_condition(parse_expression(text), scope_of(COLUMNS), "WHERE")
    row = tuple(value for _, value in COLUMNS.values())
    assert compile_filter(typed)(row) is True


def test_decimals_that_double_their_digits_end_in_a_refusal() -> None:
    text = "DEC"
    for _ in range(12):
        text = f"({text} / {text})"
    with pytest.raises(KsqlError, match="digits"):
        typed_select(parse_expression(text), scope_of(COLUMNS))
