"""A node's function as something to call: the user's own, or an expression made ready for evaluation.

Joiners come in one form, (key, left value, right value) -> joined value, and what a function should not have returned
has its error here. Start at `callable_of` and `joiner_of`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.core.errors import MoldauError
from moldau.pipeline.ir.functions import Function, PythonFunction

__all__ = ["Joiner", "WrongResultError", "callable_of", "joiner_of", "no_pair", "not_several"]


def callable_of(function: Function, *parameters: str) -> Callable[..., Any]:
    """The function to call with these positional arguments; expressions know them by the names given here."""
    if isinstance(function, PythonFunction):
        return function.call
    from moldau.pipeline.cores.evaluation import compiled

    evaluate: Callable[..., Any] = compiled(function, parameters)
    return evaluate


Joiner = Callable[[Any, Any, Any], Any]


def joiner_of(function: Function, *, has_key: bool) -> Joiner:
    """A joiner that is always given the key, also where the user's has no use for it."""
    if has_key:
        return callable_of(function, "key", "left", "right")
    without_key = callable_of(function, "left", "right")
    return lambda key, left, right: without_key(left, right)


class WrongResultError(MoldauError):
    """A user's function returned what its operator cannot use."""


def no_pair(returned: object) -> WrongResultError:
    """Where a key and a value were wanted."""
    return _wrong("a pair (key, value)", returned)


def not_several(returned: object) -> WrongResultError:
    """Where any number of results was wanted."""
    return _wrong("any number of results, such as a list", returned)


def _wrong(wanted: str, returned: object) -> WrongResultError:
    return WrongResultError(f"the function must return {wanted}, and returned {returned!r} ({type(returned).__name__})")
