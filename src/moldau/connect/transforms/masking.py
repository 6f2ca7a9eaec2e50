"""MaskField: values of fields replaced by their type's zero, or by a text or number. Start at `MaskFieldValue`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from moldau.connect.api.config_def import ConfigDef, ConfigType, Setting, not_empty
from moldau.connect.api.errors import DataError
from moldau.connect.api.records import ConnectRecord
from moldau.connect.api.schemas import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from moldau.connect.transforms.parts import REPLACE_NULL, PartTransform, field_value, require_map, require_struct
from moldau.formats.registry.data_schema import DataSchema

__all__ = ["MaskFieldKey", "MaskFieldValue"]

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


class _MaskField(PartTransform):
    purpose = "mask fields"
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("fields", ConfigType.LIST, "Fields to mask.", valid=not_empty),
        Setting("replacement", ConfigType.STRING, "What to write; by default the type's zero.", None, not_empty),
        REPLACE_NULL,
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._fields = frozenset(values["fields"])
        self._replacement: str | None = values["replacement"]
        self._uses_default: bool = values["replace.null.with.default"]

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if schema is None:
            given = dict(require_map(value, self.purpose))
            given.update({name: self._masked(None, given.get(name)) for name in self._fields})
            return self.with_part(record, None, given)
        struct = require_struct(schema, value, self.purpose)
        updated = {}
        for field in schema.fields:
            found = field_value(field, struct, uses_default=self._uses_default)
            updated[field.name] = self._masked(field.schema, found) if field.name in self._fields else found
        return self.with_part(record, schema, updated)

    def _masked(self, schema: DataSchema | None, value: Any) -> Any:
        if value is None:
            return None
        return _zero(schema, value) if self._replacement is None else _replaced(schema, value, self._replacement)


def _zero(schema: DataSchema | None, value: Any) -> Any:
    match value:
        case bool():
            return False
        case int() | float():
            return type(value)(0)
        case str():
            return ""
        case Decimal():
            scale = int(schema.parameters.get("scale", "0")) if schema is not None else 0
            return Decimal((0, (0,), -scale))
        case datetime():
            return datetime(1970, 1, 1, tzinfo=UTC)
        case list():
            return []
        case Mapping() if schema is None or schema.kind.value == "map":
            return {}
    raise DataError(f"Cannot mask value of type: {type(value).__name__}")


def _replaced(schema: DataSchema | None, value: Any, text: str) -> Any:
    name = schema.name if schema is not None else None
    try:
        match value:
            case str():
                return text
            case int() if not isinstance(value, bool) and name not in (DATE_NAME, TIME_NAME, TIMESTAMP_NAME):
                return _number(schema, text)
            case float():
                return float(text)
            case Decimal() if name == DECIMAL_NAME or name is None:
                return Decimal(text)
    except (ValueError, InvalidOperation):
        raise DataError(f"Unable to convert {text} to a number, which is what the field holds") from None
    raise DataError(f"Cannot mask value of type {type(value).__name__} with custom replacement.")


def _number(schema: DataSchema | None, text: str) -> int:
    number = int(text)
    bits = 64 if schema is None else BITS[schema.kind.value]
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(text)
    return number


class MaskFieldKey(_MaskField):
    """MaskField for keys."""

    is_key = True


class MaskFieldValue(_MaskField):
    """MaskField for values."""
