from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from tests.unit.pipeline.cores.sql.evaluating import Aggregate

from moldau.pipeline.cores.sql.failures import FatalExpressionError
from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.registry import AggregateFunction
from moldau.pipeline.ksql.errors import KsqlError

ONE = {"X": "INT"}


@pytest.mark.parametrize(
    ("call", "columns", "rows", "expected"),
    [
        ("COUNT(*)", ONE, (1, None, 2), 3),
        ("COUNT(X)", ONE, (1, None, 2), 2),
        ("SUM(X)", ONE, (1, None, 2), 3),
        ("SUM(X)", ONE, (2**31 - 1, 1), -(2**31)),
        ("SUM(X)", {"X": "DOUBLE"}, (), 0.0),
        ("SUM(X)", {"X": "DECIMAL(4,2)"}, (Decimal("1.50"), Decimal("2.25")), Decimal("3.75")),
        ("SUM_LIST(X)", {"X": "ARRAY<BIGINT>"}, ([1, None], None, [2]), 3),
        ("AVG(X)", ONE, (1, 2, None), 1.5),
        ("AVG(X)", ONE, (), 0.0),
        ("MIN(X)", ONE, (3, None, 1), 1),
        ("MAX(X)", {"X": "STRING"}, ("a", "c", "b"), "c"),
        ("MAX(X)", ONE, (), None),
        ("STDDEV_SAMP(X)", ONE, (2, 4, 9), 13.0),
        ("STDDEV_SAMP(X)", ONE, (2,), 0.0),
        ("STDDEV_SAMPLE(X)", {"X": "DOUBLE"}, (1.0, 5.0), math.sqrt(8)),
        ("CORRELATION(X, Y)", {"X": "INT", "Y": "INT"}, ((1, 2), (2, 4), (None, 1), (3, 6)), 1.0),
        ("COUNT_DISTINCT(X)", ONE, (1, 2, 1, None), 2),
        ("COLLECT_LIST(X)", ONE, (2, None, 2), [2, None, 2]),
        ("COLLECT_SET(X)", ONE, (2, None, 2, None, 1), [2, None, 1]),
        ("HISTOGRAM(X)", {"X": "STRING"}, ("a", "b", "a", None), {"a": 2, "b": 1}),
        ("TOPK(X, 2)", ONE, (1, 5, None, 3, 5), [5, 5]),
        ("TOPKDISTINCT(X, 2)", ONE, (1, 5, 3, 5), [5, 3]),
        ("TOPK(X, Y, 2)", {"X": "INT", "Y": "STRING"}, ((1, "a"), (3, "b"), (3, "c")), [(3, "b"), (3, "c")]),
        ("EARLIEST_BY_OFFSET(X)", ONE, (None, 1, 2), 1),
        ("EARLIEST_BY_OFFSET(X, false)", ONE, (None, 1, 2), None),
        ("EARLIEST_BY_OFFSET(X, 2)", ONE, (None, 1, 2, 3), [1, 2]),
        ("LATEST_BY_OFFSET(X)", ONE, (1, 2, None), 2),
        ("LATEST_BY_OFFSET(X, false)", ONE, (1, 2, None), None),
        ("LATEST_BY_OFFSET(X, 2, false)", ONE, (1, 2, None), [2, None]),
        ("ATTR(X)", ONE, (1, 1), 1),
        ("ATTR(X)", ONE, (1, None), None),
    ],
)
def test_results_over_rows(call: str, columns: dict[str, str], rows: tuple[Any, ...], expected: Any) -> None:
    found = Aggregate(call, columns).of(*rows)
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("call", ["CORRELATION(X, X)", "CORRELATION(X, Y)"])
def test_a_correlation_without_variation_is_nan(call: str) -> None:
    found = Aggregate(call, {"X": "INT", "Y": "INT"}).of((1, 1), (1, 2))
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("call", "kind", "kept", "undone"),
    [
        ("COUNT(X)", "INT", (1, None), 2),
        ("SUM(X)", "INT", (1, 5), 3),
        ("AVG(X)", "DOUBLE", (1.0, 5.0), 3.0),
        ("STDDEV_SAMP(X)", "INT", (2, 4, 9), 7),
        ("STDDEV_SAMPLE(X)", "INT", (2,), 7),
        ("COLLECT_LIST(X)", "INT", (1, 2), 1),
        ("HISTOGRAM(X)", "STRING", ("a",), "b"),
        ("SUM_LIST(X)", "ARRAY<INT>", ([1], [2]), [3, 4]),
        ("ATTR(X)", "INT", (1, 1), 2),
        ("CORRELATION(X, X)", "INT", (1, 2), 3),
    ],
)
def test_undo_takes_back_a_row(call: str, kind: str, kept: tuple[Any, ...], undone: Any) -> None:
    aggregate = Aggregate(call, {"X": kind})
    state = aggregate.undo(aggregate.fold(*kept, undone), undone)
    expected = aggregate.of(*kept)
    assert aggregate.bound.result(state) == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    ("call", "kind", "left", "right"),
    [
        ("COUNT(X)", "INT", (1, None), (2,)),
        ("SUM(X)", "BIGINT", (1,), (2, 3)),
        ("AVG(X)", "INT", (1,), (2, 6)),
        ("MIN(X)", "INT", (4,), (2, 6)),
        ("STDDEV_SAMP(X)", "INT", (2, 4), (9, 1)),
        ("COLLECT_LIST(X)", "INT", (2, 4), (2,)),
        ("COLLECT_SET(X)", "INT", (2, 4), (2, 5)),
        ("TOPK(X, 3)", "INT", (2, 4), (9, 1)),
        ("TOPKDISTINCT(X, 3)", "INT", (2, 4), (4, 1)),
        ("COUNT_DISTINCT(X)", "INT", (2, 4), (4, 1)),
        ("LATEST_BY_OFFSET(X)", "INT", (2, 4), (9, 1)),
        ("EARLIEST_BY_OFFSET(X, 3)", "INT", (2, 4), (9, 1)),
        ("ATTR(X)", "INT", (2,), (2,)),
    ],
)
def test_merging_equals_adding_one_after_the_other(
    call: str, kind: str, left: tuple[Any, ...], right: tuple[Any, ...]
) -> None:
    aggregate = Aggregate(call, {"X": kind})
    one, other = aggregate.fold(*left), aggregate.fold(*right)
    assert aggregate.bound.result(aggregate.bound.merge(one, other)) == pytest.approx(aggregate.of(*left, *right))


