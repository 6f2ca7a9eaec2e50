"""Transforms of headers. Start at `HeaderFromValue`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting, not_empty, one_of
from moldau.connect.api.errors import ConfigError, DataError
from moldau.connect.api.plugin_kinds import Transformation
from moldau.connect.api.records import ConnectRecord, Header
from moldau.connect.converters.literals import parse_literal
from moldau.connect.transforms.parts import (
    REPLACE_NULL,
    PartTransform,
    SchemaCache,
    field_value,
    get_field,
    require_map,
    require_struct,
    struct_like,
)
from moldau.formats.registry.data_schema import DataSchema

__all__ = ["DropHeaders", "HeaderFromKey", "HeaderFromValue", "InsertHeader"]


class _HeaderFrom(PartTransform):
    purpose = "header-from"
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("fields", ConfigType.LIST, "Fields to move or copy.", valid=not_empty),
        Setting("headers", ConfigType.LIST, "The headers they go to, in the same order.", valid=not_empty),
        Setting("operation", ConfigType.STRING, "move or copy.", valid=one_of("move", "copy")),
        REPLACE_NULL,
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._fields: list[str] = values["fields"]
        self._headers: list[str] = values["headers"]
        self._moves = values["operation"] == "move"
        self._uses_default: bool = values["replace.null.with.default"]
        if len(self._fields) != len(self._headers):
            raise ConfigError(["'fields' config must have the same number of elements as 'headers' config"])
        self._schemas = SchemaCache(self._without_fields)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if schema is None:
            given = require_map(value, self.purpose)
            added = [
                Header(header, given.get(field)) for field, header in zip(self._fields, self._headers, strict=True)
            ]
            kept = {name: one for name, one in given.items() if name not in self._fields} if self._moves else given
            return self.with_part(record, None, kept, headers=(*record.headers, *added))
        struct = require_struct(schema, value, self.purpose)
        added = []
        for name, header in zip(self._fields, self._headers, strict=True):
            field = get_field(schema, name)
            if field is None:
                raise DataError(f"Field does not exist: {name}")
            added.append(Header(header, field_value(field, struct, uses_default=self._uses_default), field.schema))
        headers = (*record.headers, *added)
        if not self._moves:
            return self.with_part(record, schema, value, headers=headers)
        updated = self._schemas.get(schema)
        kept = {field.name: field_value(field, struct, uses_default=self._uses_default) for field in updated.fields}
        return self.with_part(record, updated, kept, headers=headers)

    def _without_fields(self, schema: DataSchema) -> DataSchema:
        return struct_like(schema, [field for field in schema.fields if field.name not in self._fields])


class HeaderFromKey(_HeaderFrom):
    """HeaderFrom for keys."""

    is_key = True


class HeaderFromValue(_HeaderFrom):
    """HeaderFrom for values."""


class InsertHeader(Transformation):
    """Adds a header with a fixed value, whose type follows from its text."""

    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("header", ConfigType.STRING, "The header's name.", valid=not_empty, importance=Importance.MEDIUM),
        Setting("value.literal", ConfigType.STRING, "The value.", importance=Importance.MEDIUM),
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        schema, value = parse_literal(values["value.literal"])
        self._header = Header(values["header"], value, schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        return record.changed(headers=(*record.headers, self._header))


class DropHeaders(Transformation):
    """Removes headers by name."""

    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("headers", ConfigType.LIST, "Names of headers to drop.", valid=not_empty)
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        self._names = frozenset(self.config_def.parse(settings)["headers"])

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        kept = tuple(header for header in record.headers if header.key not in self._names)
        return record if len(kept) == len(record.headers) else record.changed(headers=kept)
