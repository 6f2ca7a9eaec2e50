"""Avro's JSON encoding, which the console tools read and print; a union's value names its branch.

`{"name": {"string": "Ada"}, "photo": null}` for two unions with null. Every field is written, bytes are
characters up to 255, and logical types are the numbers they are stored as. Start at `to_binary`.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from moldau.schemas.avro.binary import MAX_DEPTH, BinaryReader, long_bytes
from moldau.schemas.avro.types import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union, branch_name
from moldau.schemas.errors import InvalidValueError
from moldau.schemas.json_text import Json, render

__all__ = ["from_binary", "to_binary"]

_SPECIAL_FLOATS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_RANGES: Final = {"int": 2**31, "long": 2**63}


def to_binary(value: Json, avro_type: AvroType) -> bytes:
    """Encode a value written in Avro's JSON encoding."""
    writer = _Writer()
    try:
        writer.write(value, avro_type, "")
    except RecursionError:
        raise InvalidValueError("the value is nested too deeply") from None
    return bytes(writer.data)


def from_binary(data: bytes, avro_type: AvroType) -> Json:
    """Decode a value into Avro's JSON encoding."""
    return _read_value(BinaryReader(data), avro_type, 0)


class _Writer:
    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, value: Json, avro_type: AvroType, place: str) -> None:
        match avro_type:
            case Primitive(kind):
                self._primitive(value, kind, place)
            case Record():
                self._record(value, avro_type, place)
            case Union():
                self._union(value, avro_type, place)
            case Enum():
                if value not in avro_type.symbols:
                    raise _unfit(value, f"symbol of {avro_type.full_name} ({', '.join(avro_type.symbols)})", place)
                self.data += long_bytes(avro_type.symbols.index(value))
            case Fixed():
                raw = _raw_bytes(value, f"fixed {avro_type.full_name}", place)
                if len(raw) != avro_type.size:
                    raise _unfit(value, f"fixed {avro_type.full_name} of {avro_type.size} bytes", place)
                self.data += raw
            case Array():
                self._array(value, avro_type, place)
            case Map():
                self._map(value, avro_type, place)

    def _primitive(self, value: Json, kind: str, place: str) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        match kind:
            case "null" if value is None:
                return
            case "boolean" if isinstance(value, bool):
                self.data.append(value)
            case "int" | "long" if is_number and value == int(value) and -_RANGES[kind] <= value < _RANGES[kind]:
                self.data += long_bytes(int(value))
            case "float" | "double":
                self._float(value, kind, place)
            case "string" if isinstance(value, str):
                raw = value.encode()
                self.data += long_bytes(len(raw)) + raw
            case "bytes":
                raw = _raw_bytes(value, "bytes", place)
                self.data += long_bytes(len(raw)) + raw
            case _:
                raise _unfit(value, kind, place)

    def _float(self, value: Json, kind: str, place: str) -> None:
        number = _SPECIAL_FLOATS.get(value) if isinstance(value, str) else value
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise _unfit(value, kind, place)
        try:
            self.data += struct.pack("<f" if kind == "float" else "<d", number)
        except OverflowError:
            raise _unfit(value, kind, place) from None

    def _record(self, value: Json, record: Record, place: str) -> None:
        if not isinstance(value, dict):
            raise _unfit(value, f"record {record.full_name}", place)
        for field in record.fields:
            if field.name not in value:
                raise InvalidValueError(
                    f"{_at(place)}the field {field.name!r} of record {record.full_name} is missing; "
                    "Avro's JSON encoding names every field"
                )
            self.write(value[field.name], field.type, f"{place}/{field.name}")
        if len(value) > len(record.fields):
            unknown = sorted(value.keys() - {field.name for field in record.fields})
            raise InvalidValueError(f"{_at(place)}record {record.full_name} has no field {', '.join(unknown)}")

    def _union(self, value: Json, union: Union, place: str) -> None:
        name = "null" if value is None else next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
        for position, branch in enumerate(union.branches):
            if name == branch_name(branch):
                self.data += long_bytes(position)
                self.write(None if value is None else value[name], branch, place)
                return
        names = ", ".join(branch_name(branch) for branch in union.branches)
        raise InvalidValueError(
            f"{_at(place)}{_brief(value)} does not name a branch of the union of {names}; "
            'write {"<branch>": <value>}, or null'
        )

    def _array(self, value: Json, array: Array, place: str) -> None:
        if not isinstance(value, list):
            raise _unfit(value, "array", place)
        if value:
            self.data += long_bytes(len(value))
            for position, item in enumerate(value):
                self.write(item, array.items, f"{place}/{position}")
        self.data.append(0)

    def _map(self, value: Json, map_type: Map, place: str) -> None:
        if not isinstance(value, dict):
            raise _unfit(value, "map", place)
        if value:
            self.data += long_bytes(len(value))
            for key, item in value.items():
                raw = key.encode()
                self.data += long_bytes(len(raw)) + raw
                self.write(item, map_type.values, f"{place}/{key}")
        self.data.append(0)


def _read_value(reader: BinaryReader, avro_type: AvroType, depth: int) -> Json:
    if depth > MAX_DEPTH:
        raise InvalidValueError(f"the Avro data is nested more than {MAX_DEPTH} levels deep")
    match avro_type:
        case Primitive(kind):
            return _read_primitive(reader, kind)
        case Record():
            return {field.name: _read_value(reader, field.type, depth + 1) for field in avro_type.fields}
        case Union():
            branch = avro_type.branches[reader.index(len(avro_type.branches), "branch")]
            value = _read_value(reader, branch, depth + 1)
            return None if branch.kind == "null" else {branch_name(branch): value}
        case Enum():
            return avro_type.symbols[reader.index(len(avro_type.symbols), "symbol")]
        case Fixed():
            return reader.take(avro_type.size).decode("latin-1")
        case Array():
            return [_read_value(reader, avro_type.items, depth + 1) for _ in reader.blocks()]
        case Map():
            return {reader.string(): _read_value(reader, avro_type.values, depth + 1) for _ in reader.blocks()}


def _read_primitive(reader: BinaryReader, kind: str) -> Json:
    match kind:
        case "int" | "long":
            return reader.long()
        case "string":
            return reader.string()
        case "bytes":
            return reader.byte_string().decode("latin-1")
        case "boolean":
            return reader.boolean()
        case "float" | "double":
            return _shown_float(reader.float32() if kind == "float" else reader.float64())
    return None


def _shown_float(number: float) -> Json:
    """A float as JSON. JSON has no NaN and Infinity, so they are written as strings, as Avro's tools do."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _raw_bytes(value: Json, what: str, place: str) -> bytes:
    try:
        return value.encode("latin-1") if isinstance(value, str) else _refuse(value, what, place)
    except UnicodeEncodeError:
        raise _unfit(value, f"{what} (a character above 255 is not a byte)", place) from None


def _refuse(value: Json, what: str, place: str) -> bytes:
    raise _unfit(value, what, place)


def _unfit(value: Json, what: str, place: str) -> InvalidValueError:
    return InvalidValueError(f"{_at(place)}{_brief(value)} is no {what}")


def _at(place: str) -> str:
    return f"at {place}: " if place else ""


def _brief(value: Json) -> str:
    text = render(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
