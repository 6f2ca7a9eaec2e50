from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from moldau.formats.columns import Column
from moldau.formats.types import BIGINT, DATE, INTEGER, STRING, TIMESTAMP
from moldau.pipeline.cores.sql.functions.describing import describe, function_names
from moldau.pipeline.cores.sql.functions.libraries import load_functions
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.cores.sql.functions.resolution import FunctionLookupError
from moldau.pipeline.cores.sql.rows import aggregation_of, compile_row, table_function_of
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.syntax.parser import parse_expression
from moldau.pipeline.ksql.typing.calls import typed_aggregate, typed_table_function
from moldau.pipeline.ksql.typing.scope import RowScope
from moldau.pipeline.ksql.typing.typing import typed_select

MODULE = '''
    from __future__ import annotations
    import datetime
    from decimal import Decimal
    from typing import Annotated, TypeVar
    from moldau.pipeline.cores.sql.functions.user import udaf, udf, udtf

    T = TypeVar("T")

    @udf
    def initials(name: str) -> str:
        """The first letters
        of all words."""
        return "".join(word[0] for word in name.split())

    @udf(name="twice", author="someone", version="1.2")
    def twice_number(value: int) -> int:
        return 2 * value

    @udf(name="twice")
    def twice_text(value: str) -> str:
        return 2 * value

    @udf
    def shown(value: str | None) -> str:
        return "nothing" if value is None else value

    @udf
    def next_day(day: datetime.date) -> datetime.date:
        return day + datetime.timedelta(days=1)

    @udf
    def year_of(moment: datetime.datetime) -> Annotated[int, "INTEGER"]:
        return moment.year

    @udf
    def first(*values: T) -> T:
        return values[0]

    @udf
    def repeat(text: str, times: int = 2) -> str:
        return text * times

    @udf
    def broken(value: int) -> int:
        raise RuntimeError("not today")

    @udf
    def price(value: Decimal) -> Annotated[Decimal, "DECIMAL(6, 2)"]:
        return value.quantize(Decimal("0.01"))

    @udtf
    def letters(text: str) -> list[str]:
        return list(text)

    @udaf
    class Longest:
        """The longest text."""

        def __init__(self, least: int = 0) -> None:
            self.least = least

        def initial(self) -> str | None:
            return None

        def add(self, state: str | None, text: str) -> str | None:
            return text if len(text) >= max(self.least, len(state or "")) else state

        def merge(self, one: str | None, other: str | None) -> str | None:
            return max((one, other), key=lambda text: len(text or ""))
'''
SCOPE = RowScope([Column("S", STRING), Column("N", INTEGER), Column("D", DATE), Column("TS", TIMESTAMP)])


@pytest.fixture
def functions(tmp_path: Path) -> FunctionRegistry:
    (tmp_path / "mine.py").write_text(dedent(MODULE))
    (tmp_path / "_ignored.py").write_text("raise RuntimeError")
    return load_functions(tmp_path)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("INITIALS(S)", "sb"),
        ("INITIALS(CAST(NULL AS STRING))", None),
        ("TWICE(S)", "swift brookswift brook"),
        ("TWICE(N)", 10),
        ("SHOWN(CAST(NULL AS STRING))", "nothing"),
        ("NEXT_DAY(D)", 2),
        ("YEAR_OF(TS)", 1970),
        ("FIRST(N, N)", 5),
        ("REPEAT('a')", "aa"),
        ("REPEAT('a', 3)", "aaa"),
        ("BROKEN(CAST(N AS BIGINT))", None),
        ("UCASE(INITIALS(S))", "SB"),
    ],
)
def test_functions_of_users_in_expressions(functions: FunctionRegistry, expression: str, expected: object) -> None:
    typed = typed_select(parse_expression(expression), SCOPE, functions)
    assert compile_row([typed], functions=functions)(("swift brook", 5, 1, 86_400_000))[0] == expected


def test_types_follow_the_annotations(functions: FunctionRegistry) -> None:
    assert typed_select(parse_expression("TWICE(N)"), SCOPE, functions).type == BIGINT
    assert str(typed_select(parse_expression("PRICE(1.5)"), SCOPE, functions).type) == "DECIMAL(6, 2)"
    assert typed_select(parse_expression("FIRST(S, S)"), SCOPE, functions).type == STRING


def test_an_aggregate_of_a_user(functions: FunctionRegistry) -> None:
    call = typed_aggregate(
        ast.FunctionCall("LONGEST", (ast.ColumnReference("S"), ast.IntegerLiteral(2))), SCOPE, functions
    )
    bound = aggregation_of(call, functions=functions)
    state = bound.initial()
    for text in ("a", "bb", None, "c"):
        state = bound.add(state, text)
    assert bound.result(bound.merge(state, "longer")) == "longer"
    assert bound.result(state) == "bb"
    assert call.result_type == call.state_type == STRING
    assert bound.undo is None
    without_constant = ast.FunctionCall("LONGEST", (ast.ColumnReference("S"),))
    assert typed_aggregate(without_constant, SCOPE, functions).constants == ()


def test_a_table_function_of_a_user(functions: FunctionRegistry) -> None:
    call = typed_table_function(ast.FunctionCall("LETTERS", (ast.ColumnReference("S"),)), SCOPE, functions)
    assert table_function_of(call, functions)("ab") == ["a", "b"]
    assert call.result_type == STRING


def test_they_are_described_as_the_built_in_ones_are(functions: FunctionRegistry) -> None:
    described = describe(functions, "twice")
    assert (described.name, described.author, described.version) == ("TWICE", "someone", "1.2")
    assert described.path.endswith("mine.py")
    assert [variation.arguments[0].type for variation in described.variations] == ["BIGINT", "VARCHAR"]
    assert describe(functions, "initials").description == "The first letters of all words."
    assert {"INITIALS", "ABS", "LETTERS", "LONGEST"} <= {each.name for each in function_names(functions)}
    with pytest.raises(FunctionLookupError, match="Can't find any functions with the name 'NOTHING'"):
        describe(functions, "NOTHING")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", "bad.py cannot be loaded: ZeroDivisionError"),
        ("@udf\ndef abs(x: int) -> int: return x", "ABS is built in"),
        ("@udf\ndef f(x) -> int: return x", "the parameter x has no annotation"),
        ("@udf\ndef f(x: int): return x", "the result has no annotation"),
        ("@udf\ndef f(x: complex) -> int: return x", "no SQL type for the annotation"),
        ("@udf\ndef f(x: 'Missing') -> int: return x", "annotations cannot be read"),
        ("@udtf\ndef f(x: int) -> int: return x", "returns a list"),
        ("@udaf\nclass F:\n    def initial(self) -> int: return 0", "needs a method add"),
    ],
)
def test_modules_that_cannot_be_used_are_named(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(f"from moldau.pipeline.cores.sql.functions.user import *\n{source}\n")
    with pytest.raises(FunctionLookupError) as caught:
        load_functions(tmp_path)
    assert message in str(caught.value)


def test_a_folder_that_is_not_there_has_no_functions(tmp_path: Path) -> None:
    assert describe(load_functions(tmp_path / "missing"), "ABS").name == "ABS"
