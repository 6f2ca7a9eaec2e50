"""Which aggregations are Spark's own, and of what functions they are made."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipeline.ir.nodes import Aggregate
from moldau.pipeline.ir.types import Primitive, Struct
from moldau.pipeline.spark.native.aggregates import NativeAggregate, native_aggregate
from moldau.streams import (
    Consumed,
    Grouped,
    JsonSerde,
    KGroupedStream,
    LongSerde,
    Materialized,
    StreamsBuilder,
    StringSerde,
    aggregate,
    functions,
    key,
    value,
)

TEXT, NUMBER, JSON = StringSerde(), LongSerde(), JsonSerde()


def folded(fold: Any) -> NativeAggregate | None:
    builder = StreamsBuilder()
    fold(builder.stream("in", Consumed.with_(TEXT, NUMBER)).group_by_key(Grouped.with_(TEXT, NUMBER)))
    (node,) = (node for node in builder.build().nodes if isinstance(node, Aggregate))
    return native_aggregate(node)


def shape(native: NativeAggregate | None) -> list[tuple[str, int | None, str | None]]:
    assert native is not None
    return [(part.function, part.initial, part.field) for part in native.parts]


def aggregated(initial: Any, adder: Any) -> NativeAggregate | None:
    def fold(grouped: KGroupedStream) -> None:
        grouped.aggregate(lambda: initial, adder, Materialized.with_(TEXT, JSON))

    return folded(fold)


def test_a_count_looks_at_no_value() -> None:
    native = folded(lambda grouped: grouped.count())
    assert shape(native) == [("count", None, None)]
    assert native is not None
    assert not native.reads_value


@pytest.mark.parametrize(
    ("reducer", "function"),
    [
        (aggregate + value, "sum"),
        (value + aggregate, "sum"),
        (functions.least(aggregate, value), "min"),
        (functions.greatest(value, aggregate), "max"),
    ],
)
def test_reducers_of_two_are_functions_of_sparks(reducer: Any, function: str) -> None:
    assert shape(folded(lambda grouped: grouped.reduce(reducer))) == [(function, None, None)]


def test_a_mean_is_two_sums() -> None:
    native = aggregated(
        {"sum": 0, "count": 0}, functions.struct(sum=aggregate["sum"] + value, count=aggregate["count"] + 1)
    )
    assert shape(native) == [("sum", 0, "sum"), ("sum", 0, "count")]
    assert native is not None
    assert native.result == Struct((("sum", Primitive.BIGINT), ("count", Primitive.BIGINT)))


def test_a_field_may_start_anywhere_and_fold_what_the_key_says() -> None:
    native = aggregated(
        {"least": 9}, functions.struct(least=functions.least(aggregate["least"], functions.length(key)))
    )
    assert shape(native) == [("min", 9, "least")]


@pytest.mark.parametrize(
    ("initial", "adder"),
    [
        ({"sum": 0}, functions.struct(sum=aggregate["sum"] - value)),
        ({"sum": 0}, functions.struct(sum=aggregate["sum"] + aggregate["sum"])),
        ({"sum": 0}, functions.struct(sum=aggregate["other"] + value)),
        ({"sum": 0}, functions.struct(sum=aggregate["sum"] + value * aggregate["sum"])),
        ({"sum": 0.5}, functions.struct(sum=aggregate["sum"] + value)),
        ({"sum": None}, functions.struct(sum=aggregate["sum"] + value)),
        ({"sum": 0, "more": 0}, functions.struct(sum=aggregate["sum"] + value)),
        (0, aggregate + value),
        ({"sum": 0}, lambda name, number, total: {"sum": total["sum"] + number}),
    ],
)
def test_what_is_no_such_sum_needs_python(initial: Any, adder: Any) -> None:
    assert aggregated(initial, adder) is None


def test_a_reducer_that_changes_its_value_needs_python() -> None:
    assert folded(lambda grouped: grouped.reduce(aggregate + value * 2)) is None


def test_an_initializer_that_fails_needs_python_to_tell() -> None:
    def fold(grouped: KGroupedStream) -> None:
        grouped.aggregate(
            lambda: 1 // 0, functions.struct(sum=aggregate["sum"] + value), Materialized.with_(TEXT, JSON)
        )

    assert folded(fold) is None
