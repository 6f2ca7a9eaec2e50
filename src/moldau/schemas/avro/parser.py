"""Parses JSON into Avro types, by the specification's rules as Java's library applies them.

Libraries' parsers (fastavro's, Apache's) are not used: they rewrite names, lose the order of attributes and
overflow the stack on deep nesting; a registry must store texts unchanged and survive any input.
Values are still encoded by fastavro. Start at `Parser.parse`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from moldau.schemas.avro.types import (
    PRIMITIVES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
    branch_name,
)
from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.json_text import Json, load, render

__all__ = ["Parser", "namespace_of"]

_NAME: Final = re.compile(r"[^\W\d]\w*")
_TYPE_ATTRIBUTES: Final = frozenset(
    {"aliases", "doc", "fields", "items", "name", "namespace", "size", "symbols", "type", "values"}
)
_ENUM_ATTRIBUTES: Final = _TYPE_ATTRIBUTES | {"default"}
_FIELD_ATTRIBUTES: Final = frozenset({"aliases", "default", "doc", "name", "order", "type"})
_JSON_WORDS: Final = frozenset({"null", "true", "false", "NaN", "Infinity"})
_ORDERS: Final = ("ascending", "descending", "ignore")


def namespace_of(full_name: str) -> str:
    """The part of a full name before its last dot, empty when there is none."""
    return full_name.rpartition(".")[0]


class Parser:
    """Parses schemas one after another; each may use the names that earlier ones defined."""

    def __init__(self, named: Mapping[str, Named] | None = None) -> None:
        self.named: dict[str, Named] = dict(named or {})
        self._namespace = ""
        self._places: list[str] = []

    def parse(self, text: str) -> AvroType:
        """Return the type that `text` describes; its named types are known to the next call."""
        schema = _load_json(text)
        self._namespace, self._places = "", []
        try:
            return self._type(schema)
        except RecursionError:
            raise InvalidSchemaError("the Avro schema is nested too deeply") from None

    def _type(self, schema: Json) -> AvroType:
        if isinstance(schema, str):
            return self._named_or_primitive(schema)
        if isinstance(schema, dict):
            return self._parse_described(schema)
        if isinstance(schema, list):
            return self._union(schema)
        raise self._invalid(f"{_brief(schema)} is not an Avro type; expected a name, an object or an array")

    def _type_at(self, place: str, schema: Json) -> AvroType:
        self._places.append(place)
        avro_type = self._type(schema)
        self._places.pop()
        return avro_type

    def _named_or_primitive(self, name: str, what: str = "unknown type") -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        qualified = f"{self._namespace}.{name}" if self._namespace and "." not in name else name
        known = self.named.get(qualified) or self.named.get(name)
        if known is None:
            raise self._invalid(f"{what} {qualified!r}: it is defined neither before its use nor by a reference")
        return known

    def _parse_described(self, schema: dict[str, Json]) -> AvroType:
        kind = schema.get("type")
        if not isinstance(kind, str):
            raise self._invalid('an object that describes a type needs "type" with the name of one')
        if kind in PRIMITIVES:
            return Primitive(kind, _properties(schema, _TYPE_ATTRIBUTES))
        match kind:
            case "record" | "error":
                return self._record(schema, is_error=kind == "error")
            case "enum":
                return self._enum(schema)
            case "fixed":
                return self._parse_fixed(schema)
            case "array":
                return Array(self._inner(schema, "items"), _properties(schema, _TYPE_ATTRIBUTES))
            case "map":
                return Map(self._inner(schema, "values"), _properties(schema, _TYPE_ATTRIBUTES))
        return self._named_or_primitive(kind)

    def _inner(self, schema: dict[str, Json], attribute: str) -> AvroType:
        if attribute not in schema:
            raise self._invalid(f"{schema['type']} needs {attribute!r}")
        return self._type_at(attribute, schema[attribute])

    def _union(self, schema: list[Json]) -> Union:
        branches: dict[str, AvroType] = {}
        for position, branch in enumerate(schema):
            branch_type = self._type_at(str(position), branch)
            if isinstance(branch_type, Union):
                raise self._invalid("a union may not hold another union directly")
            name = branch_name(branch_type)
            if name in branches:
                raise self._invalid(f"the union has {name!r} twice")
            branches[name] = branch_type
        return Union(tuple(branches.values()))

    def _record(self, schema: dict[str, Json], *, is_error: bool) -> Record:
        record = Record(self._full_name(schema), is_error=is_error)
        self._define(record)
        record.doc, record.aliases = _doc(schema), self._type_aliases(schema, record.full_name)
        record.properties = _properties(schema, _TYPE_ATTRIBUTES)
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise self._invalid(f'record {record.full_name!r} needs "fields", an array')
        outer, self._namespace = self._namespace, namespace_of(record.full_name)
        record.fields = self._fields(fields, record.full_name)
        self._namespace = outer
        return record

    def _fields(self, fields: list[Json], record_name: str) -> tuple[Field, ...]:
        by_name: dict[str, Field] = {}
        for position, schema in enumerate(fields):
            self._places.append(f"fields/{position}")
            field = self._field(schema)
            if field.name in by_name:
                raise self._invalid(f"record {record_name!r} has the field {field.name!r} twice")
            by_name[field.name] = field
            self._places.pop()
        return tuple(by_name.values())

    def _field(self, schema: Json) -> Field:
        if not isinstance(schema, dict):
            raise self._invalid(f"{_brief(schema)} is not a field; expected an object with name and type")
        name = self._checked_name(schema.get("name"), "field")
        if "type" not in schema:
            raise self._invalid(f"field {name!r} has no type")
        field_type = self._type_at("type", schema["type"])
        order = schema.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise self._invalid(f"field {name!r} has the order {_brief(order)}; known are {', '.join(_ORDERS)}")
        return Field(
            name,
            field_type,
            has_default="default" in schema,
            default=schema.get("default"),
            order=order.lower(),
            doc=_doc(schema),
            aliases=self._aliases(schema, f"field {name!r}"),
            properties=_properties(schema, _FIELD_ATTRIBUTES),
        )

    def _enum(self, schema: dict[str, Json]) -> Enum:
        full_name = self._full_name(schema)
        symbols = schema.get("symbols")
        if not isinstance(symbols, list):
            raise self._invalid(f'enum {full_name!r} needs "symbols", an array')
        seen: set[str] = set()
        for symbol in symbols:
            checked = self._checked_name(symbol, f"enum {full_name!r}: symbol")
            if checked in seen:
                raise self._invalid(f"enum {full_name!r} has the symbol {checked!r} twice")
            seen.add(checked)
        default = schema.get("default")
        if default is not None and (not isinstance(default, str) or default not in seen):
            raise self._invalid(
                f"enum {full_name!r} has the default {_brief(default)}, which is not one of its symbols"
            )
        properties = _properties(schema, _ENUM_ATTRIBUTES)
        aliases = self._type_aliases(schema, full_name)
        enum = Enum(full_name, tuple(symbols), default, _doc(schema), aliases, properties)
        self._define(enum)
        return enum

    def _parse_fixed(self, schema: dict[str, Json]) -> Fixed:
        full_name, size = self._full_name(schema), schema.get("size")
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 2**31:
            raise self._invalid(f'fixed {full_name!r} needs "size", a whole number of bytes')
        aliases = self._type_aliases(schema, full_name)
        fixed = Fixed(full_name, size, _doc(schema), aliases, _properties(schema, _TYPE_ATTRIBUTES))
        self._define(fixed)
        return fixed

    def _define(self, named: Named) -> None:
        if named.full_name in self.named:
            raise self._invalid(f"{named.full_name!r} is defined twice")
        self.named[named.full_name] = named

    def _full_name(self, schema: dict[str, Json]) -> str:
        kind, name, namespace = schema["type"], schema.get("name"), schema.get("namespace", self._namespace)
        if not isinstance(name, str) or not name:
            raise self._invalid(f'{kind} needs "name", a text')
        if not isinstance(namespace, str):
            raise self._invalid(f"{kind} {name!r} has the namespace {_brief(namespace)}, which is not a string")
        full_name = name if "." in name else f"{namespace}.{name}" if namespace else name
        full_name = full_name.removeprefix(".")
        for part in full_name.split("."):
            self._checked_name(part, f"{kind} {full_name!r}: name")
        if full_name in PRIMITIVES:
            raise self._invalid(f"a {kind} may not be named after the primitive type {full_name!r}")
        return full_name

    def _checked_name(self, name: Json, what: str) -> str:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self._invalid(f"{what} {_brief(name)} is no Avro name: letters, digits and _, no digit first")
        return name

    def _type_aliases(self, schema: dict[str, Json], full_name: str) -> tuple[str, ...]:
        namespace = namespace_of(full_name)
        aliases = self._aliases(schema, repr(full_name))
        return tuple(f"{namespace}.{alias}" if namespace and "." not in alias else alias for alias in aliases)

    def _aliases(self, schema: dict[str, Json], what: str) -> tuple[str, ...]:
        aliases = schema.get("aliases", [])
        if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
            raise self._invalid(f"{what} has aliases that are no array of names")
        return tuple(dict.fromkeys(aliases))

    def _invalid(self, problem: str) -> InvalidSchemaError:
        where = f" (at /{'/'.join(self._places)})" if self._places else ""
        return InvalidSchemaError(f"Invalid Avro schema: {problem}{where}")


def _properties(schema: dict[str, Json], attributes: frozenset[str]) -> dict[str, Json]:
    return {key: value for key, value in schema.items() if key not in attributes}


def _doc(schema: dict[str, Json]) -> str | None:
    doc = schema.get("doc")
    return doc if isinstance(doc, str) else None


def _load_json(text: str) -> Json:
    """The JSON of a schema. An unquoted name, such as string, is a common mistake and gets a more helpful error."""
    try:
        return load(text, "Avro schema")
    except InvalidSchemaError as error:
        name = text.strip()
        if len(name) > 200 or not all(_NAME.fullmatch(part) for part in name.split(".")) or name in _JSON_WORDS:
            raise
        raise InvalidSchemaError(
            f"{error}. A schema that is a name only has quotes of its own: "
            f'"\\"{name}\\"" in a request, \'"{name}"\' in a file'
        ) from None


def _brief(value: Json) -> str:
    text = render(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