def test_states_are_never_changed() -> None:
    for call in ("COLLECT_LIST(X)", "COLLECT_SET(X)", "TOPK(X, 2)", "COUNT_DISTINCT(X)", "ATTR(X)"):
        aggregate = Aggregate(call, ONE)
        before = aggregate.fold(1, 2)
        copied = list(before)
        aggregate.bound.add(before, 3)
        aggregate.bound.merge(before, aggregate.fold(4))
        assert before == copied


def test_a_decimal_sum_that_overflows_ends_the_query() -> None:
    with pytest.raises(FatalExpressionError, match="overflow"):
        Aggregate("SUM(X)", {"X": "DECIMAL(2,1)"}).of(Decimal("9.9"), Decimal("0.1"))


def test_collecting_stops_at_the_limit() -> None:
    limited = Aggregate("COLLECT_LIST(X)", ONE, **{"ksql.functions.collect_list.limit": "2"})
    assert limited.of(1, 2, 3) == [1, 2]


def test_distinct_values_are_counted_within_two_per_cent() -> None:
    assert Aggregate("COUNT_DISTINCT(X)", ONE).of(*range(1000)) == 1000
    aggregate = Aggregate("COUNT_DISTINCT(X)", ONE)
    merged = aggregate.bound.merge(aggregate.fold(*range(900)), aggregate.fold(*range(800, 1700)))
    assert aggregate.bound.result(merged) == pytest.approx(1700, rel=0.02)


def test_arguments_of_aggregates_are_not_widened() -> None:
    with pytest.raises(KsqlError, match="Function 'AVG' does not accept parameters"):
        Aggregate("AVG(X)", {"X": "DECIMAL(4,2)"})


@pytest.mark.parametrize("call", ["TOPK(X, 0)", "EARLIEST_BY_OFFSET(X, 0)", "TOPK(X, X)"])
def test_bad_constants_are_refused(call: str) -> None:
    with pytest.raises(KsqlError):
        Aggregate(call, ONE)


def test_those_usable_on_tables_are_the_ones_that_can_undo() -> None:
    undoable = {
        function.name for function in BUILTIN if isinstance(function, AggregateFunction) and function.is_undoable
    }
    assert undoable == {
        *("ATTR", "AVG", "COLLECT_LIST", "CORRELATION", "COUNT", "HISTOGRAM"),
        *("STDDEV_SAMP", "STDDEV_SAMPLE", "SUM", "SUM_LIST"),
    }
