"""Records as rows: which columns they have, and the values as the drivers take them. Start at `RowMaker`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from moldau.connect.api.errors import ConnectError
from moldau.connect.api.records import SinkRecord
from moldau.connect.api.schemas import DATE_NAME, INT32, INT64, STRING, TIME_NAME, TIMESTAMP_NAME, DataSchema, Kind
from moldau.connect.connectors.jdbc.database import Database
from moldau.formats.registry.data_schema import NO_DEFAULT

__all__ = ["Field", "Row", "RowMaker"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
KAFKA_FIELDS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True, slots=True)
class Field:
    """A column to write."""

    name: str
    schema: DataSchema
    is_key: bool


@dataclass(slots=True)
class Row:
    """A row to write or delete."""

    table: tuple[str, ...]
    shape: Shape
    key_values: tuple[Any, ...]
    values: tuple[Any, ...]
    is_delete: bool = False

    @property
    def key_names(self) -> tuple[str, ...]:
        return self.shape.key_names

    @property
    def value_names(self) -> tuple[str, ...]:
        return self.shape.value_names

    def may_follow(self, other: Row) -> bool:
        """Whether the row fits into one statement with another."""
        return self.table == other.table and self.shape is other.shape and self.is_delete == other.is_delete


@dataclass(slots=True)
class Shape:
    """The columns that records with one pair of schemas have."""

    keys: list[Field]
    fields: list[Field]
    schemas: tuple[DataSchema | None, DataSchema | None]
    """Kept, because shapes are found by the schemas' identities."""

    key_names: tuple[str, ...] = field(init=False)
    value_names: tuple[str, ...] = field(init=False)

    is_plain: bool = field(init=False, default=False)
    """Whether all values go to the driver as they are."""

    def __post_init__(self) -> None:
        self.key_names = tuple(one.name for one in self.keys)
        self.value_names = tuple(one.name for one in self.fields)


