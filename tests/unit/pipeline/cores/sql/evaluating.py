"""Evaluate SQL expressions on one row, for the tests of functions and operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.formats.columns import Column
from moldau.formats.types import SqlType, Value
from moldau.pipeline.cores.sql.processing_log import ListLog
from moldau.pipeline.cores.sql.rows import aggregation_of, compile_row
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.syntax.parser import parse_expression, parse_type
from moldau.pipeline.ksql.typing.calls import typed_aggregate
from moldau.pipeline.ksql.typing.scope import RowScope
from moldau.pipeline.ksql.typing.typing import typed_select

Columns = Mapping[str, tuple[str, Value]]
"""Name -> type as SQL writes it, and the value."""


def scope_of(columns: Columns) -> RowScope:
    return RowScope([Column(name, parse_type(kind)) for name, (kind, _) in columns.items()])


def evaluate(text: str, log: ListLog | None = None, /, **columns: tuple[str, Value]) -> Any:
    """The value of an expression on a row of these columns."""
    typed = typed_select(parse_expression(text), scope_of(columns))
    return compile_row([typed], log)(tuple(value for _, value in columns.values()))[0]


def type_of(text: str, /, **columns: tuple[str, Value]) -> SqlType:
    """The type of an expression over these columns."""
    found = typed_select(parse_expression(text), scope_of(columns)).type
    assert found is not None
    return found


class Aggregate:
    """An aggregate function fed row by row."""

    def __init__(self, text: str, columns: Mapping[str, str], **settings: object) -> None:
        call = parse_expression(text)
        assert isinstance(call, ast.FunctionCall)
        scope = RowScope([Column(name, parse_type(kind)) for name, kind in columns.items()])
        self.call = typed_aggregate(call, scope, settings=settings)
        self.bound = aggregation_of(self.call, settings)
        self._arguments = compile_row(self.call.arguments)

    def fold(self, *rows: Any) -> Any:
        """The state after rows; a row of one column may be given bare."""
        state = self.bound.initial()
        for row in rows:
            state = self.bound.add(state, *self._arguments(row if isinstance(row, tuple) else (row,)))
        return state

    def undo(self, state: Any, row: Any) -> Any:
        """The state after a row is taken back."""
        assert self.bound.undo is not None
        return self.bound.undo(state, *self._arguments(row if isinstance(row, tuple) else (row,)))

    def of(self, *rows: Any) -> Any:
        """The result over rows."""
        return self.bound.result(self.fold(*rows))
