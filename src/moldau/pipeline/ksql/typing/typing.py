"""Expressions as written become typed expressions; whatever does not fit is refused in ksqlDB's words.

`typed_expression` is for any place, `typed_select` and `typed_condition` add what ksqlDB says about the clause,
`aggregates` has the same for aggregate and table functions. Start at `typed_expression`.
"""

from __future__ import annotations

from dataclasses import fields

from moldau.formats.types import BOOLEAN, SqlType
from moldau.pipeline.cores.sql.functions.registry import FunctionRegistry
from moldau.pipeline.ir.sql.expressions import SqlExpression
from moldau.pipeline.ksql.errors import CompilationError, KsqlError
from moldau.pipeline.ksql.functions_in_use import functions_in_use
from moldau.pipeline.ksql.syntax import expressions as ast
from moldau.pipeline.ksql.syntax.printer import render
from moldau.pipeline.ksql.typing.coercion import convert, is_widening
from moldau.pipeline.ksql.typing.scope import NoColumns, Scope
from moldau.pipeline.ksql.typing.typer import Typer

__all__ = ["MAX_DEPTH", "check_depth", "typed_condition", "typed_constant", "typed_expression", "typed_select"]

MAX_DEPTH = 150
"""Deepest nesting of one expression. Lists of conditions joined by AND or OR count as one level."""


def typed_expression(
    expression: ast.Expression, scope: Scope, functions: FunctionRegistry | None = None
) -> SqlExpression:
    """The typed form of an expression; its type is None if it is the NULL literal."""
    check_depth(expression)
    return Typer(scope, functions or functions_in_use()).typed(expression)


def typed_select(expression: ast.Expression, scope: Scope, functions: FunctionRegistry | None = None) -> SqlExpression:
    """The typed form of an item of a projection, which must have a type."""
    try:
        typed = typed_expression(expression, scope, functions)
    except CompilationError as problem:
        raise KsqlError(f"Invalid Select: {problem}") from None
    if typed.type is None:
        raise KsqlError(
            "Can't infer a type of null. Please explicitly cast it to a required type, e.g. CAST(null AS VARCHAR)."
        )
    return typed


def typed_condition(
    expression: ast.Expression, scope: Scope, clause: str, functions: FunctionRegistry | None = None
) -> SqlExpression:
    """The typed form of a condition; the clause (WHERE, HAVING) is named in messages."""
    check_depth(expression)
    typer = Typer(scope, functions or functions_in_use())
    # ksqlDB takes the type of the last of several conditions for that of all.
    last = expression
    while isinstance(last, ast.Logical):
        last = last.right
    try:
        found = typer.type_of(last)
        typed = typer.typed(expression) if found == BOOLEAN else None
    except CompilationError as problem:
        raise KsqlError(f"Invalid Predicate: {problem}") from None
    except KsqlError as problem:
        raise KsqlError(f"Error in {clause} expression: {problem}\nStatement: {render(expression)}") from None
    if typed is None:
        raise KsqlError(
            f"Type error in {clause} expression: Should evaluate to boolean but is {render(expression)} "
            f"({found}) instead."
        )
    return typed


def typed_constant(
    expression: ast.Expression, target: SqlType, functions: FunctionRegistry | None = None, *, column: str | None = None
) -> SqlExpression:
    """The typed form of an expression without columns, as a value of a column's type; it is only widened."""
    typed = typed_expression(expression, NoColumns(), functions)
    if typed.type is not None and not is_widening(typed.type, target):
        where = "" if column is None else f" for field `{column}`"
        shown = expression.value if isinstance(expression, ast.StringLiteral) else render(expression)
        raise KsqlError(f"Expected type {target}{where} but got {typed.type}({shown})")
    return convert(typed, target)


def check_depth(expression: ast.Expression) -> None:
    """Refuse what is nested deeper than MAX_DEPTH, without recursion of its own."""
    pending: list[tuple[ast.Expression, int]] = [(expression, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise KsqlError(f"an expression is nested more than {MAX_DEPTH} levels deep; split it into several queries")
        for child in _children(node):
            same_list = (
                isinstance(node, ast.Logical) and isinstance(child, ast.Logical) and child.operator is node.operator
            )
            pending.append((child, depth if same_list else depth + 1))


def _children(node: ast.Expression) -> list[ast.Expression]:
    found: list[ast.Expression] = []
    parts: list[object] = [getattr(node, field.name) for field in fields(node)]
    while parts:
        part = parts.pop()
        if isinstance(part, ast.Expression):
            found.append(part)
        elif isinstance(part, tuple):
            parts.extend(part)
    return found
