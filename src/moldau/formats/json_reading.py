"""Reads JSON into typed rows: coercions as ksqlDB's, exact numbers, and the fast parser wherever it is exact.

The fast parser turns numbers with a point into floats. A float is right for DOUBLE; wherever else one turns up, the
document is parsed once more with exact decimals, and always so if the columns hold a DECIMAL. Start at `json_reader`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any, Final, NoReturn

import orjson

from moldau.core.java_numbers import (
    java_decimal_text,
    parse_java_decimal,
    parse_java_double,
    parse_java_int,
    wrap_int,
)
from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.formats.types_within import contains
from moldau.formats.values import bytes_of_base64, check_time, fit_decimal

__all__ = ["json_reader", "load_exact"]

Read = Callable[[Any], Any]
MAX_TEXT_DEPTH: Final = 200
"""Deepest nesting of a JSON value that a STRING column takes as text."""

MAX_SHAPES: Final = 100
"""How many lists of member names are remembered, since every record may have another one."""


class _InexactError(Exception):
    """The fast parser gave a float where the number's digits matter."""


def json_reader(columns: tuple[Column, ...], *, is_bare: bool) -> Callable[[bytes], Any]:
    """A function from a JSON document to a row: a tuple, or `None` for the document `null`.

    With `is_bare`, the document is the only column's value, and `null` is a row whose column is null. The function
    raises `RowError` for bytes that are not a row.
    """
    if is_bare:
        inner = _reader(columns[0].type)
        convert: Read = lambda value: (inner(value),)  # noqa: E731
    else:
        convert = _object_reader([(column.name, column.type) for column in columns])
    loads = load_exact if any(contains(column.type, DecimalType) for column in columns) else orjson.loads

    def read(data: bytes) -> Any:
        try:
            return convert(loads(data))
        except (_InexactError, orjson.JSONDecodeError):
            pass
        except (ValueError, TypeError, RecursionError) as error:
            raise RowError(str(error) or type(error).__name__) from None
        try:
            return convert(load_exact(data))
        except (ValueError, TypeError, RecursionError) as error:
            raise RowError(str(error) or type(error).__name__) from None

    return read


def load_exact(data: bytes) -> Any:
    """The document with numbers as `int` and `Decimal`; what follows it is ignored. Raises `ValueError`."""
    try:
        text = data.decode().lstrip(" \t\r\n")
        return _EXACT.raw_decode(text)[0]
    except RecursionError:
        raise ValueError("the JSON document is nested too deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON: {error.msg} at character {error.pos}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"this is not JSON in UTF-8: {error.reason} at byte {error.start}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_EXACT: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


# Values of one type. Every function takes None, which is the null of all types.


def _reader(sql_type: SqlType) -> Read:
    match sql_type:
        case DecimalType():
            return _decimal_reader(sql_type)
        case ArrayType(element):
            return _array_reader(sql_type, _reader(element))
        case MapType(_, value):
            return _map_reader(sql_type, _reader(value))
        case StructType(fields):
            return _object_reader([(field.name, field.type) for field in fields])
    return _PRIMITIVES[sql_type]


def _misfit(value: Any, required: SqlType) -> NoReturn:
    raise ValueError(f"Can't convert type. sourceType: {_NODE_NAMES[type(value)]}, requiredType: {required}")


_NODE_NAMES: Final[Mapping[type, str]] = {
    bool: "BooleanNode",
    int: "IntNode",
    float: "DecimalNode",
    Decimal: "DecimalNode",
    str: "TextNode",
    list: "ArrayNode",
    dict: "ObjectNode",
}


def _boolean(value: Any) -> Any:
    if value is None or value is True or value is False:
        return value
    _misfit(value, BOOLEAN)


def _int_reader(sql_type: SqlType, bits: int) -> Read:
    lowest, highest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Any) -> Any:
        kind = value.__class__
        if kind is int:
            return value if lowest <= value <= highest else wrap_int(value, bits)
        if value is None:
            return None
        if kind is Decimal:
            return wrap_int(value, bits)
        if kind is float:
            raise _InexactError
        if kind is str:
            try:
                return parse_java_int(value, bits)
            except ValueError:
                raise ValueError(f"Can't coerce string to type. targetType: {sql_type}") from None
        _misfit(value, sql_type)

    return read


_LONG: Final = _int_reader(BIGINT, 64)


def _time(value: Any) -> Any:
    number = _LONG(value)
    return None if number is None else check_time(number)


def _double(value: Any) -> Any:
    kind = value.__class__
    if kind is float or value is None:
        return value
    if kind is int or kind is Decimal:
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if kind is str:
        try:
            return parse_java_double(value)
        except ValueError:
            raise ValueError("Can't coerce string to type. targetType: DOUBLE") from None
    _misfit(value, DOUBLE)


def _string(value: Any) -> Any:
    return value if value is None or value.__class__ is str else _text(value, 0)


def _text(value: Any, depth: int) -> str:
    """Any value as text: objects as compact JSON, arrays as `[a, b]`, others as they are written."""
    if depth > MAX_TEXT_DEPTH:
        raise ValueError(f"a value nested more than {MAX_TEXT_DEPTH} levels deep cannot become a STRING")
    kind = value.__class__
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is Decimal:
        return java_decimal_text(value)
    if kind is list:
        texts = ["null" if item is None else _text(item, depth + 1) for item in value]
        return f"[{', '.join(texts)}]"
    if kind is dict:
        return _compact(value, depth)
    raise _InexactError


