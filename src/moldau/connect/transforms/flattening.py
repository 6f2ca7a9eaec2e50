"""Flatten: nested structs and maps become fields with dotted names. Start at `FlattenValue`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting
from moldau.connect.api.errors import DataError
from moldau.connect.api.records import ConnectRecord
from moldau.connect.transforms.parts import (
    REPLACE_NULL,
    PartTransform,
    SchemaCache,
    field_value,
    require_map,
    require_struct,
    struct_like,
)
from moldau.formats.registry.data_schema import NO_DEFAULT, DataField, DataSchema, Kind

__all__ = ["FlattenKey", "FlattenValue"]


class _Flatten(PartTransform):
    purpose = "flattening"
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("delimiter", ConfigType.STRING, "Between the names.", ".", importance=Importance.MEDIUM), REPLACE_NULL
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._delimiter: str = values["delimiter"]
        self._uses_default: bool = values["replace.null.with.default"]
        self._schemas = SchemaCache(self._flat_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            self._flatten_map(require_map(value, self.purpose), "", flat)
            return self.with_part(record, None, flat)
        made: dict[str, Any] = {}
        self._flatten_struct(schema, require_struct(schema, value, self.purpose), "", made)
        return self.with_part(record, self._schemas.get(schema), made)

    def _name(self, prefix: str, name: str) -> str:
        return name if not prefix else f"{prefix}{self._delimiter}{name}"

    def _flatten_map(self, value: Mapping[Any, Any], prefix: str, into: dict[str, Any]) -> None:
        for key, one in value.items():
            name = self._name(prefix, str(key))
            match one:
                case Mapping():
                    self._flatten_map(one, name, into)
                case None | bool() | int() | float() | str() | bytes() | list():
                    into[name] = one
                case Decimal() | _:
                    raise DataError(
                        f"Flatten transformation does not support {type(one).__name__} for record without schemas "
                        f"(for field {name})."
                    )

    def _flatten_struct(
        self, schema: DataSchema, value: Mapping[str, Any] | None, prefix: str, into: dict[str, Any]
    ) -> None:
        if value is None:
            return
        for field in schema.fields:
            name = self._name(prefix, field.name)
            found = field_value(field, value, uses_default=self._uses_default)
            if field.schema.kind is Kind.STRUCT:
                self._flatten_struct(field.schema, found, name, into)
            else:
                into[name] = found

    def _flat_schema(self, schema: DataSchema) -> DataSchema:
        default = None if schema.default is NO_DEFAULT else schema.default
        fields: list[DataField] = []
        self._flatten_fields(schema, "", schema.is_optional, default, fields)
        return struct_like(schema, fields)

    def _flatten_fields(
        self,
        schema: DataSchema,
        prefix: str,
        is_optional: bool,
        outer_default: Mapping[str, Any] | None,
        into: list[DataField],
    ) -> None:
        for field in schema.fields:
            name = self._name(prefix, field.name)
            inner = field.schema
            optional = is_optional or inner.is_optional
            default = inner.default if inner.default is not NO_DEFAULT else None
            if default is None and outer_default is not None:
                default = field_value(field, outer_default)
            if inner.kind is Kind.STRUCT:
                self._flatten_fields(inner, name, optional, default, into)
            elif inner.kind is Kind.MAP:
                raise DataError(
                    f"Flatten transformation does not support {inner.kind.name} for record with schemas (for field "
                    f"{name})."
                )
            else:
                flat = replace(inner, is_optional=optional, default=NO_DEFAULT if default is None else default)
                into.append(DataField(name, flat))


class FlattenKey(_Flatten):
    """Flatten for keys."""

    is_key = True


class FlattenValue(_Flatten):
    """Flatten for values."""
