"""What transforms share: a part of a record, schemas that are made once. Start at `PartTransform`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from moldau.connect.api.config_def import ConfigType, Importance, Setting
from moldau.connect.api.errors import DataError
from moldau.connect.api.plugin_kinds import Transformation
from moldau.connect.api.records import ConnectRecord
from moldau.formats.registry.data_schema import NO_DEFAULT, DataField, DataSchema, Kind

__all__ = [
    "REPLACE_NULL",
    "PartTransform",
    "SchemaCache",
    "field_value",
    "get_field",
    "require_map",
    "require_struct",
    "struct_like",
]

REPLACE_NULL: Final = Setting(
    "replace.null.with.default",
    ConfigType.BOOLEAN,
    "Whether a null stands for the default of its field.",
    True,
    importance=Importance.MEDIUM,
)


class SchemaCache:
    """What was made of a schema, by the schema's identity; the schema is kept, so that its identity stays its own."""

    def __init__(self, make: Callable[[DataSchema], DataSchema], size: int = 1000) -> None:
        self._make = make
        self._size = size
        self._made: dict[int, tuple[DataSchema, DataSchema]] = {}

    def get(self, schema: DataSchema) -> DataSchema:
        found = self._made.get(id(schema))
        if found is None:
            if len(self._made) >= self._size:
                self._made.clear()
            found = self._made[id(schema)] = (schema, self._make(schema))
        return found[1]


class PartTransform(Transformation):
    """A transform of a record's key or value."""

    is_key: ClassVar[bool] = False
    purpose: ClassVar[str] = ""
    """For messages: what it does."""

    def part(self, record: ConnectRecord) -> tuple[DataSchema | None, Any]:
        """The schema and the value it works on."""
        return (record.key_schema, record.key) if self.is_key else (record.value_schema, record.value)

    def with_part(self, record: ConnectRecord, schema: DataSchema | None, value: Any, **more: Any) -> ConnectRecord:
        """The record with another schema and value."""
        if self.is_key:
            return record.changed(key_schema=schema, key=value, **more)
        return record.changed(value_schema=schema, value=value, **more)

    @abstractmethod
    def apply(self, record: ConnectRecord) -> ConnectRecord | None: ...


def require_map(value: Any, purpose: str) -> Mapping[Any, Any]:
    """The value, if it is a map; raises `DataError`."""
    if isinstance(value, Mapping):
        return value
    raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {_kind_name(value)}")


def require_struct(schema: DataSchema, value: Any, purpose: str) -> Mapping[str, Any]:
    """The value, if it is a struct; raises `DataError`."""
    if schema.kind is Kind.STRUCT and isinstance(value, Mapping):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {_kind_name(value)}")


def _kind_name(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def get_field(schema: DataSchema, name: str) -> DataField | None:
    """A field of a struct's schema, None if it has none of that name."""
    return next((field for field in schema.fields if field.name == name), None)


def field_value(field: DataField, value: Mapping[str, Any], *, uses_default: bool = True) -> Any:
    """A field of a struct, or its default where there is none."""
    found = value.get(field.name)
    if found is None and uses_default and field.schema.default is not NO_DEFAULT:
        return field.schema.default
    return found


def struct_like(schema: DataSchema, fields: list[DataField]) -> DataSchema:
    """A struct with other fields and the name, version, doc and parameters of a schema; never optional."""
    names = [field.name for field in fields]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise DataError(f"Cannot create field because of field name duplication {', '.join(sorted(doubled))}")
    return replace(schema, fields=tuple(fields), is_optional=False, default=NO_DEFAULT)
