"""Functions over typed rows, compiled from their descriptions. Start at `compiled`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from moldau.pipeline.cores.aggregations.folding import Folding
from moldau.pipeline.cores.records import Windowed
from moldau.pipeline.cores.row_timestamps import timestamp_reader
from moldau.pipeline.cores.sql.failures import ExpressionError
from moldau.pipeline.cores.sql.functions.registry import Aggregation, state_is_result
from moldau.pipeline.cores.sql.processing_log import ProcessingLog, SilentLog
from moldau.pipeline.cores.sql.rows import aggregation_of, compile_filter, compile_row, table_function_of
from moldau.pipeline.ir import row_functions as rows
from moldau.pipeline.ir.sql.expressions import AggregateCall, ColumnAt, TableFunctionCall, columns_of

__all__ = ["compiled", "folding_of_rows"]

Row = tuple[Any, ...]


def compiled(function: rows.RowFunction, log: ProcessingLog | None = None) -> Callable[..., Any]:
    """The function that a description stands for; failures of single rows go to the log."""
    return _COMPILERS[type(function)](function, log or SilentLog())


def _select(function: rows.SelectRow, log: ProcessingLog) -> Callable[..., Any]:
    evaluate = _row_of(function.columns, log)
    return lambda row: None if row is None else evaluate(row)


def _row_of(columns: Sequence[rows.NamedExpression], log: ProcessingLog) -> Callable[[Row], Row]:
    labels = [f"column `{one.name}`" for one in columns]
    return compile_row([one.expression for one in columns], log, labels=labels)


def _condition(function: rows.RowCondition, log: ProcessingLog) -> Callable[..., Any]:
    holds = compile_filter(function.condition, log, label=function.clause)
    return lambda key, row: row is not None and holds(row)


def _key(function: rows.KeyOfRow, log: ProcessingLog) -> Callable[..., Any]:
    evaluate = _row_of(function.columns, log)
    drops_nulls = function.drops_nulls
    of_null_row = _key_of_null_row(function, evaluate)

    def key_of(key: Any, row: Row | None) -> Row | None:
        made = of_null_row(key) if row is None else evaluate(row)
        return None if drops_nulls and (made is None or None in made) else made

    return key_of


def _key_of_null_row(function: rows.KeyOfRow, evaluate: Callable[[Row], Row]) -> Callable[[Any], Row | None]:
    """The key of a record without a value, from the columns of its old key alone."""
    known = set(function.key_positions)
    is_known = [columns_of(one.expression) <= known for one in function.columns]

    def key_of(key: Any) -> Row | None:
        row: list[Any] = [None] * function.width
        for position, value in zip(function.key_positions, () if key is None else _plain_key(key), strict=False):
            if position >= 0:
                row[position] = value
        made = evaluate(tuple(row))
        return tuple(value if known else None for value, known in zip(made, is_known, strict=True))

    return key_of


def _plain_key(key: Any) -> Row:
    plain: Row = key.key if isinstance(key, Windowed) else key
    return plain


def _compile_regrouping(function: rows.RegroupedRow, log: ProcessingLog) -> Callable[..., Any]:
    key_of, row_of = _key(function.key, log), _select(function.row, log)
    return lambda key, row: (key_of(key, row), row_of(row))


def _with_key(function: rows.RowWithKey, log: ProcessingLog) -> Callable[..., Any]:
    if function.has_window:
        return lambda key, row: None if row is None else row + key[0] + key[1]
    return lambda key, row: None if row is None else row + key


def _steps(function: rows.RowSteps, log: ProcessingLog) -> Callable[..., Any]:
    applied = [
        (compiled(step, log), isinstance(step, rows.RowWithKey))
        for step in function.steps
        if not (isinstance(step, rows.AggregatedRow) and _shows_states(step.aggregates))
    ]
    if [has_key for _, has_key in applied] == [True, False]:  # what most aggregations end with
        (first, _), (second, _) = applied
        return lambda key, row: second(first(key, row))

    def apply(key: Any, row: Any) -> Any:
        for step, has_key in applied:
            row = step(key, row) if has_key else step(row)
        return row

    return apply


def _compile_join(function: rows.JoinedRow, log: ProcessingLog) -> Callable[..., Any]:
    no_left, no_right = (None,) * function.left_width, (None,) * function.right_width
    swaps, has_key = function.swaps_sides, function.has_key

    def join(key: Any, left: Row | None, right: Row | None) -> Row:
        if swaps:
            left, right = right, left
        row = (no_left if left is None else left) + (no_right if right is None else right)
        return row + _plain_key(key) if has_key else row

    return join


def _compile_explode(function: rows.ExplodedRow, log: ProcessingLog) -> Callable[..., Any]:
    lists = [_list_of(call, log) for call in function.calls]

    def explode(row: Row | None) -> list[Row]:
        if row is None:
            return []
        return [row + elements for elements in zip_longest(*(each(row) for each in lists))]

    return explode


def _list_of(call: TableFunctionCall, log: ProcessingLog) -> Callable[[Row], Sequence[Any]]:
    """The elements that a table function gives for a row, none if it fails."""
    arguments_of = compile_row(call.arguments, log, labels=[f"argument of {call.function}"] * len(call.arguments))
    implementation = table_function_of(call)

    def elements(row: Row) -> Sequence[Any]:
        try:
            made: Sequence[Any] | None = implementation(*arguments_of(row))
        except ExpressionError as error:
            log.expression_failed(call.function, error, row)
            return ()
        return made or ()

    return elements


def _timestamp(function: rows.RowTimestamp, log: ProcessingLog) -> Callable[..., Any]:
    read = timestamp_reader(function.type, function.pattern, is_strict=function.is_strict)
    position = function.position
    if function.is_in_key:
        return lambda key, row: read(None if key is None else _plain_key(key)[position])
    return lambda key, row: read(None if row is None else row[position])


# --- aggregates ----------------------------------------------------------------------------------------------


def _aggregations(aggregates: rows.RowAggregates) -> list[Aggregation]:
    settings = dict(aggregates.settings)
    return [aggregation_of(call, settings) for call in aggregates.calls]


def _compile_aggregate(function: rows.AggregatedRow, log: ProcessingLog) -> Callable[..., Any]:
    results = [aggregation.result for aggregation in _aggregations(function.aggregates)]
    return lambda states: tuple([result(state) for result, state in zip(results, states, strict=False)])


def _shows_states(aggregates: rows.RowAggregates) -> bool:
    return all(one.result is state_is_result for one in _aggregations(aggregates))


def folding_of_rows(aggregates: rows.RowAggregates, log: ProcessingLog | None = None) -> Folding:
    """The functions of an aggregator of rows."""
    made = _aggregations(aggregates)
    spans = _spans(aggregates.calls)
    adders = [(aggregation.add, span) for aggregation, span in zip(made, spans, strict=True)]
    undoers = [(aggregation.undo, span) for aggregation, span in zip(made, spans, strict=True)]
    mergers = [aggregation.merge for aggregation in made]
    initials = [aggregation.initial for aggregation in made]
    arguments_of = _arguments_of(aggregates.calls, log)

    add_all = _unrolled([aggregation.add for aggregation in made], spans)
    count = len(made)

    def add(key: Any, row: Row, states: Row) -> Row:
        values = row if arguments_of is None else arguments_of(row)
        if len(states) == count:
            return add_all(states, values)
        # An older query had fewer aggregates: CREATE OR REPLACE can add some.
        return tuple([add(state, *values[span]) for state, (add, span) in zip(states, adders, strict=False)])

    def remove(key: Any, row: Row, states: Row) -> Row:
        values = row if arguments_of is None else arguments_of(row)
        return tuple([undo(state, *values[span]) for state, (undo, span) in zip(states, undoers, strict=False) if undo])

    def merge(key: Any, one: Row, other: Row) -> Row:
        return tuple([merge(a, b) for merge, a, b in zip(mergers, one, other, strict=False)])

    can_undo = all(aggregation.undo is not None for aggregation in made)
    return Folding(lambda: tuple([initial() for initial in initials]), add, remove if can_undo else None, merge)


def _arguments_of(calls: Sequence[AggregateCall], log: ProcessingLog | None) -> Callable[[Row], Row] | None:
    """The arguments of all calls for a row; None where the row consists of just these."""
    arguments = [argument for call in calls for argument in call.arguments]
    if all(isinstance(one, ColumnAt) and one.position == place for place, one in enumerate(arguments)):
        return None
    return compile_row(arguments, log)


def _unrolled(adders: Sequence[Callable[..., Any]], spans: Sequence[slice]) -> Callable[[Row, Row], Row]:
    """All at once, without a loop: `(add0(states[0], values[0]), add1(states[1], values[1], values[2]), …)`."""
    calls = [
        f"add{number}(states[{number}], {', '.join(f'values[{place}]' for place in range(span.start, span.stop))})"
        for number, span in enumerate(spans)
    ]
    names = {f"add{number}": adder for number, adder in enumerate(adders)}
    made: Callable[[Row, Row], Row] = eval(f"lambda states, values: ({' '.join(f'{call},' for call in calls)})", names)
    return made


def _spans(calls: Sequence[AggregateCall]) -> list[slice]:
    """Where in a row of all arguments those of each call are."""
    spans, start = [], 0
    for call in calls:
        spans.append(slice(start, start + len(call.arguments)))
        start += len(call.arguments)
    return spans


_COMPILERS: dict[type[rows.RowFunction], Callable[[Any, ProcessingLog], Callable[..., Any]]] = {
    rows.SelectRow: _select,
    rows.RowCondition: _condition,
    rows.KeyOfRow: _key,
    rows.RegroupedRow: _compile_regrouping,
    rows.RowWithKey: _with_key,
    rows.RowSteps: _steps,
    rows.JoinedRow: _compile_join,
    rows.ExplodedRow: _compile_explode,
    rows.AggregatedRow: _compile_aggregate,
    rows.RowTimestamp: _timestamp,
}
