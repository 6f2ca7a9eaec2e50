"""Lengths of time as people give them: a `timedelta`, or whole milliseconds."""

from __future__ import annotations

from datetime import timedelta

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.origin import callers_origin

__all__ = ["Duration", "milliseconds"]

Duration = timedelta | int


def milliseconds(duration: Duration, what: str, *, at_least: int = 0) -> int:
    """The duration in ms; `what` names it in the refusal of one that is too short or no duration at all."""
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
