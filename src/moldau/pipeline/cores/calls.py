"""A node's function as a Python callable: the user's own, or a compiled expression or row function.

Joiners have one signature, (key, left value, right value) -> joined value. The errors for wrong return values are here
too. Start at `callable_of` and `joiner_of`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.sql.processing_log import ProcessingLog
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.row_functions import RowFunction

__all__ = ["Joiner", "WrongResultError", "callable_of", "joiner_of", "no_pair", "not_several"]


def callable_of(function: Function, *parameters: str, log: ProcessingLog | None = None) -> Callable[..., Any]:
    """The function to call with these positional arguments; expressions refer to them by the names given here.

    What a row function cannot compute for a row goes to the log.
    """
    if isinstance(function, PythonFunction):
        return function.call
    if isinstance(function, RowFunction):
        from moldau.pipeline.cores.row_functions import compiled

        return compiled(function, log)
    from moldau.pipeline.cores.evaluation import compile_expression

    evaluate: Callable[..., Any] = compile_expression(function, parameters)
    return evaluate


Joiner = Callable[[Any, Any, Any], Any]


def joiner_of(function: Function, *, has_key: bool) -> Joiner:
    """A joiner that always takes the key, also where the user's function does not."""
    if has_key:
        return callable_of(function, "key", "left", "right")
    without_key = callable_of(function, "left", "right")
    return lambda key, left, right: without_key(left, right)


class WrongResultError(MoldauError):
    """A user's function returned a value that its operator cannot use."""


def no_pair(returned: object) -> WrongResultError:
    """The error where a pair of key and value was expected."""
    return _wrong("a pair (key, value)", returned)


def not_several(returned: object) -> WrongResultError:
    """The error where an iterable of results was expected."""
    return _wrong("any number of results, such as a list", returned)


def _wrong(wanted: str, returned: object) -> WrongResultError:
    return WrongResultError(f"the function must return {wanted}, but returned {returned!r} ({type(returned).__name__})")
