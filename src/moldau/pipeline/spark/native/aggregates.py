"""The native aggregations: counts, and reducers and aggregators made of sums, minima and maxima.

`aggregate(lambda: {"sum": 0, "count": 0}, struct(sum=aggregate["sum"] + value, count=aggregate["count"] + 1))`, for
instance, is two sums: each field adds something to itself that does not depend on the aggregate. To add a function, see
"How to add an aggregate that runs natively" in `DESIGN.md`. Start at `native_aggregate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.expressions import Call, Cast, Column, Expression, FieldOf, Literal
from moldau.pipeline.ir.types import DataType, Primitive, Struct

__all__ = ["WHOLE_NUMBERS", "FoldPart", "NativeAggregate", "native_aggregate"]

WHOLE_NUMBERS = (Primitive.BIGINT, Primitive.INTEGER)
"""The value types for which Spark and Python give the same sums."""

_SPARK_FOLD_OF = {"+": "sum", "LEAST": "min", "GREATEST": "max"}
"""The aggregate in `pyspark.sql.functions` that equals folding with this expression (aggregate, operand); each has its
case where `lowering` joins results with initial values."""

_VALUE = Column(None, "value")


@dataclass(frozen=True, slots=True)
class FoldPart:
    """One function of Spark's over the records of a key."""

    function: str
    """Its name in `pyspark.sql.functions`."""
    operand: Expression | None = None
    """What is folded, computed from key and value; None for the value itself."""
    initial: int | None = None
    """What an aggregate begins with, before the first record."""
    field: str | None = None
    """The field of the result, if that is a struct."""


@dataclass(frozen=True, slots=True)
class NativeAggregate:
    """An aggregation for which Spark has functions."""

    parts: tuple[FoldPart, ...]
    result: DataType

    @property
    def reads_value(self) -> bool:
        """Whether more matters than the presence of values."""
        return any(part.function != "count" for part in self.parts)


_COUNT = NativeAggregate((FoldPart("count"),), Primitive.BIGINT)


def native_aggregate(node: ir.Aggregate) -> NativeAggregate | None:
    """Spark's equivalent of an aggregation; None if it has none."""
    match node.aggregator:
        case ir.Count():
            return _COUNT
        case ir.Reduce(adder=Call() as adder):
            part = _part(adder, Column(None, "aggregate"))
            is_plain = part is not None and part.operand is None
            return NativeAggregate((part,), Primitive.BIGINT) if part is not None and is_plain else None
        case ir.Fold(adder=Call(function="STRUCT") as adder):
            return _struct(adder, _initial(node.aggregator))
        case _:
            return None


def _initial(fold: ir.Fold) -> Any:
    """What the user's initializer returns; one that fails will fail again where it is called for a record."""
    try:
        return fold.initializer.call()
    except Exception:
        return None


def _struct(adder: Call, initial: Any) -> NativeAggregate | None:
    parts = []
    for name, each in zip(adder.arguments[::2], adder.arguments[1::2], strict=True):
        if not isinstance(name, Literal) or not isinstance(initial, Mapping):
            return None
        field = str(name.value)
        part = _part(each, FieldOf(None, Column(None, "aggregate"), field))
        start = initial.get(field)
        if part is None or not isinstance(start, int) or isinstance(start, bool):
            return None
        parts.append(FoldPart(part.function, part.operand, start, field))
    if len(parts) != len(initial):
        return None
    return NativeAggregate(tuple(parts), Struct(tuple((str(part.field), Primitive.BIGINT) for part in parts)))


def _part(adder: Expression, itself: Expression) -> FoldPart | None:
    """The function that adds an operand to `itself`, which is the aggregate or a field of it."""
    if not isinstance(adder, Call) or adder.function not in _SPARK_FOLD_OF or len(adder.arguments) != 2:
        return None
    others = [each for each in adder.arguments if not _is_same(each, itself)]
    if len(others) != 1 or "aggregate" in _columns(others[0]):
        return None
    (operand,) = others
    return FoldPart(_SPARK_FOLD_OF[adder.function], None if _is_same(operand, _VALUE) else operand)


def _is_same(one: Expression, other: Expression) -> bool:
    """Whether two expressions name the same column or field, whatever types are known of them."""
    match one, other:
        case Column(), Column():
            return one.name == other.name
        case FieldOf(), FieldOf():
            return one.name == other.name and _is_same(one.struct, other.struct)
        case _:
            return False


def _columns(expression: Expression) -> Iterator[str]:
    match expression:
        case Column():
            yield expression.name
        case FieldOf():
            yield from _columns(expression.struct)
        case Cast():
            yield from _columns(expression.operand)
        case Call():
            for argument in expression.arguments:
                yield from _columns(argument)
