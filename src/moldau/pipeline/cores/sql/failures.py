"""Why an expression has no value for a row. Such an error is logged and the item becomes NULL."""

from __future__ import annotations

from moldau.core.errors import MoldauError

__all__ = [
    "MAX_SIZE",
    "MAX_STEPS",
    "ExpressionError",
    "FatalExpressionError",
    "null_operand",
    "too_large",
    "too_many_steps",
]

MAX_SIZE = 16 * 1024 * 1024
"""Most characters, bytes or elements of a computed value.

A short expression can double a value with each of its functions, or with each step of REDUCE; no record is that large.
"""


MAX_STEPS = 1_000_000
"""Most calls of lambdas for one row and one set of items."""


class ExpressionError(MoldauError):
    """An expression cannot be computed for a row."""


class FatalExpressionError(MoldauError):
    """A failure after which the query must not go on, such as an overflow of a DECIMAL sum."""


def too_large() -> ExpressionError:
    """The error of a value that grew beyond all records."""
    return ExpressionError(f"a value has more than {MAX_SIZE} characters, bytes or elements")


def too_many_steps() -> ExpressionError:
    """The error of lambdas that went on for longer than any row should take."""
    return ExpressionError(f"the lambdas of a row were called more than {MAX_STEPS} times")


def null_operand(operator: str) -> ExpressionError:
    """The error of an operator that needs a value and found NULL."""
    return ExpressionError(f"an operand of {operator} is NULL")
