"""Conversion of an operator's argument, a Python callable or an expression, to the function of a node.

The signature of a callable is checked, so that a wrong number of parameters is refused when the topology is described
and not at the first record. Start at `function_of`.
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
"""Operators with a variant, ending in `_with_key`, whose function also gets the key."""

Described = Term | tuple[Any, ...] | dict[str, Any]
"""A function that the engine can analyse: an expression, or a tuple or dict with expressions in it."""

Given = Callable[..., Any] | Described
"""Every form in which an operator accepts its function: a Python callable or an expression."""


@dataclass(frozen=True, slots=True)
class WithKey(Generic[VR]):
    """A joiner or foreign-key extractor that gets the key as its first argument; made by `with_key`."""

    call: Callable[..., VR]


def with_key(call: Callable[..., VR]) -> WithKey[VR]:
    """Pass the key as the first argument to a joiner or a foreign-key extractor.

    `orders.join(customers, with_key(lambda key, order, customer: ...))`
    """
    return WithKey(call)


def function_of(given: Given, what: str, *parameters: str) -> Function:
    """The function of a node that is called with `parameters`; `what` names the operator in error messages."""
    if isinstance(given, WithKey):
        raise TopologyError(f"{what} takes no with_key(...): it calls its function with {_list_of(parameters)} anyway")
    if isinstance(given, Term | Expression | tuple | dict):
        expression = expression_of(given)
        strangers = columns_of(expression) - set(parameters)
        if strangers:
            raise TopologyError(
                f"{what} knows {_list_of(parameters)} but the expression asks for {_list_of(sorted(strangers))}",
                callers_origin(),
            )
        return expression
    return callable_of(given, what, *parameters)


def keyed_function_of(given: Given | WithKey, what: str, *parameters: str) -> tuple[Function, bool]:
    """As `function_of` for parameters without the key, and whether the function also gets the key, as the first."""
    if isinstance(given, WithKey):
        return callable_of(given.call, what, "key", *parameters), True
    if isinstance(given, Term | Expression | tuple | dict):
        expression = expression_of(given)
        if "key" in columns_of(expression):
            return function_of(given, what, "key", *parameters), True
    return function_of(given, what, *parameters), False


def callable_of(given: Any, what: str, *parameters: str) -> PythonFunction:
    """The function of a node where only a Python callable is accepted."""
    origin = _origin_of(given)
    if not callable(given):
        raise TopologyError(f"{what} needs a function of {_list_of(parameters)}, not {given!r}", origin)
    if inspect.iscoroutinefunction(given):
        raise TopologyError(f"{what} needs a plain function, and {_name_of(given)} is async: write def", origin)
    if not _takes(given, len(parameters)):
        hint = f"; {what}_with_key gives it the key as well" if _wants_key(given, what, parameters) else ""
        raise TopologyError(
            f"{what} calls its function with {_list_of(parameters)}, but {_name_of(given)} takes other arguments{hint}",
            origin,
        )
    return PythonFunction(given, origin)


def _wants_key(call: Callable[..., Any], what: str, parameters: tuple[str, ...]) -> bool:
    return what in HAVE_A_KEY and parameters == ("value",) and _takes(call, 2)


def _takes(call: Callable[..., Any], count: int) -> bool:
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return True  # a built-in without a signature: it can only be checked by calling it
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _origin_of(call: Any) -> Origin:
    code = getattr(inspect.unwrap(call) if callable(call) else call, "__code__", None)
    return callers_origin() if code is None else Origin(code.co_filename, code.co_firstlineno)


def _name_of(call: Callable[..., Any]) -> str:
    return getattr(call, "__qualname__", repr(call)).rpartition(".")[2]


def _list_of(names: tuple[str, ...] | list[str]) -> str:
    return f"({', '.join(names)})" if len(names) != 1 else names[0]
