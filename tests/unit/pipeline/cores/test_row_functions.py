from __future__ import annotations

from typing import Any

from moldau.formats.types import BIGINT, BOOLEAN, INTEGER, STRING, ArrayType
from moldau.pipeline.cores.records import Window, Windowed
from moldau.pipeline.cores.row_functions import compiled, folding_of_rows
from moldau.pipeline.cores.sql.processing_log import ListLog
from moldau.pipeline.ir import row_functions as rows
from moldau.pipeline.ir.sql import expressions as sql

A, B = sql.ColumnAt(INTEGER, 0), sql.ColumnAt(INTEGER, 1)
QUOTIENT = sql.Arithmetic(INTEGER, sql.ArithmeticOperator.DIVIDE, A, B)


def named(*expressions: sql.SqlExpression) -> tuple[rows.NamedExpression, ...]:
    return tuple(rows.NamedExpression(f"C{number}", one) for number, one in enumerate(expressions))


def test_a_projection_keeps_null_rows_and_logs_items_that_fail() -> None:
    log = ListLog()
    select = compiled(rows.SelectRow(named(QUOTIENT, A)), log)
    assert select((6, 3)) == (2, 6)
    assert select((6, 0)) == (None, 6)
    assert select(None) is None
    assert [what for what, _ in log.entries] == ["column `C0`"]


def test_a_condition_does_not_hold_where_it_fails() -> None:
    positive = sql.Comparison(BOOLEAN, sql.ComparisonOperator.GREATER_THAN, QUOTIENT, sql.Literal(INTEGER, 0))
    holds = compiled(rows.RowCondition(positive, "WHERE"))
    assert [holds("key", row) for row in ((6, 3), (0, 3), (1, 0), None)] == [True, False, False, False]


def test_a_key_of_a_null_row_comes_from_the_old_key_alone() -> None:
    key = compiled(rows.KeyOfRow(named(B, A), 2, (1,)))
    assert key((7,), (1, 2)) == (2, 1)
    assert key((7,), None) == (7, None)
    assert key(None, None) == (None, None)


def test_a_group_with_a_null_is_no_group() -> None:
    key = compiled(rows.KeyOfRow(named(A, B), 2, (), drops_nulls=True))
    assert key(None, (1, 2)) == (1, 2)
    assert key(None, (1, None)) is None
    assert key(None, None) is None


def test_rows_get_their_key_and_the_bounds_of_its_window() -> None:
    key = Windowed((1,), Window(10, 20))
    assert compiled(rows.RowWithKey())((1,), ("a",)) == ("a", 1)
    assert compiled(rows.RowWithKey(has_window=True))(key, ("a",)) == ("a", 1, 10, 20)
    assert compiled(rows.RowWithKey())((1,), None) is None


def test_steps_are_applied_one_after_the_other() -> None:
    steps = rows.RowSteps((rows.RowWithKey(), rows.SelectRow(named(B, A))))
    assert compiled(steps)((2,), (1,)) == (2, 1)


def test_a_missing_side_of_a_join_is_null() -> None:
    join = compiled(rows.JoinedRow(2, 1, has_key=True))
    assert join((9,), (1, 2), (3,)) == (1, 2, 3, 9)
    assert join((9,), None, (3,)) == (None, None, 3, 9)
    assert join((9,), (1, 2), None) == (1, 2, None, 9)
    assert compiled(rows.JoinedRow(2, 1, swaps_sides=True))((9,), (3,), (1, 2)) == (1, 2, 3)


def call(function: str, signature: str, argument: sql.SqlExpression, result: Any, state: Any) -> sql.AggregateCall:
    return sql.AggregateCall(function, signature, (argument,), (), result, state)


def aggregates() -> rows.RowAggregates:
    from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
    from moldau.pipeline.cores.sql.functions.registry import AggregateFunction

    def signature(name: str, of: object) -> str:
        function = BUILTIN.get(name)
        assert isinstance(function, AggregateFunction)
        return next(
            one.signature.text
            for one in function.overloads
            if str(one.signature.parameters[0].type) in (str(of), "ANY")
        )

    total = call("SUM", signature("SUM", INTEGER), A, INTEGER, INTEGER)
    return rows.RowAggregates((total, call("SUM", signature("SUM", INTEGER), B, INTEGER, INTEGER)))


def test_aggregates_are_folded_together() -> None:
    folding = folding_of_rows(aggregates())
    state = folding.add_value(("k",), (1, 10), None)
    state = folding.add(("k",), (2, 20), state)
    assert compiled(rows.AggregatedRow(aggregates()))(state) == (3, 30)
    assert folding.remove is not None
    assert folding.remove(("k",), (1, 10), state) == folding.add_value(("k",), (2, 20), None)
    assert folding.merge is not None
    assert folding.merge(("k",), state, state) == folding.add(("k",), (3, 30), state)


def test_lists_of_table_functions_are_zipped() -> None:
    lists = ArrayType(INTEGER)
    explode = sql.TableFunctionCall("EXPLODE", _explode_signature(), (sql.ColumnAt(lists, 0),), INTEGER)
    other = sql.TableFunctionCall("EXPLODE", _explode_signature(), (sql.ColumnAt(lists, 1),), INTEGER)
    made = compiled(rows.ExplodedRow((explode, other)))
    assert made(([1, 2], [3])) == [([1, 2], [3], 1, 3), ([1, 2], [3], 2, None)]
    assert made((None, [])) == []
    assert made(None) == []


def _explode_signature() -> str:
    from moldau.pipeline.cores.sql.functions.builtin import BUILTIN

    return str(BUILTIN.get("EXPLODE").overloads[0].signature.text)


def test_times_are_read_from_numbers_and_texts() -> None:
    assert compiled(rows.RowTimestamp(0, BIGINT))(None, (5,)) == 5
    assert compiled(rows.RowTimestamp(0, BIGINT, is_in_key=True))((7,), None) == 7
    assert compiled(rows.RowTimestamp(0, STRING, "yyyy-MM-dd"))(None, ("1970-01-02",)) == 86_400_000
    assert compiled(rows.RowTimestamp(0, STRING, "yyyy-MM-dd"))(None, ("no date",)) < 0
    assert compiled(rows.RowTimestamp(0, BIGINT))(None, (None,)) < 0
