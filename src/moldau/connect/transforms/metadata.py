"""SetSchemaMetadata: a schema's name and version. Start at `SetSchemaMetadataValue`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from moldau.connect.api.config_def import ConfigDef, ConfigType, Setting
from moldau.connect.api.errors import DataError
from moldau.connect.api.records import ConnectRecord
from moldau.connect.transforms.parts import REPLACE_NULL, PartTransform, SchemaCache
from moldau.formats.registry.data_schema import DataSchema

__all__ = ["SetSchemaMetadataKey", "SetSchemaMetadataValue"]


class _SetSchemaMetadata(PartTransform):
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("schema.name", ConfigType.STRING, "The name to set.", None),
        Setting("schema.version", ConfigType.INT, "The version to set.", None),
        REPLACE_NULL,
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._name: str | None = values["schema.name"]
        self._version: int | None = values["schema.version"]
        self._schemas = SchemaCache(self._updated)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]: the record has none")
        return self.with_part(record, self._schemas.get(schema), value)

    def _updated(self, schema: DataSchema) -> DataSchema:
        return replace(
            schema,
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
        )


class SetSchemaMetadataKey(_SetSchemaMetadata):
    """SetSchemaMetadata for keys."""

    is_key = True


class SetSchemaMetadataValue(_SetSchemaMetadata):
    """SetSchemaMetadata for values."""
