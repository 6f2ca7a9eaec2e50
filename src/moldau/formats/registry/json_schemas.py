"""JSON Schemas as data schemas, and the JSON Schema that columns are registered with.

Follows Connect's mapping: its keys "connect.type", "connect.index" and "title" say what JSON's own types cannot.
Start at `json_data_schema`; `json_schema_text_of` is the other direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.registry import data_schema as logical
from moldau.formats.registry.data_schema import Budget, DataField, DataSchema, Kind, decimal_schema
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
from moldau.schemas.json_schema.places import Place
from moldau.schemas.json_schema.schema import JsonSchema
from moldau.schemas.json_text import render

__all__ = ["json_data_schema", "json_schema_text_of"]

ONE_OF: Final = "io.confluent.connect.json.OneOf"
MAX_DEPTH: Final = 100

_CONNECT_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "integer": frozenset({"int8", "int16", "int32", "int64"}),
    "number": frozenset({"float32", "float64", "bytes"}),
    "string": frozenset({"bytes", "string"}),
}
_KINDS: Final = {
    "integer": Kind.INT64,
    "number": Kind.FLOAT64,
    "string": Kind.STRING,
    "boolean": Kind.BOOLEAN,
    "array": Kind.ARRAY,
    "object": Kind.STRUCT,
}


def json_data_schema(schema: JsonSchema) -> DataSchema:
    """The data schema of a JSON Schema; raises `FormatError` for a recursive one, or one without types."""
    return _data_schema(schema.root, Budget(), 0)


def _data_schema(place: Place, budget: Budget, depth: int) -> DataSchema:
    budget.spend()
    if depth > MAX_DEPTH:
        raise FormatError(f"The JSON Schema is recursive or nested more than {MAX_DEPTH} levels deep")
    if place.reference is not None:
        return _data_schema(place.target(), budget, depth + 1)
    raw = place.raw
    if not isinstance(raw, dict):
        raise FormatError("A JSON Schema that is true or false gives its values no type")
    for combination in ("oneOf", "anyOf"):
        if isinstance(raw.get(combination), list):
            return _of_choice([place.inner(one) for one in raw[combination]], budget, depth)
    if isinstance(raw.get("allOf"), list):
        return _of_all(place, budget, depth)
    names = raw.get("type")
    if isinstance(names, list):
        return _of_choice([place.inner({**raw, "type": name}) for name in names], budget, depth)
    if names is None:
        names = _implied_type(raw)
    return _of_type(names, place, budget, depth)


def _implied_type(raw: Mapping[str, Any]) -> str:
    if "properties" in raw or "additionalProperties" in raw:
        return "object"
    if "items" in raw:
        return "array"
    if "enum" in raw or "const" in raw:
        return "string"
    raise FormatError("A JSON Schema without a type gives its values no type")


def _of_choice(places: list[Place], budget: Budget, depth: int) -> DataSchema:
    others = [one for one in places if not (isinstance(one.raw, dict) and one.raw.get("type") == "null")]
    is_optional = len(others) < len(places)
    if len(others) == 1:
        return replace(_data_schema(others[0], budget, depth + 1), is_optional=is_optional)
    fields = tuple(
        DataField(f"{ONE_OF}.field.{index}", replace(_data_schema(one, budget, depth + 1), is_optional=True))
        for index, one in enumerate(others)
    )
    if not fields:
        raise FormatError("A JSON Schema that only allows null gives its values no type")
    return DataSchema(Kind.STRUCT, is_optional, ONE_OF, fields=fields)


def _of_all(place: Place, budget: Budget, depth: int) -> DataSchema:
    """All of several schemas: the fields of all objects, or the one that has a type."""
    own = {key: value for key, value in place.raw.items() if key != "allOf"}
    parts = [place.inner(one) for one in place.raw["allOf"]]
    if "type" in own or "properties" in own:
        parts.append(place.inner(own))
    found = []
    for part in parts:
        try:
            found.append(_data_schema(part, budget, depth + 1))
        except FormatError:
            # A part that only restricts values, such as a pattern, has no type of its own.
            continue
    if not found:
        raise FormatError("A JSON Schema without a type gives its values no type")
    structs = [one for one in found if one.kind is Kind.STRUCT]
    if not structs:
        return found[0]
    fields = {field.name: field for one in structs for field in one.fields}
    return replace(structs[0], fields=tuple(fields.values()))


def _of_type(name: Any, place: Place, budget: Budget, depth: int) -> DataSchema:
    raw: Mapping[str, Any] = place.raw
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise FormatError(f"JSON Schema type {name} cannot be a column")
    title, connect_type = raw.get("title"), raw.get("connect.type")
    logical_name = title if isinstance(title, str) else None
    match kind:
        case Kind.ARRAY if connect_type == "map":
            entry = _data_schema(place.inner(raw.get("items", {})), budget, depth + 1)
            by_name = {field.name: field.schema for field in entry.fields}
            return DataSchema(Kind.MAP, key=by_name.get("key"), value=by_name.get("value"))
        case Kind.ARRAY:
            items = raw.get("items")
            if not isinstance(items, dict):
                raise FormatError("A JSON Schema for arrays needs one schema for all items")
            return DataSchema(Kind.ARRAY, value=_data_schema(place.inner(items), budget, depth + 1))
        case Kind.STRUCT:
            return _of_object(place, budget, depth)
    if logical_name == logical.DECIMAL:
        parameters = raw.get("connect.parameters")
        given = parameters if isinstance(parameters, Mapping) else {}
        return decimal_schema(int(given.get("connect.decimal.precision", 64)), int(given.get("scale", 0)))
    if connect_type in _CONNECT_KINDS.get(str(name), ()):
        kind = Kind(connect_type)
    return DataSchema(kind, name=logical_name)


def _of_object(place: Place, budget: Budget, depth: int) -> DataSchema:
    raw = place.raw
    properties, others = raw.get("properties"), raw.get("additionalProperties")
    if raw.get("connect.type") == "map" or (not properties and isinstance(others, dict)):
        inner = others if isinstance(others, dict) else {"type": "string"}
        return DataSchema(
            Kind.MAP, key=DataSchema(Kind.STRING), value=_data_schema(place.inner(inner), budget, depth + 1)
        )
    required = raw.get("required") if isinstance(raw.get("required"), list) else []
    indexed = [
        (value.get("connect.index", index) if isinstance(value, dict) else index, name, value)
        for index, (name, value) in enumerate((properties or {}).items())
    ]
    fields = []
    for _, name, value in sorted(indexed, key=lambda one: one[0] if isinstance(one[0], int) else 0):
        found = _data_schema(place.inner(value), budget, depth + 1)
        fields.append(DataField(name, found if name in required else replace(found, is_optional=True)))
    title = raw.get("title")
    return DataSchema(Kind.STRUCT, name=title if isinstance(title, str) else None, fields=tuple(fields))


# To JSON Schema


def json_schema_text_of(columns: tuple[Column, ...], *, is_bare: bool, full_name: str | None) -> str:
    """The schema under which rows of these columns are registered."""
    if is_bare:
        return render(_nullable(_json_schema(columns[0].type)))
    named = {} if full_name is None else {"title": full_name}
    return render({**_object([(column.name, column.type) for column in columns]), **named})


def _nullable(schema: Any) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, schema]}


def _object(fields: list[tuple[str, SqlType]]) -> dict[str, Any]:
    properties = {
        name: {"connect.index": index, **_nullable(_json_schema(sql_type))}
        for index, (name, sql_type) in enumerate(fields)
    }
    return {"type": "object", "properties": properties}


def _json_schema(sql_type: SqlType) -> Any:
    match sql_type:
        case DecimalType(precision, scale):
            parameters = dict(decimal_schema(precision, scale).parameters)
            return {
                "type": "number",
                "title": logical.DECIMAL,
                "connect.version": 1,
                "connect.type": "bytes",
                "connect.parameters": parameters,
            }
        case ArrayType(element):
            return {"type": "array", "items": _nullable(_json_schema(element))}
        case MapType(_, value):
            return {"type": "object", "connect.type": "map", "additionalProperties": _nullable(_json_schema(value))}
        case StructType(fields):
            return _object([(field.name, field.type) for field in fields])
    return _SIMPLE[sql_type]


def _time_schema(connect_type: str, title: str) -> dict[str, Any]:
    return {"type": "integer", "title": title, "connect.version": 1, "connect.type": connect_type}


_SIMPLE: Final[Mapping[SqlType, Any]] = {
    BOOLEAN: {"type": "boolean"},
    INTEGER: {"type": "integer", "connect.type": "int32"},
    BIGINT: {"type": "integer", "connect.type": "int64"},
    DOUBLE: {"type": "number", "connect.type": "float64"},
    STRING: {"type": "string"},
    BYTES: {"type": "string", "connect.type": "bytes"},
    DATE: _time_schema("int32", logical.DATE),
    TIME: _time_schema("int32", logical.TIME),
    TIMESTAMP: _time_schema("int64", logical.TIMESTAMP),
}
