"""kio's classes as field tables for decoding, and as instances for kio's writers.

The only module that depends on how kio describes a message; all others use `protocol.messages`. kio's names of times
lack Kafka's `Ms`, and their values are timedeltas or datetimes: here the name is Kafka's again and the value a number.
Start at `table_of` and `entity_writer`.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import typing
from collections.abc import Callable
from functools import cache, lru_cache
from types import EllipsisType, NoneType, UnionType
from typing import IO, Any, Final, Literal, TypeAlias

from moldau.core.errors import ErrorCode
from moldau.protocol.fields import UNSET, Field, Struct, default_of

__all__ = ["Kind", "Write", "entity_class", "entity_writer", "table_of"]

Kind: TypeAlias = Literal["request", "response", "data"]
Shape: TypeAlias = Callable[[str, tuple[str, ...]], Callable[..., Any]]
Write: TypeAlias = Callable[[IO[bytes], Any], None]

_TYPES: Final = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
"""kio's refined types and their wire types; its other types have Kafka's names."""

_TIMES: Final = frozenset({"timedelta_i32", "timedelta_i64", "datetime_i64"})


@cache
def entity_class(schema: str, version: int, kind: Kind) -> type:
    """Import the class of one message in one version, by kio's name of its schema."""
    module = _import(f"kio.schema.{schema}.v{version}.{kind}")
    return next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and getattr(getattr(value, "__type__", None), "name", None) == kind
    )


_NO_NEED_TO_HIDE: Final = frozenset({"hypothesis", "_hypothesis_pytestplugin", "kio.static.primitive"})
"""Once one of these is loaded hypothesis is not hidden any more: pytest's plugin looks it up from other threads."""


def _import(name: str) -> Any:
    """kio imports hypothesis if that is installed, which takes 0.2 s that no broker needs."""
    if not _NO_NEED_TO_HIDE.isdisjoint(sys.modules):
        return importlib.import_module(name)
    sys.modules["hypothesis"] = typing.cast(Any, None)
    try:
        importlib.import_module("kio.static.primitive")
    finally:
        del sys.modules["hypothesis"]
    return importlib.import_module(name)


# --- reading ----------------------------------------------------------------------------------------


def table_of(schema: str, version: int, kind: Kind, shape: Shape) -> Struct:
    """Return the field table of one message; `shape` names the class for each struct in it."""
    return _struct(entity_class(schema, version, kind), (), shape)


def _struct(cls: Any, path: tuple[str, ...], shape: Shape) -> Struct:
    fields = tuple(_field(field, path, shape) for field in dataclasses.fields(cls))
    return Struct(cls.__name__, fields, cls.__flexible__, shape(cls.__name__, path))


def _field(field: dataclasses.Field[Any], path: tuple[str, ...], shape: Shape) -> Field:
    name, kafka_type = _name(field), field.metadata.get("kafka_type")
    inner, is_array, is_nullable = _unwrap_annotation(field.type)
    is_struct = dataclasses.is_dataclass(inner)
    plain = Field(
        name=name,
        type=_struct(inner, (*path, name), shape) if is_struct else _TYPES.get(kafka_type or "", kafka_type or ""),
        is_array=is_array,
        is_nullable=is_nullable and kafka_type != "uuid" and kafka_type not in _TIMES,
        tag=field.metadata.get("tag"),
    )
    return plain._replace(default=_default(field.default, plain))


def _name(field: dataclasses.Field[Any]) -> str:
    return f"{field.name}_ms" if field.metadata.get("kafka_type") in _TIMES else field.name


def _unwrap_annotation(annotation: Any) -> tuple[Any, bool, bool]:
    """Split `tuple[X, ...] | None` into X, whether it is an array, and whether it may be null.

    Elements are never null; in kio's `tuple[UUID | None, ...]` the `None` is its zero uuid.
    """
    inner, is_nullable = _without_none(annotation)
    if typing.get_origin(inner) is not tuple:
        return inner, False, is_nullable
    element, ellipsis = typing.get_args(inner)
    if not isinstance(ellipsis, EllipsisType):
        raise TypeError(f"{annotation} is no array")
    return _without_none(element)[0], True, is_nullable


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) not in (UnionType, typing.Union):
        return annotation, False
    (inner,) = (one for one in typing.get_args(annotation) if one is not NoneType)
    return inner, True


def _default(value: Any, field: Field) -> Any:
    """kio's default as a value in a message."""
    if value is dataclasses.MISSING:
        return UNSET
    if value is None and field.name.endswith("_ms"):
        return -1
    if isinstance(value, tuple):
        return []
    if isinstance(field.type, Struct) and value is not None:
        return UNSET
    if hasattr(value, "total_seconds"):
        return round(value.total_seconds() * 1000)
    return getattr(value, "value", value)


# --- writing ----------------------------------------------------------------------------------------


class _Milliseconds(int):
    """Replaces kio's timedelta and datetime, whose range is smaller than 64 bits of milliseconds."""

    def total_seconds(self) -> _Thousandths:
        return _Thousandths(self)

    timestamp = total_seconds


class _Thousandths(int):
    """Seconds, stored in thousandths: multiplied by 1000, as kio's writers do, no digit is lost."""

    def __mul__(self, factor: int) -> int:
        return int(self) * factor // 1000


@lru_cache(maxsize=1024)
def _milliseconds(value: int) -> _Milliseconds:
    return _Milliseconds(value)


@cache
def entity_writer(schema: str, version: int, kind: Kind) -> Write:
    """Return the writer of a message: it fills an instance of kio's class and calls kio's writer."""
    cls = entity_class(schema, version, kind)
    from kio.serial import entity_writer as kio_writer

    fill = _filler(cls)
    write: Write = kio_writer(cls)
    return lambda output, message: write(output, fill(message))


def _filler(cls: Any) -> Callable[[Any], Any]:
    """Return a function that creates an instance of `cls` from a message's fields, with defaults for missing ones."""
    steps = tuple(_step(field) for field in dataclasses.fields(cls))

    def fill(message: Any) -> Any:
        given = vars(message)
        return cls(
            **{
                kio_name: convert(given[name]) if name in given else default
                for kio_name, name, convert, default in steps
            }
        )

    return fill


def _step(field: dataclasses.Field[Any]) -> tuple[str, str, Callable[[Any], Any], Any]:
    table = _field(field, (), lambda name, path: _Filled)
    inner, is_array, _ = _unwrap_annotation(field.type)
    convert = (
        _filler(inner) if dataclasses.is_dataclass(inner) else _CONVERTERS.get(field.metadata["kafka_type"], _same)
    )
    if is_array:
        convert = _array_converter(convert)
    elif table.is_nullable:
        convert = _nullable_converter(convert)
    return field.name, table.name, convert, convert(default_of(table))


class _Filled:
    """A struct of defaults, to be converted to kio's class."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def _same(value: Any) -> Any:
    return value


def _nullable_converter(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else convert(value)


def _array_converter(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A tuple, since kio omits a tagged field only if it equals its default, an empty tuple."""
    if convert is _same:
        return lambda items: None if items is None else tuple(items)
    return lambda items: None if items is None else tuple([convert(item) for item in items])


_CONVERTERS: Final[dict[str, Callable[[Any], Any]]] = {
    "error_code": ErrorCode,
    "timedelta_i32": _milliseconds,
    "timedelta_i64": _milliseconds,
    "datetime_i64": _milliseconds,
}