class RowMaker:
    """Makes rows as the settings say; raises `ConnectError` for records that cannot be rows."""

    def __init__(self, values: Mapping[str, Any], database: Database) -> None:
        self._format: str = values["table.name.format"]
        self._pk_mode: str = values["pk.mode"].lower()
        self._pk_fields: list[str] = values["pk.fields"]
        self._chosen = frozenset(values["fields.whitelist"])
        self._deletes: bool = values["delete.enabled"]
        self._database = database
        self._shapes: dict[tuple[int, int, bool], Shape] = {}
        self._tables: dict[str, tuple[str, ...]] = {}
        self._convert = _converters(database)

    def row(self, record: SinkRecord) -> Row | None:
        """The row of a record; None for a null value that means nothing."""
        if record.value is None:
            return self._deletion(record)
        shape = self._shape(record)
        value = self._struct(record)
        if shape.is_plain:
            values = tuple(map(value.get, shape.value_names))
            return Row(self.table_of(record.topic), shape, self._keys(record, shape), values)
        keys = tuple(
            self._value(one.schema, found) for one, found in zip(shape.keys, self._keys(record, shape), strict=True)
        )
        values = tuple(self._value(one.schema, value.get(one.name)) for one in shape.fields)
        return Row(self.table_of(record.topic), shape, keys, values)

    def table_of(self, topic: str) -> tuple[str, ...]:
        """The table of a topic: its name, with a schema before it if the format has one."""
        found = self._tables.get(topic)
        if found is None:
            # A dot in the topic's name is part of the name; one in the format divides schema and table.
            found = tuple(part.replace("${topic}", topic) for part in self._format.split("."))
            self._tables[topic] = found
        return found

    def _deletion(self, record: SinkRecord) -> Row | None:
        if not self._deletes:
            raise ConnectError(
                f"{_where(record)} has a null value; set delete.enabled=true with pk.mode=record_key to delete its "
                "row, or filter such records out"
            )
        shape = self._shape(record)
        keys = tuple(
            self._value(one.schema, found) for one, found in zip(shape.keys, self._keys(record, shape), strict=True)
        )
        return Row(self.table_of(record.topic), shape, keys, (), is_delete=True)

    def _struct(self, record: SinkRecord) -> Mapping[str, Any]:
        schema = record.value_schema
        if schema is None or schema.kind is not Kind.STRUCT or not isinstance(record.value, Mapping):
            raise ConnectError(
                f"{_where(record)}: the sink needs values that are structs with a schema; use a converter with schemas "
                "(JsonConverter with schemas.enable=true, AvroConverter, …)"
            )
        return record.value

    def _shape(self, record: SinkRecord) -> Shape:
        identity = (id(record.key_schema), id(record.value_schema), record.value is None)
        found = self._shapes.get(identity)
        if found is None:
            if len(self._shapes) > 1000:
                self._shapes.clear()
            found = self._shapes[identity] = self._new_shape(record)
        return found

    def _new_shape(self, record: SinkRecord) -> Shape:
        keys = self._key_fields(record)
        names = {one.name for one in keys}
        fields = []
        schema = record.value_schema
        if schema is not None and record.value is not None:
            self._struct(record)
            for one in schema.fields:
                if one.name not in names and (not self._chosen or one.name in self._chosen):
                    _check_type(one.name, one.schema)
                    fields.append(Field(one.name, one.schema, False))
        shape = Shape(keys, fields, (record.key_schema, schema))
        shape.is_plain = all(
            one.schema.default is NO_DEFAULT and (one.schema.name or "") not in self._convert
            for one in (*keys, *fields)
        )
        return shape

    def _key_fields(self, record: SinkRecord) -> list[Field]:
        match self._pk_mode:
            case "kafka":
                names = self._pk_fields or list(KAFKA_FIELDS)
                if len(names) != 3:
                    raise ConnectError("pk.mode=kafka needs three names in pk.fields: for topic, partition and offset")
                return [Field(name, kind, True) for name, kind in zip(names, (STRING, INT32, INT64), strict=True)]
            case "record_key":
                return self._fields_of(record.key_schema, record, "key")
            case "record_value":
                return self._fields_of(record.value_schema, record, "value")
        return []

    def _fields_of(self, schema: DataSchema | None, record: SinkRecord, part: str) -> list[Field]:
        if schema is None:
            raise ConnectError(f"{_where(record)}: pk.mode=record_{part} needs a {part} with a schema")
        if schema.kind is not Kind.STRUCT:
            if len(self._pk_fields) != 1:
                raise ConnectError(
                    f"{_where(record)}: the {part} is a {schema.kind.value}; pk.fields must name one column for it"
                )
            return [Field(self._pk_fields[0], schema, True)]
        known = {one.name: one.schema for one in schema.fields}
        missing = [name for name in self._pk_fields if name not in known]
        if missing:
            raise ConnectError(
                f"{_where(record)}: the {part} has no field {', '.join(missing)}; it has {', '.join(known)}"
            )
        return [Field(name, known[name], True) for name in self._pk_fields or known]

    def _keys(self, record: SinkRecord, shape: Shape) -> tuple[Any, ...]:
        match self._pk_mode:
            case "kafka":
                origin = record.topic_partition
                return origin.topic, origin.partition, record.offset
            case "record_key":
                return _picked(record.key, record.key_schema, shape)
            case "record_value":
                return _picked(record.value, record.value_schema, shape)
        return ()

    def _value(self, schema: DataSchema, value: Any) -> Any:
        if value is None and schema.default is not NO_DEFAULT:
            value = schema.default
        if value is None:
            return None
        convert = self._convert.get(schema.name or "")
        return value if convert is None else convert(value)


def _picked(value: Any, schema: DataSchema | None, shape: Shape) -> tuple[Any, ...]:
    if value is None:
        raise ConnectError("a record without a key cannot be written: pk.mode=record_key needs a key")
    if schema is not None and schema.kind is Kind.STRUCT:
        return tuple(map(value.get, shape.key_names))
    return (value,)


def _where(record: SinkRecord) -> str:
    return f"record {record.topic_partition}@{record.offset}"


def _check_type(name: str, schema: DataSchema) -> None:
    if schema.kind in (Kind.ARRAY, Kind.MAP, Kind.STRUCT):
        raise ConnectError(
            f"field {name} is of type {schema.kind.value}, which no column holds; flatten it (transform Flatten), or "
            "leave it out with fields.whitelist"
        )


def _converters(database: Database) -> dict[str, Callable[[Any], Any]]:
    def moment(value: Any) -> Any:
        local = database.local(EPOCH + timedelta(milliseconds=value))
        return local.isoformat(" ", "milliseconds") if database.kind == "sqlite" else local

    def day(value: Any) -> Any:
        found = date(1970, 1, 1) + timedelta(days=value)
        return found.isoformat() if database.kind == "sqlite" else found

    def clock(value: Any) -> Any:
        found: time = (EPOCH + timedelta(milliseconds=value)).time()
        return found.isoformat("milliseconds") if database.kind == "sqlite" else found

    def number(value: Any) -> Any:
        return str(value) if isinstance(value, Decimal) and database.kind == "sqlite" else value

    return {
        TIMESTAMP_NAME: moment,
        DATE_NAME: day,
        TIME_NAME: clock,
        "org.apache.kafka.connect.data.Decimal": number,
    }
