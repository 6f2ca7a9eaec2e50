"""What people hand to an operator, as a function of a node: a Python callable or an expression.

A callable is asked how many arguments it takes, so that a wrong one is refused where it was written and not at the
first record. Start at `function_of`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from moldau.pipeline.dsl.expressions import Term, expression_of
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import Expression, columns_of
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.origin import Origin, callers_origin
from moldau.pipeline.ir.type_variables import VR

__all__ = ["Described", "Given", "WithKey", "callable_of", "function_of", "keyed_function_of", "with_key"]

HAVE_A_KEY = ("map_values", "flat_map_values")
"""Operators with a variant whose function gets the key too."""

Described = Term | tuple[Any, ...] | dict[str, Any]
"""What an engine can look into: an expression, or a tuple or dict with expressions in it."""

Given = Callable[..., Any] | Described
"""What an operator takes for its function, whatever the types."""


@dataclass(frozen=True, slots=True)
class WithKey(Generic[VR]):
    """A joiner or extractor that wants the key as its first argument."""

    call: Callable[..., VR]


def with_key(call: Callable[..., VR]) -> WithKey[VR]:
    """Let a joiner or a foreign-key extractor have the key as its first argument.

    `orders.join(customers, with_key(lambda key, order, customer: ...))`
    """
    return WithKey(call)


def function_of(given: Given, what: str, *parameters: str) -> Function:
    """The function of a node that is called with `parameters`; `what` names the operator in a refusal."""
    if isinstance(given, WithKey):
        raise TopologyError(f"{what} takes no with_key(...): it calls its function with {_listed(parameters)} anyway")
    if isinstance(given, Term | Expression | tuple | dict):
        expression = expression_of(given)
        strangers = columns_of(expression) - set(parameters)
        if strangers:
            raise TopologyError(
                f"{what} knows {_listed(parameters)} but the expression asks for {_listed(sorted(strangers))}",
                callers_origin(),
            )
        return expression
    return callable_of(given, what, *parameters)


def keyed_function_of(given: Given | WithKey, what: str, *parameters: str) -> tuple[Function, bool]:
    """As `function_of` for parameters without the key, and whether the key comes first after all."""
    if isinstance(given, WithKey):
        return callable_of(given.call, what, "key", *parameters), True
    if isinstance(given, Term | Expression | tuple | dict):
        expression = expression_of(given)
        if "key" in columns_of(expression):
            return function_of(given, what, "key", *parameters), True
    return function_of(given, what, *parameters), False


def callable_of(given: Any, what: str, *parameters: str) -> PythonFunction:
    """The function of a node where only a Python callable will do."""
    origin = _origin_of(given)
    if not callable(given):
        raise TopologyError(f"{what} needs a function of {_listed(parameters)}, not {given!r}", origin)
    if inspect.iscoroutinefunction(given):
        raise TopologyError(f"{what} needs a plain function, and {_named(given)} is async: write def", origin)
    if not _takes(given, len(parameters)):
        hint = f"; {what}_with_key gives it the key as well" if _wants_key(given, what, parameters) else ""
        raise TopologyError(
            f"{what} calls its function with {_listed(parameters)}, but {_named(given)} takes other arguments{hint}",
            origin,
        )
    return PythonFunction(given, origin)


def _wants_key(call: Callable[..., Any], what: str, parameters: tuple[str, ...]) -> bool:
    return what in HAVE_A_KEY and parameters == ("value",) and _takes(call, 2)


def _takes(call: Callable[..., Any], count: int) -> bool:
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return True  # built-ins without a signature: only calling them tells
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _origin_of(call: Any) -> Origin:
    code = getattr(inspect.unwrap(call) if callable(call) else call, "__code__", None)
    return callers_origin() if code is None else Origin(code.co_filename, code.co_firstlineno)


def _named(call: Callable[..., Any]) -> str:
    return getattr(call, "__qualname__", repr(call)).rpartition(".")[2]


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return f"({', '.join(names)})" if len(names) != 1 else names[0]
