"""SQL types from Python annotations, and values as Python code of users expects them.

| annotation | type |
|---|---|
| bool, int, float, str, bytes | BOOLEAN, BIGINT, DOUBLE, STRING, BYTES |
| Decimal | DECIMAL of any size as a parameter |
| datetime.date, datetime.time, datetime.datetime | DATE, TIME, TIMESTAMP (without zone, UTC) |
| list[T], dict[K, V] | ARRAY, MAP |
| a TypeVar | any type, the same wherever it occurs |
| Annotated[T, "INTEGER"], Annotated[T, "DECIMAL(10, 2)"], Annotated[T, "STRUCT<...>"] | the type written |

Start at `type_of_annotation`.
"""

from __future__ import annotations

import datetime
import re
import types
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
)
from moldau.pipeline.cores.sql.functions.resolution import FunctionLookupError
from moldau.pipeline.cores.sql.functions.signatures import ANY, ANY_DECIMAL, GenericType, parse_type
from moldau.pipeline.cores.sql.time.calendar import MS_PER_DAY

__all__ = ["allows_none", "from_python", "to_python", "type_of_annotation"]

_EPOCH = datetime.datetime(1970, 1, 1)
_SIMPLE: dict[object, SqlType] = {
    bool: BOOLEAN,
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    Decimal: ANY_DECIMAL,
    datetime.date: DATE,
    datetime.time: TIME,
    datetime.datetime: TIMESTAMP,
    Any: ANY,
    object: ANY,
}


def type_of_annotation(annotation: Any) -> SqlType:
    """The SQL type of an annotation; None in a union only says that NULL is allowed."""
    annotation = _without_none(annotation)
    if isinstance(annotation, TypeVar):
        return GenericType(annotation.__name__)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_of_mark(arguments[1])
    if origin is list:
        return ArrayType(type_of_annotation(arguments[0]))
    if origin is dict:
        return MapType(type_of_annotation(arguments[0]), type_of_annotation(arguments[1]))
    try:
        return _SIMPLE[annotation]
    except (KeyError, TypeError):
        raise FunctionLookupError(
            f"there is no SQL type for the annotation {annotation!r}; name one as in Annotated[int, 'BIGINT']"
        ) from None


def _type_of_mark(mark: object) -> SqlType:
    if isinstance(mark, SqlType):
        return mark
    text = str(mark)
    found = re.fullmatch(r"\s*DECIMAL\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)\s*", text, re.IGNORECASE)
    if found:
        return DecimalType(int(found[1]), int(found[2]))
    try:
        return parse_type(text.upper() if "<" not in text else text)
    except (KeyError, ValueError):
        raise FunctionLookupError(f"{text!r} is not a SQL type") from None


def allows_none(annotation: Any) -> bool:
    """Whether a parameter takes NULL."""
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation
    others = [each for each in get_args(annotation) if each is not type(None)]
    if len(others) != 1:
        raise FunctionLookupError(f"the annotation {annotation} allows several types; a column has one")
    return others[0]


# --- values --------------------------------------------------------------------------------------------------

Conversion = Callable[[Any], Any]


def _date(days: int) -> datetime.date:
    return datetime.date(1970, 1, 1) + datetime.timedelta(days=days)


def _time(ms: int) -> datetime.time:
    return (_EPOCH + datetime.timedelta(milliseconds=ms % MS_PER_DAY)).time()


def _timestamp(ms: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=ms)


def _days(value: datetime.date) -> int:
    return (value - datetime.date(1970, 1, 1)).days


def _ms_of_day(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def _ms(value: datetime.datetime) -> int:
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return (value - _EPOCH) // datetime.timedelta(milliseconds=1)


_TO_PYTHON: dict[object, Conversion] = {
    datetime.date: _date,
    datetime.time: _time,
    datetime.datetime: _timestamp,
}
_FROM_PYTHON: dict[object, Conversion] = {
    datetime.date: _days,
    datetime.time: _ms_of_day,
    datetime.datetime: _ms,
}


def to_python(annotation: Any) -> Conversion | None:
    """What to do to a value before user code gets it; None if it is right as it is."""
    return _conversion(annotation, _TO_PYTHON)


def from_python(annotation: Any) -> Conversion | None:
    """What to do to a value that user code returned."""
    return _conversion(annotation, _FROM_PYTHON)


def _conversion(annotation: Any, table: dict[object, Conversion]) -> Conversion | None:
    annotation = _without_none(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is list:
        inner = _conversion(arguments[0], table)
        return None if inner is None else _each_element(inner)
    if origin is dict:
        inner = _conversion(arguments[1], table)
        return None if inner is None else _each_value(inner)
    found = table.get(annotation) if isinstance(annotation, type) else None
    return None if found is None else _unless_none(found)


def _unless_none(convert: Conversion) -> Conversion:
    return lambda value: None if value is None else convert(value)


def _each_element(convert: Conversion) -> Conversion:
    return lambda values: None if values is None else [convert(value) for value in values]


def _each_value(convert: Conversion) -> Conversion:
    return lambda entries: None if entries is None else {key: convert(value) for key, value in entries.items()}
