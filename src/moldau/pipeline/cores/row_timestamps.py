"""The time of a record read from a column: a number, a time, or a text in some pattern. Start at `timestamp_reader`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Any

from moldau.formats.types import STRING, SqlType
from moldau.pipeline.cores.sql.failures import ExpressionError, FatalExpressionError
from moldau.pipeline.cores.sql.time.parsing import parse_timestamp

__all__ = ["NO_TIME", "timestamp_reader"]

NO_TIME = -1
"""What a reader gives where there is no time."""


def timestamp_reader(sql_type: SqlType, pattern: str | None, *, is_strict: bool) -> Callable[[Any], int]:
    """A function from the value of a column to milliseconds; where there are none it raises if it is strict."""
    parse: Callable[[Any], int] = int
    if sql_type == STRING:
        parse = _parser(pattern or "")

    def read(value: Any) -> int:
        try:
            if value is None:
                raise ExpressionError("the timestamp column is null")
            found = parse(value)
            if found < 0:
                raise ExpressionError(f"the timestamp {found} is negative")
        except ExpressionError as error:
            if is_strict:
                raise FatalExpressionError(f"Unable to extract a timestamp: {error}") from error
            return NO_TIME
        return found

    return read


def _parser(pattern: str) -> Callable[[str], int]:
    return lambda text: parse_timestamp(text, pattern, UTC)
