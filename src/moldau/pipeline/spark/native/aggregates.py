"""The native aggregations: a count, and those in `_REDUCERS`, one line each.

To add one, see "How to add an aggregate that runs natively" in `DESIGN.md`. Start at `native_aggregate`.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.expressions import Call, Column
from moldau.pipeline.ir.types import Primitive

__all__ = ["NativeAggregate", "native_aggregate"]

_WHOLE_NUMBERS = (Primitive.BIGINT, Primitive.INTEGER)


@dataclass(frozen=True, slots=True)
class NativeAggregate:
    """An aggregation for which Spark has a function."""

    function: str
    """The name in `pyspark.sql.functions`."""
    result: Primitive
    folds: tuple[Primitive, ...] | None = None
    """The value types for which Spark and Python give the same result; None if only the presence of values matters."""


_COUNT = NativeAggregate("count", Primitive.BIGINT)

_REDUCERS = {
    "+": NativeAggregate("sum", Primitive.BIGINT, _WHOLE_NUMBERS),
    "LEAST": NativeAggregate("min", Primitive.BIGINT, _WHOLE_NUMBERS),
    "GREATEST": NativeAggregate("max", Primitive.BIGINT, _WHOLE_NUMBERS),
}
"""The native aggregate for each reducer function of the form (aggregate, value)."""


def native_aggregate(node: ir.Aggregate) -> NativeAggregate | None:
    """Spark's equivalent of an aggregation; None if it has none."""
    if isinstance(node.aggregator, ir.Count):
        return _COUNT
    adder = node.aggregator.adder if isinstance(node.aggregator, ir.Reduce) else None
    if not isinstance(adder, Call) or len(adder.arguments) != 2:
        return None
    names = {argument.name for argument in adder.arguments if isinstance(argument, Column)}
    return _REDUCERS.get(adder.function) if names == {"aggregate", "value"} else None
