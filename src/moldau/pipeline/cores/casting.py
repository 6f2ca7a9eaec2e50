"""Values of one type as another, in Python. What cannot be converted becomes null. Start at `cast_to`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from moldau.pipeline.ir import types
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.types import DataType, Primitive

__all__ = ["cast_to"]


def cast_to(data_type: DataType | None) -> Callable[[Any], Any]:
    """A function that gives its argument, which is never null, as a value of this type, or None."""
    if isinstance(data_type, types.Decimal):
        step = Decimal(1).scaleb(-data_type.scale)
        return _or_null(lambda given: Decimal(str(given)).quantize(step, rounding=ROUND_HALF_UP))
    if data_type in _CASTS:
        return _or_null(_CASTS[data_type])
    raise TopologyError(f"nothing can be cast to {data_type} here")


def _or_null(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def cast(given: Any) -> Any:
        try:
            return convert(given)
        except (ValueError, OverflowError, InvalidOperation):
            return None

    return cast


def _whole_number(bits: int) -> Callable[[Any], int | None]:
    limit = 1 << (bits - 1)

    def convert(given: Any) -> int | None:
        number = int(given)
        return number if -limit <= number < limit else None

    return convert


def _text(given: Any) -> str:
    if isinstance(given, bool):
        return "true" if given else "false"
    return given.decode() if isinstance(given, bytes) else str(given)


def _truth(given: Any) -> bool | None:
    if isinstance(given, str):
        return {"true": True, "false": False}.get(given.strip().lower())
    return bool(given)


_CASTS: dict[DataType | None, Callable[[Any], Any]] = {
    Primitive.BOOLEAN: _truth,
    Primitive.INTEGER: _whole_number(32),
    Primitive.BIGINT: _whole_number(64),
    Primitive.DOUBLE: float,
    Primitive.STRING: _text,
    Primitive.BYTES: lambda given: given.encode() if isinstance(given, str) else bytes(given),
}
