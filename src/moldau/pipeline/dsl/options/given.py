"""Checks of an operator's arguments: its options, serdes and durations.

Start at `option_of`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.origin import callers_origin
from moldau.serdes.serde import check_calls

__all__ = ["Duration", "check_serdes", "milliseconds", "option_of"]


Option = TypeVar("Option")


def option_of(given: Option | None, kind: type[Option]) -> Option:
    """The given option, or an empty one (`kind()`) if it is None.

    Raises `TopologyError` if it has another type, such as a serde in place of `Consumed`.
    """
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise TopologyError(
            f"{kind.__name__} is needed here{_example(given, kind)}, not {_short_repr(given)}", callers_origin()
        )
    return given


def check_serdes(*serdes: Any) -> None:
    """Raise `TopologyError` for an argument that is not a serde, or is a serde's class instead of an instance."""
    for serde in serdes:
        if serde is not None and (isinstance(serde, type) or not hasattr(serde, "serialize")):
            hint = f"; call it: {serde.__name__}()" if isinstance(serde, type) else ""
            raise TopologyError(f"{serde!r} is not a serde: it needs serialize and deserialize{hint}", callers_origin())
        if serde is not None:
            try:
                check_calls(serde, "serialize")
            except InvalidConfigError as error:
                raise TopologyError(str(error), callers_origin()) from None


def _example(given: object, kind: type[Any]) -> str:
    if isinstance(given, str) and hasattr(kind, "as_"):
        return f", such as {kind.__name__}.as_({given!r})"
    return f", such as {kind.__name__}.with_(key_serde, value_serde)" if "key_serde" in dir(kind) else ""


def _short_repr(given: object) -> str:
    return repr(given) if isinstance(given, str | int | float) else type(given).__name__


Duration = timedelta | int


def milliseconds(duration: Duration, what: str, *, at_least: int = 0) -> int:
    """The duration in ms; raises `TopologyError`, which names it as `what`, if it is too short or no duration."""
    if isinstance(duration, timedelta):
        result = duration // timedelta(milliseconds=1)
    elif isinstance(duration, int) and not isinstance(duration, bool):
        result = duration
    else:
        raise TopologyError(
            f"{what} must be a timedelta or whole milliseconds, not {duration!r}",
            callers_origin(),
        )
    if result < at_least:
        raise TopologyError(f"{what} must be at least {at_least} ms, not {result} ms", callers_origin())
    return result
