"""Cast: fields, or the whole key or value, to another primitive type, as Java converts it. Start at `CastValue`."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Final

from moldau.connect.api.config_def import ConfigDef, ConfigType, Setting
from moldau.connect.api.errors import DataError
from moldau.connect.api.records import ConnectRecord
from moldau.connect.api.schemas import DATE_NAME, TIME_NAME, TIMESTAMP_NAME
from moldau.connect.converters.java_text import logical_text, to_java_string
from moldau.connect.transforms.parts import (
    REPLACE_NULL,
    PartTransform,
    SchemaCache,
    field_value,
    require_map,
    require_struct,
    struct_like,
)
from moldau.core.java_numbers import parse_java_double, parse_java_int, wrap_int
from moldau.formats.registry.data_schema import NO_DEFAULT, DataField, DataSchema, Kind

__all__ = ["CastKey", "CastValue"]

BITS: Final = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
OUTPUTS: Final = {kind.value: kind for kind in (*BITS, Kind.FLOAT32, Kind.FLOAT64, Kind.BOOLEAN, Kind.STRING)}
WHOLE: Final = None


def _parse_spec(parts: list[str]) -> dict[str | None, Kind]:
    """Types by field; the whole under None. Raises `ValueError`."""
    spec: dict[str | None, Kind] = {}
    for part in parts:
        field, colon, name = (text.strip() for text in part.rpartition(":"))
        if name.lower() not in OUTPUTS:
            raise ValueError(f"Invalid type found in casting spec: {name}; known are {', '.join(OUTPUTS)}")
        spec[field if colon else WHOLE] = OUTPUTS[name.lower()]
    if WHOLE in spec and len(spec) > 1:
        raise ValueError("a spec with a type for the entire value may have no other casts beside it")
    if not spec:
        raise ValueError("Must specify at least one field to cast.")
    return spec


def _spec_problem(parts: Any) -> str | None:
    try:
        _parse_spec(parts)
    except ValueError as error:
        return str(error)
    return None


class _Cast(PartTransform):
    purpose = "cast types"
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("spec", ConfigType.LIST, "Casts as field:type, or one type for the whole.", valid=_spec_problem),
        REPLACE_NULL,
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        spec = _parse_spec(values["spec"])
        self._whole = spec.pop(WHOLE, None)
        self._casts: dict[Any, Kind] = dict(spec)
        self._uses_default: bool = values["replace.null.with.default"]
        self._schemas = SchemaCache(self._cast_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if value is None:
            return record
        if self._whole is not None:
            cast = cast_value(schema, value, self._whole)
            return self.with_part(record, None if schema is None else self._schemas.get(schema), cast)
        if schema is None:
            given = require_map(value, self.purpose)
            casts = {name: cast_value(None, given.get(name), kind) for name, kind in self._casts.items()}
            return self.with_part(record, None, {**given, **casts})
        given = require_struct(schema, value, self.purpose)
        updated = {}
        for field in schema.fields:
            found = field_value(field, given, uses_default=self._uses_default)
            kind = self._casts.get(field.name)
            updated[field.name] = found if kind is None else cast_value(field.schema, found, kind)
        return self.with_part(record, self._schemas.get(schema), updated)

    def _cast_schema(self, schema: DataSchema) -> DataSchema:
        if self._whole is not None:
            made = _cast_to(schema, self._whole)
            # A logical type's name would be wrong for the new type; Kafka keeps it, and no converter can write that.
            if schema.name is None or schema.name.startswith("org.apache.kafka.connect.data."):
                return made
            return replace(made, name=schema.name, version=schema.version, doc=schema.doc, parameters=schema.parameters)
        fields = [
            DataField(field.name, _cast_to(field.schema, self._casts[field.name]))
            if field.name in self._casts
            else field
            for field in schema.fields
        ]
        made = struct_like(schema, fields)
        return replace(made, is_optional=schema.is_optional)


def _cast_to(schema: DataSchema, kind: Kind) -> DataSchema:
    default = schema.default
    if default is not NO_DEFAULT and default is not None:
        default = cast_value(schema, default, kind)
    return DataSchema(kind, schema.is_optional, default=NO_DEFAULT if default is None else default)


def cast_value(schema: DataSchema | None, value: Any, kind: Kind) -> Any:
    """A value as another type; raises `DataError` for what cannot be cast."""
    if value is None:
        return None
    if schema is not None and schema.kind in (Kind.ARRAY, Kind.MAP, Kind.STRUCT):
        raise DataError(f"Cast transformation does not support casting to/from {schema.kind.name}")
    if isinstance(value, (list, Mapping)) or (schema is None and isinstance(value, (datetime, Decimal))):
        raise DataError(
            f"Cast was passed a value of type {type(value).__name__} which is not supported by Connect's data API"
        )
    try:
        return _to_string(schema, value) if kind is Kind.STRING else _CASTS[kind](value)
    except (ValueError, OverflowError):
        raise DataError(f"Value ({value!r}) was out of range for requested data type") from None


def _to_string(schema: DataSchema | None, value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if schema is not None and schema.name in (DATE_NAME, TIME_NAME, TIMESTAMP_NAME) and isinstance(value, int):
        # As for headers, the text depends on the moment alone: a Timestamp at midnight is written as a date.
        from_name = {DATE_NAME: 86_400_000, TIME_NAME: 1, TIMESTAMP_NAME: 1}[schema.name]
        return _moment_text(value * from_name)
    return to_java_string(schema, value)


def _moment_text(millis: int) -> str:
    day_ms = 86_400_000
    if 0 <= millis < day_ms:
        return logical_text(TIME_NAME, millis)
    return logical_text(DATE_NAME, millis // day_ms) if millis % day_ms == 0 else logical_text(TIMESTAMP_NAME, millis)


def _to_integer(bits: int) -> Callable[[Any], int]:
    def cast(value: Any) -> int:
        match value:
            case bool():
                return int(value)
            case int():
                return wrap_int(value, bits)
            case float():
                return _float_to_integer(value, bits)
            case Decimal():
                return wrap_int(int(value), bits)
            case str():
                return _parse_integer(value, bits)
        raise _unexpected(value)

    return cast


def _float_to_integer(value: float, bits: int) -> int:
    """Java goes through int (or long) first, where too large numbers stop at the limits, and then cuts bits off."""
    if math.isnan(value):
        return 0
    first = max(bits, 32)
    low, high = -(1 << (first - 1)), (1 << (first - 1)) - 1
    whole = low if value <= low else high if value >= high else int(value)
    return wrap_int(whole, bits)


def _parse_integer(text: str, bits: int) -> int:
    number = parse_java_int(text, 64)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(text)
    return number


def _to_float32(value: Any) -> float:
    number = _to_float64(value)
    if not math.isfinite(number):
        return number
    try:
        return float(struct.unpack(">f", struct.pack(">f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _to_float64(value: Any) -> float:
    match value:
        case bool() | int() | float() | Decimal():
            return float(value)
        case str():
            return parse_java_double(value)
    raise _unexpected(value)


def _to_boolean(value: Any) -> bool:
    match value:
        case bool():
            return value
        case int():
            return value != 0
        case float() | Decimal():
            return _float_to_integer(float(value), 64) != 0
        case str():
            return value.lower() == "true"
    raise _unexpected(value)


def _unexpected(value: Any) -> DataError:
    return DataError(f"Unexpected type in Cast transformation: {type(value).__name__}")


_CASTS: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    **{kind: _to_integer(bits) for kind, bits in BITS.items()},
    Kind.FLOAT32: _to_float32,
    Kind.FLOAT64: _to_float64,
    Kind.BOOLEAN: _to_boolean,
}


class CastKey(_Cast):
    """Cast for keys."""

    is_key = True


class CastValue(_Cast):
    """Cast for values."""
