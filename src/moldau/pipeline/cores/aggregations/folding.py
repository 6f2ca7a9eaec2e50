"""The functions of an aggregator: initialize an aggregate, add to it, subtract from it, merge two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from moldau.pipeline.cores.calls import callable_of
from moldau.pipeline.cores.sql.processing_log import ProcessingLog
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.functions import Function
from moldau.pipeline.ir.row_functions import RowAggregates

__all__ = ["Add", "Folding", "folding_of", "is_count"]

Add = Callable[[Any, Any, Any], Any]
"""(key, value, aggregate) -> aggregate"""


class Folding(NamedTuple):
    """An aggregator's functions. Without `initial` the first value is the first aggregate."""

    initial: Callable[[], Any] | None
    add: Add
    remove: Add | None = None
    merge: Callable[[Any, Any, Any], Any] | None = None
    """(key, one aggregate, other aggregate) -> aggregate"""

    def add_value(self, key: Any, value: Any, aggregate: Any) -> Any:
        """The aggregate with one more value; an aggregate of None is initialized first."""
        if aggregate is not None:
            return self.add(key, value, aggregate)
        return value if self.initial is None else self.add(key, value, self.initial())

    def initial_aggregate(self) -> Any:
        """The aggregate of no values."""
        return None if self.initial is None else self.initial()


def folding_of(aggregator: ir.Aggregator, log: ProcessingLog | None = None) -> Folding:
    """The functions of an aggregator, each as (key, ..., aggregate)."""
    match aggregator:
        case ir.Count():
            return Folding(int, _one_more, _one_less, _both_counts)
        case ir.Reduce(adder=adder, subtractor=subtractor):
            return Folding(None, _reduce_function(adder), _reduce_function(subtractor), _reduce_merger(adder))
        case RowAggregates():
            from moldau.pipeline.cores.row_functions import folding_of_rows

            return folding_of_rows(aggregator, log)
        case ir.Fold(initializer=initializer, adder=adder, subtractor=subtractor, merger=merger):
            return Folding(
                callable_of(initializer),
                callable_of(adder, "key", "value", "aggregate"),
                None if subtractor is None else callable_of(subtractor, "key", "value", "aggregate"),
                None if merger is None else callable_of(merger, "key", "one", "other"),
            )


def is_count(folding: Folding) -> bool:
    """Whether these are the functions of a count."""
    return folding.add is _one_more


def _one_more(key: Any, value: Any, count: int) -> int:
    return count + 1


def _one_less(key: Any, value: Any, count: int) -> int:
    return count - 1


def _both_counts(key: Any, one: int, other: int) -> int:
    return one + other


def _reduce_function(function: Function | None) -> Any:
    if function is None:
        return None
    reduce = callable_of(function, "aggregate", "value")
    return lambda key, value, aggregate: reduce(aggregate, value)


def _reduce_merger(function: Function) -> Any:
    # Either aggregate may be None: Kafka Streams merges the first session into an empty one.
    reduce = callable_of(function, "aggregate", "value")

    def merge(key: Any, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return other if one is None else one
        return reduce(one, other)

    return merge
