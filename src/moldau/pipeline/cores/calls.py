"""A node's function as something to call: the user's own, or an expression made ready for evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.pipeline.ir.functions import Function, PythonFunction

__all__ = ["callable_of"]


def callable_of(function: Function, *parameters: str) -> Callable[..., Any]:
    """The function to call with these positional arguments; expressions know them by the names given here."""
    if isinstance(function, PythonFunction):
        return function.call
    from moldau.pipeline.cores.evaluation import compiled

    evaluate: Callable[..., Any] = compiled(function, parameters)
    return evaluate
