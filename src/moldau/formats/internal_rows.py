"""Rows in a compact form of our own, for state and for topics between the steps of a query.

A row is a JSON array of its values, without names: the fastest form that any process and any later version can read.
What JSON cannot hold is text inside it: BYTES in base64, DECIMAL with its digits, NaN and the infinities by name. A
STRUCT is an array again; a MAP is an object, or an array of keys and values if a key is no text.

A row with fewer values than columns is padded with nulls, and one with more is cut, also inside of structs: a query
that is replaced by one with more columns reads the state of the old one. Start at `InternalRowSerde`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import Any, ClassVar

import orjson

from moldau.formats.checks import check_depth
from moldau.formats.columns import Column
from moldau.formats.errors import RowError
from moldau.formats.surrogates import without_surrogates
from moldau.formats.types import BYTES, DOUBLE, ArrayType, DecimalType, MapType, Row, SqlType, StructType
from moldau.formats.types_within import contains
from moldau.serdes.serde import Headers

__all__ = ["InternalRowCodec", "InternalRowSerde"]

Convert = Callable[[Any], Any]
"""Converts a value that is not null; where `None` stands for it, values are kept as they are."""


class InternalRowCodec:
    """Rows of some columns to bytes and back; a `RowCodec`."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        check_depth(columns)
        types = [column.type for column in columns]
        self._to_json = _tuple_writer(types)
        self._from_json = _tuple_reader(types)

    def encode(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        try:
            return orjson.dumps(self._to_json(row))
        except (TypeError, ValueError, AttributeError):
            pass
        try:
            # Functions on texts may leave half a surrogate pair, which Java writes as a question mark.
            return orjson.dumps(without_surrogates(self._to_json(row)))
        except (TypeError, ValueError, AttributeError) as error:
            raise RowError(f"the row cannot be stored: {error}") from None

    def decode(self, data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            row: Row = self._from_json(orjson.loads(data))
        except (TypeError, ValueError, ArithmeticError, AttributeError, KeyError) as error:
            raise RowError(f"the bytes are not a row of this query: {error}") from None
        return row


@dataclass(frozen=True, slots=True)
class InternalRowSerde:
    """Rows of some columns in the internal form, for stores and repartitioning."""

    uses_headers: ClassVar[bool] = False
    is_checked: ClassVar[bool] = True
    """Rows come from typed expressions, so stores need not check them."""

    columns: tuple[Column, ...]
    _codec: InternalRowCodec = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_codec", InternalRowCodec(self.columns))

    @property
    def is_plain(self) -> bool:
        """Whether a store may keep the rows themselves: nobody can change them if they have neither lists nor dicts."""
        return not any(contains(column.type, ArrayType) or contains(column.type, MapType) for column in self.columns)

    @property
    def encode(self) -> Callable[[Any], Any]:
        return self._codec.encode

    @property
    def decode(self) -> Callable[[Any], Any]:
        return self._codec.decode

    def serialize(self, topic: str, value: Row, headers: Headers | None = None) -> bytes:
        return self._codec.encode(value)  # type: ignore[return-value]

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None) -> Row:
        return self._codec.decode(data)  # type: ignore[return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        return (InternalRowSerde, (self.columns,))


# Writing


def _writer(sql_type: SqlType) -> Convert | None:
    match sql_type:
        case DecimalType():
            return str
        case ArrayType(element):
            inner = _writer(element)
            if inner is None:
                return None
            return lambda items: [None if item is None else inner(item) for item in items]
        case MapType(_, value):
            return _map_writer(_writer(value), _writer(sql_type.key))
        case StructType(fields):
            return _tuple_writer([one.type for one in fields])
    if sql_type == DOUBLE:
        return _double
    return (lambda value: b64encode(value).decode()) if sql_type == BYTES else None


def _double(value: float) -> Any:
    # An infinity or NaN minus itself is NaN, which equals nothing.
    return value if value - value == 0 else repr(value)


def _map_writer(inner: Convert | None, key: Convert | None) -> Convert:
    def write(entries: Mapping[Any, Any]) -> Any:
        if inner is not None:
            entries = {one: None if value is None else inner(value) for one, value in entries.items()}
        if all(map(_is_text, entries)):
            return entries
        keys = entries if key is None else [None if one is None else key(one) for one in entries]
        return list(chain.from_iterable(zip(keys, entries.values(), strict=True)))

    return write


def _is_text(value: Any) -> bool:
    return value.__class__ is str


def _tuple_writer(types: list[SqlType]) -> Convert:
    changed = [(index, write) for index, write in enumerate(map(_writer, types)) if write is not None]
    count = len(types)

    def write(row: Any) -> Any:
        if len(row) != count:
            raise ValueError(f"it has {len(row)} values for {count} columns")
        if not changed:
            return row
        values = list(row)
        for index, convert in changed:
            if values[index] is not None:
                values[index] = convert(values[index])
        return values

    return write


# Reading


def _reader(sql_type: SqlType) -> Convert | None:
    match sql_type:
        case DecimalType():
            return Decimal
        case ArrayType(element):
            inner = _reader(element)
            if inner is None:
                return None
            return lambda items: [None if item is None else inner(item) for item in items]
        case MapType(key, value):
            return _map_reader(_reader(key), _reader(value))
        case StructType(fields):
            return _tuple_reader([one.type for one in fields])
    return float if sql_type == DOUBLE else b64decode if sql_type == BYTES else None


def _map_reader(key: Convert | None, inner: Convert | None) -> Convert:
    def read(found: Any) -> dict[Any, Any]:
        if found.__class__ is list:
            keys = found[::2] if key is None else [None if one is None else key(one) for one in found[::2]]
            found = dict(zip(keys, found[1::2], strict=True))
        if inner is None:
            return dict(found)
        return {one: None if value is None else inner(value) for one, value in found.items()}

    return read


def _tuple_reader(types: list[SqlType]) -> Convert:
    changed = [(index, read) for index, read in enumerate(map(_reader, types)) if read is not None]
    count = len(types)

    def read(values: Any) -> tuple[Any, ...]:
        if values.__class__ is not list:
            raise TypeError("the values are not an array")
        if len(values) != count:
            values = [*values[:count], *[None] * (count - len(values))]
        for index, convert in changed:
            if values[index] is not None:
                values[index] = convert(values[index])
        return tuple(values)

    return read
