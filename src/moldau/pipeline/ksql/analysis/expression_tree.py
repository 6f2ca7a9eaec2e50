"""Walking and rewriting expressions as they were written. Start at `rewritten` and `expressions_within`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from moldau.pipeline.ksql.syntax.expressions import ColumnReference, Expression

__all__ = ["column_references", "expressions_within", "rewritten"]


def rewritten(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with every part replaced for which `change` returns something, outermost parts first."""
    changed = change(expression)
    if changed is not None:
        return changed
    parts = {}
    for field in fields(expression):
        if field.name != "location":
            before = getattr(expression, field.name)
            after = _rewritten_part(before, change)
            if after is not before:
                parts[field.name] = after
    return replace(expression, **parts) if parts else expression


def _rewritten_part(part: Any, change: Callable[[Expression], Expression | None]) -> Any:
    if isinstance(part, Expression):
        return rewritten(part, change)
    if isinstance(part, tuple):
        after = tuple(_rewritten_part(item, change) for item in part)
        return part if all(new is old for new, old in zip(after, part, strict=True)) else after
    return part


def expressions_within(expression: Expression) -> Iterator[Expression]:
    """The expression and all its parts, each before its own parts, from left to right."""
    pending: list[Any] = [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple):
            pending.extend(reversed(part))
        elif isinstance(part, Expression):
            yield part
            pending.extend(reversed([getattr(part, field.name) for field in fields(part) if field.name != "location"]))


def column_references(expression: Expression) -> Iterator[ColumnReference]:
    """The columns that an expression names, from left to right."""
    return (part for part in expressions_within(expression) if isinstance(part, ColumnReference))
