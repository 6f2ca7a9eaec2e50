"""TimestampConverter: moments as texts, Unix times and logical types. Start at `TimestampConverterValue`.

Every conversion goes through milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting, one_of
from moldau.connect.api.errors import ConfigError, DataError
from moldau.connect.api.records import ConnectRecord
from moldau.connect.api.schemas import (
    DATE,
    DATE_NAME,
    INT64,
    STRING,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
    optional,
)
from moldau.connect.transforms.date_patterns import DatePattern
from moldau.connect.transforms.parts import (
    REPLACE_NULL,
    PartTransform,
    SchemaCache,
    field_value,
    require_map,
    require_struct,
    struct_like,
)
from moldau.connect.transforms.routing import pattern_problem
from moldau.formats.registry.data_schema import NO_DEFAULT, DataField, DataSchema, Kind

__all__ = ["TimestampConverterKey", "TimestampConverterValue"]

DAY_MS: Final = 86_400_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
TYPES: Final = {"string": STRING, "unix": INT64, "Date": DATE, "Time": TIME, "Timestamp": TIMESTAMP}
BY_NAME: Final = {TIMESTAMP_NAME: "Timestamp", DATE_NAME: "Date", TIME_NAME: "Time"}
PER_MS: Final = {"milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}


class _TimestampConverter(PartTransform):
    purpose = "converting timestamp formats"
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("field", ConfigType.STRING, "The field to convert; the whole by default.", ""),
        Setting("target.type", ConfigType.STRING, "What it becomes.", valid=one_of(*TYPES)),
        Setting(
            "format",
            ConfigType.STRING,
            "The pattern of texts, for source or target.",
            "",
            pattern_problem,
            Importance.MEDIUM,
        ),
        Setting(
            "unix.precision",
            ConfigType.STRING,
            "What Unix times count.",
            "milliseconds",
            one_of("seconds", *PER_MS),
            Importance.LOW,
        ),
        REPLACE_NULL,
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._field: str = values["field"]
        self._type: str = values["target.type"]
        self._precision: str = values["unix.precision"]
        self._uses_default: bool = values["replace.null.with.default"]
        if self._type == "string" and not values["format"].strip():
            raise ConfigError(
                ["TimestampConverter requires format option to be specified when using string timestamps"]
            )
        self._pattern = DatePattern(values["format"])
        self._schemas = SchemaCache(self._converted_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if schema is not None:
            return self.with_part(record, self._schemas.get(schema), self._with_schema(schema, value))
        if not self._field:
            return self.with_part(record, None, self._without_schema(value))
        if value is None:
            return self.with_part(record, None, None)
        given = dict(require_map(value, self.purpose))
        given[self._field] = self._without_schema(given.get(self._field))
        return self.with_part(record, None, given)

    def _with_schema(self, schema: DataSchema, value: Any) -> Any:
        if not self._field:
            return self._converted(value, _type_of(schema))
        if value is None:
            return None
        given = require_struct(schema, value, self.purpose)
        made = {field.name: field_value(field, given, uses_default=self._uses_default) for field in schema.fields}
        for field in schema.fields:
            if field.name == self._field:
                made[field.name] = self._converted(made[field.name], _type_of(field.schema))
        return made

    def _converted_schema(self, schema: DataSchema) -> DataSchema:
        target = TYPES[self._type]
        if not self._field:
            return optional(target) if schema.is_optional else target
        if schema.kind is not Kind.STRUCT:
            raise DataError(f"a {schema.kind.value} has no field {self._field}")
        fields = [
            DataField(field.name, optional(target) if field.schema.is_optional else target)
            if field.name == self._field
            else field
            for field in schema.fields
        ]
        default = schema.default
        if default is not NO_DEFAULT and default is not None:
            default = self._with_schema(schema, default)
        return replace(struct_like(schema, fields), is_optional=schema.is_optional, default=default)

    def _without_schema(self, value: Any) -> Any:
        match value:
            case None:
                return None
            case datetime():
                source = "Timestamp"
                value = (value - EPOCH) // timedelta(milliseconds=1)
            case bool():
                source = ""
            case int():
                source = "unix"
            case str():
                source = "string"
            case _:
                source = ""
        if not source:
            raise DataError(f"TimestampConverter does not support {type(value).__name__} objects as timestamps")
        converted = self._converted(value, source)
        if self._type in ("string", "unix"):
            return converted
        # Without a schema nothing else would say that the number is a moment.
        try:
            return EPOCH + timedelta(milliseconds=converted * (DAY_MS if self._type == "Date" else 1))
        except OverflowError:
            raise DataError(f"{value} is outside of the years 1 to 9999, which can be converted") from None

    def _converted(self, value: Any, source: str) -> Any:
        if value is None:
            return None
        try:
            return self._from_ms(self._to_ms(value, source))
        except OverflowError:
            raise DataError(f"{value} is outside of the years 1 to 9999, which can be converted") from None

    def _to_ms(self, value: Any, source: str) -> int:
        match source:
            case "string":
                return self._parsed(value)
            case "unix":
                _check_number(value)
                if self._precision == "seconds":
                    return _saturated(int(value) * 1000)
                return _toward_zero(value, PER_MS[self._precision])
            case "Date":
                _check_number(value)
                return int(value) * DAY_MS
        _check_number(value)
        return int(value)

    def _parsed(self, value: Any) -> int:
        if not isinstance(value, str):
            raise DataError(f"Expected string timestamp to be a String, but found {type(value).__name__}")
        if not self._pattern.pattern:
            raise DataError("TimestampConverter needs the format option to read timestamps from strings")
        try:
            return self._pattern.parse_ms(value)
        except (ValueError, OverflowError):
            raise DataError(
                f"Could not parse timestamp: value ({value}) does not match pattern ({self._pattern.pattern})"
            ) from None

    def _from_ms(self, millis: int) -> Any:
        match self._type:
            case "string":
                return self._pattern.format_ms(millis)
            case "unix":
                if self._precision == "seconds":
                    return _toward_zero(millis, 1000)
                return _saturated(millis * PER_MS[self._precision])
            case "Date":
                return millis // DAY_MS
            case "Time":
                return millis % DAY_MS
        return millis


def _saturated(number: int) -> int:
    """As Java's time units: what does not fit into 64 bits is the largest or the smallest number."""
    return max(-(1 << 63), min((1 << 63) - 1, number))


def _toward_zero(number: int, divisor: int) -> int:
    return number // divisor if number >= 0 else -(-number // divisor)


def _check_number(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"Expected a timestamp to be a number, but found {type(value).__name__}")


def _type_of(schema: DataSchema) -> str:
    if schema.name in BY_NAME:
        return BY_NAME[schema.name]
    if schema.kind is Kind.STRING:
        return "string"
    if schema.kind is Kind.INT64:
        return "unix"
    raise DataError(f"Schema of type {schema.kind.value} does not correspond to a known timestamp type format")


class TimestampConverterKey(_TimestampConverter):
    """TimestampConverter for keys."""

    is_key = True


class TimestampConverterValue(_TimestampConverter):
    """TimestampConverter for values."""
