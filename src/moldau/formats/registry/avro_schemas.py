"""Avro schemas as data schemas, and the Avro schema that columns are registered with. Start at `avro_data_schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.registry import data_schema as logical
from moldau.formats.registry.data_schema import NO_DEFAULT, Budget, DataField, DataSchema, Kind, decimal_schema
from moldau.formats.registry.inference import DEFAULT_PRECISION
from moldau.formats.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
    StructType,
)
from moldau.schemas.avro.types import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union
from moldau.schemas.json_text import render

__all__ = [
    "DEFAULT_FULL_NAME",
    "NAMESPACE",
    "avro_data_schema",
    "avro_text_of",
    "branches_of",
    "is_map_entries",
    "key_full_name",
    "nullable",
]

NAMESPACE: Final = "io.confluent.ksql.avro_schemas"
DEFAULT_FULL_NAME: Final = f"{NAMESPACE}.KsqlDataSourceSchema"
UNION_NAME: Final = "io.confluent.connect.avro.Union"
ENTRY: Final = {"connect.internal.type": "MapEntry"}


def key_full_name(source: str) -> str:
    """The name of the record that is the key of a source's topic."""
    words = "".join(word.capitalize() for word in source.replace("-", "_").split("_"))
    return f"{NAMESPACE}.{words}Key"


# From Avro

_PRIMITIVES: Final[Mapping[str, Kind]] = {
    "boolean": Kind.BOOLEAN,
    "int": Kind.INT32,
    "long": Kind.INT64,
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "bytes": Kind.BYTES,
    "string": Kind.STRING,
}
_LOGICAL: Final[Mapping[tuple[str, str], str]] = {
    ("int", "date"): logical.DATE,
    ("int", "time-millis"): logical.TIME,
    ("long", "timestamp-millis"): logical.TIMESTAMP,
}
_BY_CONNECT_TYPE: Final[Mapping[Any, Kind]] = {"int8": Kind.INT8, "int16": Kind.INT16}


def avro_data_schema(avro_type: AvroType) -> DataSchema:
    """The data schema of an Avro schema; raises `FormatError` for recursive ones, and for nulls alone."""
    return _data_schema(avro_type, _Above(frozenset(), Budget()))


class _Above(NamedTuple):
    records: frozenset[int]
    """The records that a type is inside of, by identity."""

    budget: Budget


def _data_schema(avro_type: AvroType, above: _Above, default: Any = NO_DEFAULT) -> DataSchema:
    above.budget.spend()
    null, branches = branches_of(avro_type)
    if isinstance(avro_type, Union) and len(branches) != 1:
        fields = tuple(DataField(branch_field(one), _optional(_data_schema(one, above))) for one in branches)
        return DataSchema(Kind.STRUCT, null, UNION_NAME, fields=fields)
    if not branches:
        raise FormatError("Avro schema 'null' has no values that a column could hold")
    found = _of_one(branches[0], above)
    return DataSchema(found.kind, null, found.name, found.version, found.parameters, default, found.doc, *_parts(found))


def _parts(schema: DataSchema) -> tuple[Any, Any, Any]:
    return schema.fields, schema.key, schema.value


def _optional(schema: DataSchema) -> DataSchema:
    return DataSchema(
        schema.kind, True, schema.name, schema.version, schema.parameters, NO_DEFAULT, schema.doc, *_parts(schema)
    )


def _of_one(avro_type: AvroType, above: _Above) -> DataSchema:
    match avro_type:
        case Primitive(kind, properties):
            return _of_primitive(kind, properties)
        case Fixed():
            scale = _decimal_scale(avro_type.properties)
            return DataSchema(Kind.BYTES, name=avro_type.full_name) if scale is None else scale
        case Enum():
            return DataSchema(Kind.STRING, name=avro_type.full_name)
        case Array() if is_map_entries(avro_type):
            key, value = _entry_types(avro_type)
            return DataSchema(Kind.MAP, key=_data_schema(key, above), value=_data_schema(value, above))
        case Array():
            return DataSchema(Kind.ARRAY, value=_data_schema(avro_type.items, above))
        case Map():
            return DataSchema(Kind.MAP, key=DataSchema(Kind.STRING), value=_data_schema(avro_type.values, above))
        case Record():
            return _of_record(avro_type, above)
    raise FormatError(f"Avro type {avro_type.kind} cannot be a column")


def _of_record(record: Record, above: _Above) -> DataSchema:
    if id(record) in above.records:
        raise FormatError(f"Avro record {record.full_name} contains itself: recursive types cannot be columns")
    inside = _Above(above.records | {id(record)}, above.budget)
    fields = tuple(
        DataField(field.name, _data_schema(field.type, inside, field.default if field.has_default else NO_DEFAULT))
        for field in record.fields
    )
    version, parameters = _connect_properties(record.properties)
    return DataSchema(Kind.STRUCT, False, record.full_name, version, parameters, NO_DEFAULT, record.doc, fields)


