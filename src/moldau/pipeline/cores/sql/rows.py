"""Typed expressions compiled to Python functions of a row, once per query.

`compile_row` gives the values of several items, `compile_filter` whether a condition holds, `compile_projection` both
in one call; `aggregation_of` and `table_function_of` give the other two kinds of functions. A failing item becomes
None, a failing condition drops the row; either is told to the log. Rows are tuples (or lists) in the order
that the typed columns refer to. Start at `compile_row`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from moldau.formats.types import Row, Value
from moldau.pipeline.cores.sql.emitter import Emitter
from moldau.pipeline.cores.sql.failures import (
    MAX_STEPS,
    FatalExpressionError,
    null_operand,
    too_large,
    too_many_steps,
)
from moldau.pipeline.cores.sql.functions.builtin import BUILTIN
from moldau.pipeline.cores.sql.functions.libraries import functions_of
from moldau.pipeline.cores.sql.functions.registry import Aggregation, FunctionRegistry, Settings
from moldau.pipeline.cores.sql.processing_log import ProcessingLog, SilentLog
from moldau.pipeline.ir.sql.expressions import AggregateCall, SqlExpression, TableFunctionCall

__all__ = [
    "RowFilter",
    "RowFunction",
    "aggregation_of",
    "compile_filter",
    "compile_projection",
    "compile_row",
    "compile_value",
    "table_function_of",
]

RowFunction: TypeAlias = Callable[[Sequence[Value]], Row]
RowFilter: TypeAlias = Callable[[Sequence[Value]], bool]


def compile_row(
    items: Sequence[SqlExpression],
    log: ProcessingLog | None = None,
    *,
    labels: Sequence[str] | None = None,
    functions: FunctionRegistry = BUILTIN,
) -> RowFunction:
    """A function from a row to the values of the items; `labels` name the items in the log."""
    emitter = Emitter(functions)
    log = log or SilentLog()
    _emit_items(emitter, items, labels or _numbered_names(items), log)
    return cast("RowFunction", _compile(emitter, log))


def compile_value(
    item: SqlExpression,
    log: ProcessingLog | None = None,
    *,
    label: str = "expression",
    functions: FunctionRegistry = BUILTIN,
) -> Callable[[Sequence[Value]], Value]:
    """A function from a row to the value of one item."""
    emitter = Emitter(functions)
    log = log or SilentLog()
    emitter.line(f"return {emitter.scoped(item, _handler(emitter, label, log))}")
    return cast("Callable[[Sequence[Value]], Value]", _compile(emitter, log))


def compile_filter(
    condition: SqlExpression,
    log: ProcessingLog | None = None,
    *,
    label: str = "WHERE",
    functions: FunctionRegistry = BUILTIN,
) -> RowFilter:
    """A function from a row to whether the condition holds for it; NULL and failures are no."""
    emitter = Emitter(functions)
    log = log or SilentLog()
    emitter.line(f"return {emitter.scoped(condition, _handler(emitter, label, log))} is True")
    return cast("RowFilter", _compile(emitter, log))


def compile_projection(
    condition: SqlExpression,
    items: Sequence[SqlExpression],
    log: ProcessingLog | None = None,
    *,
    labels: Sequence[str] | None = None,
    functions: FunctionRegistry = BUILTIN,
) -> Callable[[Sequence[Value]], Row | None]:
    """A function from a row to the values of the items, None where the condition does not hold."""
    emitter = Emitter(functions)
    log = log or SilentLog()
    kept = emitter.scoped(condition, _handler(emitter, "WHERE", log))
    emitter.line(f"if {kept} is not True: return None")
    _emit_items(emitter, items, labels or _numbered_names(items), log)
    return cast("Callable[[Sequence[Value]], Row | None]", _compile(emitter, log))


def _numbered_names(items: Sequence[SqlExpression]) -> list[str]:
    return [f"item {number}" for number, _ in enumerate(items, 1)]


def _emit_items(emitter: Emitter, items: Sequence[SqlExpression], labels: Sequence[str], log: ProcessingLog) -> None:
    values = [emitter.scoped(item, _handler(emitter, label, log)) for item, label in zip(items, labels, strict=True)]
    emitter.line(f"return ({''.join(f'{value}, ' for value in values)})")


def _handler(emitter: Emitter, label: str, log: ProcessingLog) -> str:
    return f"{emitter.constant(log.expression_failed)}({emitter.constant(label)}, error, row)"


def _compile(emitter: Emitter, log: ProcessingLog) -> Any:
    names = {name: value for name, value in emitter.names.items() if not name.startswith("#")}
    names |= {
        "Fatal": FatalExpressionError,
        "null_operand": null_operand,
        "too_large": too_large,
        "too_many_steps": too_many_steps,
        "steps": [0],
        "element_failed": lambda error, row: log.expression_failed("argument or element", error, row),
        "__builtins__": {"Exception": Exception, "len": len},
    }
    begin = [f"    steps[0] = {MAX_STEPS}"] if "#has lambdas" in emitter.names else []
    blocks = [*emitter.names.get("#functions", []), ["def evaluate(row):", *begin, *emitter.lines]]
    source = "\n".join(line for block in blocks for line in block)
    # The source consists of numbered names, operators and calls only: see the emitter.
    exec(compile(source, "<sql>", "exec"), names)
    return names["evaluate"]


def aggregation_of(
    call: AggregateCall, settings: Settings | None = None, functions: FunctionRegistry = BUILTIN
) -> Aggregation:
    """The aggregate function that a typed call means, bound to its types and constants."""
    known = functions if call.library is None else functions_of(call.library)
    overload = known.aggregate_overload(call.function, call.signature)
    return overload.build([argument.type for argument in call.arguments], call.constants, settings or {})


def table_function_of(call: TableFunctionCall, functions: FunctionRegistry = BUILTIN) -> Callable[..., list[Value]]:
    """The table function that a typed call means: a function from its arguments to the values of the rows."""
    known = functions if call.library is None else functions_of(call.library)
    implementation: Callable[..., list[Value]] = known.table_overload(call.function, call.signature).implementation
    return implementation
