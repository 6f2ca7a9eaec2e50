"""ValueToKey: a key made of fields of the value. Start at `ValueToKey`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from moldau.connect.api.config_def import ConfigDef, ConfigType, Setting, not_empty
from moldau.connect.api.errors import DataError
from moldau.connect.api.plugin_kinds import Transformation
from moldau.connect.api.records import ConnectRecord
from moldau.connect.transforms.parts import (
    REPLACE_NULL,
    SchemaCache,
    field_value,
    get_field,
    require_map,
    require_struct,
)
from moldau.formats.registry.data_schema import DataField, DataSchema, Kind

__all__ = ["ValueToKey"]

PURPOSE = "copying fields from value to key"


class ValueToKey(Transformation):
    """Replaces the key by the listed fields of the value."""

    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("fields", ConfigType.LIST, "Fields of the value that make the key.", valid=not_empty), REPLACE_NULL
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._fields: list[str] = values["fields"]
        self._uses_default: bool = values["replace.null.with.default"]
        self._schemas = SchemaCache(self._key_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema = record.value_schema
        if schema is None:
            given = require_map(record.value, PURPOSE)
            return record.changed(key_schema=None, key={name: given.get(name) for name in self._fields})
        struct = require_struct(schema, record.value, PURPOSE)
        key_schema = self._schemas.get(schema)
        key = {field.name: field_value(field, struct, uses_default=self._uses_default) for field in key_schema.fields}
        return record.changed(key_schema=key_schema, key=key)

    def _key_schema(self, schema: DataSchema) -> DataSchema:
        fields = []
        for name in self._fields:
            field = get_field(schema, name)
            if field is None:
                raise DataError(f"Field does not exist: {name}")
            fields.append(DataField(name, field.schema))
        return DataSchema(Kind.STRUCT, fields=tuple(fields))
