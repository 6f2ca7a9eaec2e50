"""The aggregates of SQL that Spark has functions for: COUNT, SUM, MIN, MAX and AVG of numbers.

Sums wrap around as Python's do: a sum of BIGINT is kept as the sums of its upper and its lower half. `aggregate_reason`
is pure. Start at `folding` and `results`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from moldau.formats.types import BIGINT, DATE, DOUBLE, INTEGER, TIME, TIMESTAMP, DecimalType
from moldau.pipeline.ir.row_functions import RowAggregates
from moldau.pipeline.ir.sql.expressions import AggregateCall
from moldau.pipeline.spark.native.sql.checks import expression_reason
from moldau.pipeline.spark.native.sql.types import spark_name

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["aggregate_reason", "folding", "results"]

_HALF = 2**32 - 1
_ORDERED = (INTEGER, BIGINT, DOUBLE, DATE, TIME, TIMESTAMP)


def aggregate_reason(aggregates: RowAggregates) -> str | None:
    """Why aggregates need Python; None if Spark has all of them."""
    for call in aggregates.calls:
        name, constants = call.function.upper(), call.constants
        kind = call.arguments[0].type if call.arguments else None
        known = {
            "COUNT": len(call.arguments) == 1,
            "SUM": kind in (INTEGER, BIGINT, DOUBLE),
            "AVG": kind in (INTEGER, BIGINT, DOUBLE),
            "MIN": kind in _ORDERED or isinstance(kind, DecimalType),
            "MAX": kind in _ORDERED or isinstance(kind, DecimalType),
        }
        if not known.get(name, False) or constants:
            return f"{name}{'' if kind is None else f' of {kind}'} is computed by Python"
        for argument in call.arguments:
            if (reason := expression_reason(argument)) is not None:
                return reason
    return None


def folding(calls: Sequence[AggregateCall], arguments: Sequence[str]) -> Iterator[Column]:
    """Spark's aggregates over columns of these names, which are the argument of each call."""
    from pyspark.sql import functions as f

    for number, (call, name) in enumerate(zip(calls, arguments, strict=True)):
        column, kind = f.col(name), call.arguments[0].type
        match call.function.upper():
            case "COUNT":
                yield f.count(column).alias(f"count{number}")
            case "MIN":
                yield f.min(column).alias(f"value{number}")
            case "MAX":
                yield f.max(column).alias(f"value{number}")
            case "SUM" | "AVG":
                yield f.count(column).alias(f"count{number}")
                if kind == DOUBLE:
                    yield f.sum(column).alias(f"sum{number}")
                else:
                    whole = column.cast("bigint")
                    yield f.sum(f.shiftright(whole, 32)).alias(f"upper{number}")
                    yield f.sum(whole.bitwiseAND(f.lit(_HALF))).alias(f"lower{number}")
            case other:
                raise NotImplementedError(f"{other} has no native form")


def results(calls: Sequence[AggregateCall]) -> Iterator[Column]:
    """The results of the calls, from the columns of `folding`."""
    from pyspark.sql import functions as f

    for number, call in enumerate(calls):
        match call.function.upper():
            case "COUNT":
                yield f.col(f"count{number}")
            case "MIN" | "MAX":
                yield f.col(f"value{number}").cast(spark_name(call.result_type))
            case "SUM":
                yield _sum(number, call)
            case "AVG":
                count = f.col(f"count{number}")
                mean = _sum(number, call).cast("double") / f.when(count > 0, count)
                yield f.coalesce(mean, f.lit(0.0))
            case other:
                raise NotImplementedError(f"{other} has no native form")


def _sum(number: int, call: AggregateCall) -> Column:
    from pyspark.sql import functions as f

    kind = call.arguments[0].type
    if kind == DOUBLE:
        return f.coalesce(f.col(f"sum{number}"), f.lit(0.0))
    lower = f.coalesce(f.col(f"lower{number}"), f.lit(0))
    upper = f.coalesce(f.col(f"upper{number}"), f.lit(0)) + f.shiftright(lower, 32)
    whole = f.shiftleft(upper, 32).bitwiseOR(lower.bitwiseAND(f.lit(_HALF)))
    return f.shiftright(f.shiftleft(whole, 32), 32).cast("int") if kind == INTEGER else whole