def _compact(value: Any, depth: int) -> str:
    if depth > MAX_TEXT_DEPTH:
        raise ValueError(f"a value nested more than {MAX_TEXT_DEPTH} levels deep cannot become a STRING")
    kind = value.__class__
    if kind is str:
        return encode_basestring(value)
    if kind is dict:
        members = [f"{encode_basestring(name)}:{_compact(item, depth + 1)}" for name, item in value.items()]
        return f"{{{','.join(members)}}}"
    if kind is list:
        return f"[{','.join([_compact(item, depth + 1) for item in value])}]"
    return "null" if value is None else _text(value, depth)


def _bytes(value: Any) -> Any:
    if value is None:
        return None
    return bytes_of_base64(value) if value.__class__ is str else _misfit(value, BYTES)


def _decimal_reader(sql_type: DecimalType) -> Read:
    def read(value: Any) -> Any:
        kind = value.__class__
        if kind is Decimal or kind is int:
            return fit_decimal(value, sql_type)
        if value is None:
            return None
        return fit_decimal(parse_java_decimal(value), sql_type) if kind is str else _misfit(value, sql_type)

    return read


def _array_reader(sql_type: SqlType, read_element: Read) -> Read:
    def read(value: Any) -> Any:
        if value.__class__ is list:
            return [read_element(item) for item in value]
        return None if value is None else _misfit(value, sql_type)

    return read


def _map_reader(sql_type: SqlType, read_value: Read) -> Read:
    def read(value: Any) -> Any:
        if value.__class__ is dict:
            return {key: read_value(item) for key, item in value.items()}
        return None if value is None else _misfit(value, sql_type)

    return read


_PRIMITIVES: Final[Mapping[SqlType, Read]] = {
    BOOLEAN: _boolean,
    INTEGER: _int_reader(INTEGER, 32),
    BIGINT: _LONG,
    DOUBLE: _double,
    STRING: _string,
    BYTES: _bytes,
    DATE: _int_reader(DATE, 32),
    TIME: _time,
    TIMESTAMP: _int_reader(TIMESTAMP, 64),
}


# Objects. Names are looked up once per list of member names, since the records of a topic look alike.


_QUICK_CHECKS: Final[Mapping[SqlType, str]] = {
    STRING: "v{0}.__class__ is not str",
    DOUBLE: "v{0}.__class__ is not float",
    INTEGER: "v{0}.__class__ is not int or not -2147483648 <= v{0} <= 2147483647",
    BIGINT: "v{0}.__class__ is not int or not -9223372036854775808 <= v{0} <= 9223372036854775807",
    BOOLEAN: "v{0}.__class__ is not bool",
}
"""When a value needs its reader; usually it is of the column's type already."""


def _object_reader(fields: list[tuple[str, SqlType]]) -> Read:
    """A reader of objects as tuples. Its code is made for the number and types of fields: names are not part of it."""
    names = [name for name, _ in fields]
    struct = StructType(()) if not fields else None
    shapes: dict[tuple[str, ...], Callable[[Any], Any]] = {}

    def values_of(value: Any) -> Any:
        """The raw values of the fields, and how to get them from the next object with the same member names."""
        if value.__class__ is not dict:
            _misfit(value, struct or STRUCT_NAME)
        get = _getter(names, value)
        if len(shapes) < MAX_SHAPES:
            shapes[tuple(value)] = get
        return get(value)

    lines = ["def read(value):", "    if value is None:", "        return None"]
    lines += ["    get = shapes.get(tuple(value)) if value.__class__ is dict else None"]
    lines += ["    values = get(value) if get is not None else values_of(value)"]
    if fields:
        lines.append(f"    {''.join(f'v{index}, ' for index in range(len(fields)))}= values")
    for index, (_, sql_type) in enumerate(fields):
        lines.append(f"    if {_QUICK_CHECKS.get(sql_type, 'v{0} is not None').format(index)}:")
        lines.append(f"        v{index} = r{index}(v{index})")
    lines.append(f"    return ({''.join(f'v{index}, ' for index in range(len(fields)))})")
    scope: dict[str, Any] = {f"r{index}": _reader(sql_type) for index, (_, sql_type) in enumerate(fields)}
    scope |= {"shapes": shapes, "values_of": values_of}
    exec("\n".join(lines), scope)
    read: Read = scope["read"]
    return read


class _StructName(SqlType):
    def __str__(self) -> str:
        return "STRUCT"


STRUCT_NAME: Final = _StructName()


def _getter(names: list[str], value: dict[str, Any]) -> Callable[[Any], Any]:
    """How to get the fields from objects with these member names: an exact name first, else the last in other case."""
    upper = {member.upper(): member for member in value}
    members = [name if name in value else upper.get(name) for name in names]
    present = [member for member in members if member is not None]
    if len(present) == len(members) > 1:
        return itemgetter(*present)
    return lambda found: [None if member is None else found[member] for member in members]
