"""The schema half of Connect's JSON envelope: schemas to and from JSON objects.

Start at `schema_to_json` and `schema_from_json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.connect.api.errors import DataError
from moldau.formats.registry.data_schema import NO_DEFAULT, DataField, DataSchema, Kind

__all__ = ["schema_from_json", "schema_to_json"]

TYPE_NAMES: Final[Mapping[Kind, str]] = {
    **{kind: kind.value for kind in Kind},
    Kind.FLOAT32: "float",
    Kind.FLOAT64: "double",
}
KINDS: Final[Mapping[str, Kind]] = {name: kind for kind, name in TYPE_NAMES.items()}
DEEPEST: Final = 100

ValueToJson = Callable[[DataSchema, Any], Any]


def schema_to_json(schema: DataSchema | None, value_to_json: ValueToJson) -> dict[str, Any] | None:
    """A schema as a JSON object, its keys in the order that Kafka's converter gives them."""
    if schema is None:
        return None
    made: dict[str, Any] = {"type": TYPE_NAMES[schema.kind]}
    match schema.kind:
        case Kind.ARRAY:
            made["items"] = schema_to_json(schema.element, value_to_json)
        case Kind.MAP:
            made["keys"] = schema_to_json(schema.key, value_to_json)
            made["values"] = schema_to_json(schema.element, value_to_json)
        case Kind.STRUCT:
            made["fields"] = [
                {**(schema_to_json(field.schema, value_to_json) or {}), "field": field.name} for field in schema.fields
            ]
    made["optional"] = schema.is_optional
    if schema.name is not None:
        made["name"] = schema.name
    if schema.version is not None:
        made["version"] = schema.version
    if schema.doc is not None:
        made["doc"] = schema.doc
    if schema.parameters:
        made["parameters"] = dict(schema.parameters)
    if schema.default is not NO_DEFAULT and schema.default is not None:
        made["default"] = value_to_json(schema, schema.default)
    return made


def schema_from_json(given: Any, value_from_json: ValueToJson, depth: int = 0) -> DataSchema | None:
    """The schema that a JSON object describes; raises `DataError`."""
    if given is None:
        return None
    if depth > DEEPEST:
        raise DataError(f"the schema is nested more than {DEEPEST} levels deep")
    type_name = given.get("type") if isinstance(given, dict) else None
    if not isinstance(type_name, str):
        raise DataError("Schema must contain 'type' field")
    if type_name not in KINDS:
        raise DataError(f"Unknown schema type: {type_name}; known are {', '.join(KINDS)}")
    kind = KINDS[type_name]
    parts = _parts(kind, given, value_from_json, depth + 1)
    made = DataSchema(
        kind,
        _typed(given, "optional", bool) or False,
        _typed(given, "name", str),
        _typed(given, "version", int),
        _parameters(given),
        NO_DEFAULT,
        _typed(given, "doc", str),
        *parts,
    )
    if given.get("default") is None:
        return made
    default = value_from_json(made, given["default"])
    return DataSchema(kind, made.is_optional, made.name, made.version, made.parameters, default, made.doc, *parts)


def _parts(kind: Kind, given: dict[str, Any], value_from_json: ValueToJson, depth: int) -> tuple[Any, Any, Any]:
    def inner(key: str) -> DataSchema:
        found = schema_from_json(given.get(key), value_from_json, depth)
        if found is None:
            raise DataError(f"{kind.value.capitalize()} schema did not specify the {key[:-1]} type")
        return found

    match kind:
        case Kind.ARRAY:
            return (), None, inner("items")
        case Kind.MAP:
            return (), inner("keys"), inner("values")
        case Kind.STRUCT:
            return _fields(given, value_from_json, depth), None, None
    return (), None, None


def _fields(given: dict[str, Any], value_from_json: ValueToJson, depth: int) -> tuple[DataField, ...]:
    listed = given.get("fields")
    if not isinstance(listed, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields = []
    for one in listed:
        name = one.get("field") if isinstance(one, dict) else None
        schema = schema_from_json(one, value_from_json, depth)
        if not isinstance(name, str) or schema is None:
            raise DataError("Struct schema's field name not specified properly")
        fields.append(DataField(name, schema))
    return tuple(fields)


def _typed(given: dict[str, Any], key: str, kind: type) -> Any:
    value = given.get(key)
    if value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
        return value
    raise DataError(f"Invalid schema: {key} must be of type {kind.__name__}, and is {value!r}")


def _parameters(given: dict[str, Any]) -> dict[str, str]:
    parameters = given.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict) or not all(isinstance(value, str) for value in parameters.values()):
        raise DataError("Schema parameters must be an object whose values are strings")
    return parameters