def _connect_properties(properties: Mapping[str, Any]) -> tuple[int | None, dict[str, str]]:
    """The version and the parameters that Connect's converter wrote beside a type."""
    version, parameters = properties.get("connect.version"), properties.get("connect.parameters")
    return (
        version if isinstance(version, int) else None,
        {str(key): str(value) for key, value in parameters.items()} if isinstance(parameters, Mapping) else {},
    )


def _of_primitive(kind: str, properties: Mapping[str, Any]) -> DataSchema:
    if kind == "bytes":
        decimal = _decimal_scale(properties)
        if decimal is not None:
            return decimal
    name = _LOGICAL.get((kind, str(properties.get("logicalType")))) or properties.get("connect.name")
    found = (
        _BY_CONNECT_TYPE.get(properties.get("connect.type"), _PRIMITIVES[kind]) if kind == "int" else _PRIMITIVES[kind]
    )
    version, parameters = _connect_properties(properties)
    return DataSchema(found, False, name if isinstance(name, str) else None, version, parameters)


def _decimal_scale(properties: Mapping[str, Any]) -> DataSchema | None:
    if properties.get("logicalType") != "decimal" and properties.get("connect.name") != logical.DECIMAL:
        return None
    parameters = properties.get("connect.parameters")
    given = parameters if isinstance(parameters, Mapping) else {}
    precision = properties.get("precision", given.get("connect.decimal.precision", DEFAULT_PRECISION))
    return decimal_schema(int(precision), int(properties.get("scale", given.get("scale", 0))))


def branches_of(avro_type: AvroType) -> tuple[bool, list[AvroType]]:
    """Whether null is allowed, and the other types a value may have."""
    branches = list(avro_type.branches) if isinstance(avro_type, Union) else [avro_type]
    others = [one for one in branches if not (isinstance(one, Primitive) and one.kind == "null")]
    return len(others) < len(branches), others


def branch_field(avro_type: AvroType) -> str:
    """The field that stands for a branch of a union: the type's name without its namespace."""
    if isinstance(avro_type, Record | Enum | Fixed):
        return avro_type.full_name.rpartition(".")[2]
    return avro_type.kind


def is_map_entries(avro_type: AvroType) -> bool:
    """Whether an array is a map in Connect's form for keys that may be null: records of key and value."""
    if not isinstance(avro_type, Array) or not isinstance(avro_type.items, Record):
        return False
    record = avro_type.items
    is_marked = record.properties.get("connect.internal.type") == "MapEntry"
    is_marked = is_marked or record.full_name == "io.confluent.connect.avro.MapEntry"
    return is_marked and [field.name for field in record.fields] == ["key", "value"]


def _entry_types(entries: Array) -> tuple[AvroType, AvroType]:
    assert isinstance(entries.items, Record)
    key, value = entries.items.fields
    return key.type, value.type


# To Avro


def nullable(avro: Any) -> list[Any]:
    return ["null", avro]


def avro_text_of(columns: tuple[Column, ...], *, is_bare: bool, full_name: str | None) -> str:
    """The schema under which rows of these columns are registered."""
    name = full_name or DEFAULT_FULL_NAME
    if is_bare:
        return render(_avro(columns[0].type, name))
    return render(_record(name, [(column.name, column.type) for column in columns]))


def _record(name: str, fields: list[tuple[str, SqlType]]) -> dict[str, Any]:
    written = [
        {"name": field, "type": nullable(_avro(sql_type, f"{name}_{field}")), "default": None}
        for field, sql_type in fields
    ]
    return {"type": "record", **_name_parts(name), "fields": written, "connect.name": name}


def _name_parts(name: str) -> dict[str, str]:
    namespace, _, simple = name.rpartition(".")
    return {"name": simple, "namespace": namespace} if namespace else {"name": simple}


def _avro(sql_type: SqlType, name: str) -> Any:
    match sql_type:
        case DecimalType(precision, scale):
            return {
                "type": "bytes",
                "scale": scale,
                "precision": precision,
                "connect.version": 1,
                "connect.parameters": dict(decimal_schema(precision, scale).parameters),
                "connect.name": logical.DECIMAL,
                "logicalType": "decimal",
            }
        case ArrayType(element):
            return {"type": "array", "items": nullable(_avro(element, name))}
        case MapType(_, value):
            fields = [
                {"name": "key", "type": nullable("string"), "default": None},
                {"name": "value", "type": nullable(_avro(value, f"{name}_MapValue")), "default": None},
            ]
            return {"type": "array", "items": {"type": "record", **_name_parts(name), "fields": fields, **ENTRY}}
        case StructType(fields):
            return _record(name, [(field.name, field.type) for field in fields])
    return _SIMPLE[sql_type]


def _time_schema(kind: str, connect_name: str, logical_type: str) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": connect_name, "logicalType": logical_type}


_SIMPLE: Final[Mapping[SqlType, Any]] = {
    BOOLEAN: "boolean",
    INTEGER: "int",
    BIGINT: "long",
    DOUBLE: "double",
    STRING: "string",
    BYTES: "bytes",
    DATE: _time_schema("int", logical.DATE, "date"),
    TIME: _time_schema("int", logical.TIME, "time-millis"),
    TIMESTAMP: _time_schema("long", logical.TIMESTAMP, "timestamp-millis"),
}
