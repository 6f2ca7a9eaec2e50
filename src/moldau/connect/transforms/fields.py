"""Transforms that add, drop, rename, wrap and take out fields. Start at any class; there is one for keys, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from moldau.connect.api.config_def import ConfigDef, ConfigType, Importance, Setting, one_of
from moldau.connect.api.errors import ConfigError, DataError
from moldau.connect.api.records import ConnectRecord, SinkRecord
from moldau.connect.api.schemas import INT32, INT64, STRING, TIMESTAMP, optional, struct
from moldau.connect.transforms.field_paths import FieldPath
from moldau.connect.transforms.parts import (
    REPLACE_NULL,
    PartTransform,
    SchemaCache,
    field_value,
    require_map,
    require_struct,
    struct_like,
)
from moldau.formats.registry.data_schema import DataField, DataSchema

__all__ = [
    "ExtractFieldKey",
    "ExtractFieldValue",
    "HoistFieldKey",
    "HoistFieldValue",
    "InsertFieldKey",
    "InsertFieldValue",
    "ReplaceFieldKey",
    "ReplaceFieldValue",
]


class _Insertion(NamedTuple):
    name: str
    is_optional: bool

    @classmethod
    def parse(cls, text: str | None) -> _Insertion | None:
        if not text:
            return None
        if text.endswith(("?", "!")):
            return cls(text[:-1], text.endswith("?"))
        return cls(text, True)

    def field(self, schema: DataSchema) -> DataField:
        return DataField(self.name, optional(schema) if self.is_optional else schema)


def _insertion_setting(name: str, what: str) -> Setting:
    doc = f"Field name for {what}. Suffix with ! to make it required, or with ? to make it optional (the default)."
    return Setting(name, ConfigType.STRING, doc, None, importance=Importance.MEDIUM)


class _InsertField(PartTransform):
    purpose = "field insertion"
    config_def: ClassVar[ConfigDef] = ConfigDef(
        _insertion_setting("topic.field", "the topic"),
        _insertion_setting("partition.field", "the partition"),
        _insertion_setting("offset.field", "the offset, of sinks only"),
        _insertion_setting("timestamp.field", "the record's timestamp"),
        _insertion_setting("static.field", "a fixed value"),
        Setting("static.value", ConfigType.STRING, "The fixed value.", None, importance=Importance.MEDIUM),
        REPLACE_NULL,
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        names = ("topic", "partition", "offset", "timestamp", "static")
        self._topic, self._partition, self._offset, self._timestamp, self._static = (
            _Insertion.parse(values[f"{name}.field"]) for name in names
        )
        self._static_value = values["static.value"]
        self._uses_default: bool = values["replace.null.with.default"]
        if not any((self._topic, self._partition, self._offset, self._timestamp, self._static)):
            raise ConfigError(["No field insertion configured: set topic.field, static.field or another *.field"])
        if self._static is not None and self._static_value is None:
            raise ConfigError(
                ["Invalid value null for configuration static.value: No value specified for static field"]
            )
        self._schemas = SchemaCache(self._updated_schema)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if value is None:
            return record
        if schema is None:
            return self.with_part(record, None, {**require_map(value, self.purpose), **self._inserted(record)})
        given = require_struct(schema, value, self.purpose)
        updated = {field.name: field_value(field, given, uses_default=self._uses_default) for field in schema.fields}
        updated.update(self._inserted(record))
        return self.with_part(record, self._schemas.get(schema), updated)

    def _updated_schema(self, schema: DataSchema) -> DataSchema:
        fields = list(schema.fields)
        inserted = (
            (self._topic, STRING),
            (self._partition, INT32),
            (self._offset, INT64),
            (self._timestamp, TIMESTAMP),
            (self._static, STRING),
        )
        fields += [spec.field(kind) for spec, kind in inserted if spec is not None]
        return struct_like(schema, fields)

    def _inserted(self, record: ConnectRecord) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self._topic is not None:
            made[self._topic.name] = record.topic
        if self._partition is not None and record.partition is not None:
            made[self._partition.name] = record.partition
        if self._offset is not None:
            if not isinstance(record, SinkRecord):
                raise DataError(f"Only SinkRecord supported for [{self.purpose}]: a source record has no offset")
            made[self._offset.name] = record.offset
        if self._timestamp is not None and record.timestamp is not None:
            made[self._timestamp.name] = record.timestamp
        if self._static is not None:
            made[self._static.name] = self._static_value
        return made


class InsertFieldKey(_InsertField):
    """InsertField for keys."""

    is_key = True


class InsertFieldValue(_InsertField):
    """InsertField for values."""


class _ReplaceField(PartTransform):
    purpose = "field replacement"
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("exclude", ConfigType.LIST, "Fields to drop.", [], synonyms=("blacklist",)),
        Setting("include", ConfigType.LIST, "Fields to keep; all by default.", [], synonyms=("whitelist",)),
        Setting("renames", ConfigType.LIST, "Renamings, as old:new.", []),
        REPLACE_NULL,
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._exclude, self._include = frozenset(values["exclude"]), frozenset(values["include"])
        self._uses_default: bool = values["replace.null.with.default"]
        self._renames: dict[str, str] = {}
        for text in values["renames"]:
            old, colon, new = text.partition(":")
            if not colon or not old.strip() or not new.strip():
                raise ConfigError(
                    [f"Invalid value {text} for configuration renames: Invalid rename mapping, use old:new"]
                )
            self._renames[old.strip()] = new.strip()
        self._schemas = SchemaCache(self._updated_schema)

    def _is_kept(self, name: Any) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if value is None:
            return record
        renames = self._renames
        if schema is None:
            given = require_map(value, self.purpose)
            kept = {renames.get(name, name): one for name, one in given.items() if self._is_kept(name)}
            return self.with_part(record, None, kept)
        given = require_struct(schema, value, self.purpose)
        updated = {
            renames.get(field.name, field.name): field_value(field, given, uses_default=self._uses_default)
            for field in schema.fields
            if self._is_kept(field.name)
        }
        return self.with_part(record, self._schemas.get(schema), updated)

    def _updated_schema(self, schema: DataSchema) -> DataSchema:
        fields = [
            DataField(self._renames.get(field.name, field.name), field.schema)
            for field in schema.fields
            if self._is_kept(field.name)
        ]
        return struct_like(schema, fields)


class ReplaceFieldKey(_ReplaceField):
    """ReplaceField for keys."""

    is_key = True


class ReplaceFieldValue(_ReplaceField):
    """ReplaceField for values."""


class _HoistField(PartTransform):
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("field", ConfigType.STRING, "The field that the whole becomes.", importance=Importance.MEDIUM)
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        self._field: str = self.config_def.parse(settings)["field"]
        self._schemas = SchemaCache(lambda schema: struct({self._field: schema}))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        updated = None if schema is None else self._schemas.get(schema)
        return self.with_part(record, updated, {self._field: value})


class HoistFieldKey(_HoistField):
    """HoistField for keys."""

    is_key = True


class HoistFieldValue(_HoistField):
    """HoistField for values."""


class _ExtractField(PartTransform):
    purpose = "field extraction"
    config_def: ClassVar[ConfigDef] = ConfigDef(
        Setting("field", ConfigType.STRING, "The field to take out.", importance=Importance.MEDIUM),
        Setting(
            "field.syntax.version",
            ConfigType.STRING,
            "V1: a name; V2: a path with dots, names with dots in backticks.",
            "V1",
            one_of("V1", "V2"),
        ),
        REPLACE_NULL,
    )

    def configure(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse(settings)
        self._name: str = values["field"]
        self._path = FieldPath(self._name, is_nested=values["field.syntax.version"] == "V2")
        self._uses_default: bool = values["replace.null.with.default"]

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.part(record)
        if schema is None:
            found = None if value is None else self._path.in_map(require_map(value, self.purpose))
            return self.with_part(record, None, found)
        field = self._path.in_schema(schema)
        if field is None:
            raise DataError(f"Unknown field: {self._name}")
        given = None if value is None else require_struct(schema, value, self.purpose)
        found = None if given is None else self._path.in_struct(schema, given, uses_default=self._uses_default)
        return self.with_part(record, field.schema, found)


class ExtractFieldKey(_ExtractField):
    """ExtractField for keys."""

    is_key = True


class ExtractFieldValue(_ExtractField):
    """ExtractField for values."""
