"""The .proto text of a Connect schema, as Confluent's converter writes it. Start at `proto_text`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from moldau.connect.api.errors import DataError
from moldau.connect.api.schemas import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from moldau.formats.registry import protobuf_schemas as known
from moldau.formats.registry.data_schema import DataSchema, Kind

__all__ = ["proto_text"]

SCALARS: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.INT8: ("int32", "Int32Value"),
    Kind.INT16: ("int32", "Int32Value"),
    Kind.INT32: ("int32", "Int32Value"),
    Kind.INT64: ("int64", "Int64Value"),
    Kind.FLOAT32: ("float", "FloatValue"),
    Kind.FLOAT64: ("double", "DoubleValue"),
    Kind.BOOLEAN: ("bool", "BoolValue"),
    Kind.STRING: ("string", "StringValue"),
    Kind.BYTES: ("bytes", "BytesValue"),
}
LOGICAL: Final[Mapping[str, tuple[str, str]]] = {
    TIMESTAMP_NAME: (known.TIMESTAMP_NAME, "google/protobuf/timestamp.proto"),
    DATE_NAME: (known.DATE_NAME, "google/type/date.proto"),
    TIME_NAME: (known.TIME_NAME, "google/type/timeofday.proto"),
}
MAP_KEYS: Final = {Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.BOOLEAN, Kind.STRING}
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def proto_text(schema: DataSchema, *, uses_optional: bool = False, uses_wrappers: bool = False) -> str:
    """The text; nullable scalars are plain fields unless one of the two ways is chosen. Raises `DataError`."""
    if schema.kind is not Kind.STRUCT:
        raise DataError(
            f"Protobuf can write messages only, not a {schema.kind.value}; use HoistField, or another converter"
        )
    package, _, name = (schema.name or "").rpartition(".")
    texts = _Texts(uses_optional=uses_optional, uses_wrappers=uses_wrappers)
    body = texts.message(_checked(name) if name else texts.next_name(), schema, 0)
    head = ['syntax = "proto3";', *([f"package {package};"] if package else []), ""]
    imports = [f'import "{path}";' for path in sorted(texts.imports)]
    return "\n".join([*head, *imports, *([""] if imports else []), *body, ""])


def _checked(name: str) -> str:
    if NAME.fullmatch(name) is None:
        raise DataError(f"{name} is not a valid name in Protobuf; rename it (ReplaceField, SetSchemaMetadata)")
    return name


class _Texts:
    """Messages with their nested ones inside them; those without a name are counted."""

    def __init__(self, *, uses_optional: bool, uses_wrappers: bool) -> None:
        self.imports: set[str] = set()
        self._uses_optional, self._uses_wrappers = uses_optional, uses_wrappers
        self._count = 0

    def next_name(self) -> str:
        self._count += 1
        return f"ConnectDefault{self._count}"

    def message(self, name: str, schema: DataSchema, depth: int) -> list[str]:
        indent = "  " * depth
        own: list[str] = []
        nested: dict[str, tuple[DataSchema, list[str]]] = {}
        for number, field in enumerate(schema.fields, 1):
            kind, options = self._field(field.schema, nested, depth)
            own.append(f"{indent}  {kind} {_checked(field.name)} = {number}{options};")
        inner = [line for _, lines in nested.values() for line in lines]
        return [f"{indent}message {name} {{", *own, *([""] if inner else []), *inner, f"{indent}}}"]

    def _field(
        self, schema: DataSchema, nested: dict[str, tuple[DataSchema, list[str]]], depth: int
    ) -> tuple[str, str]:
        match schema.kind:
            case Kind.ARRAY:
                kind, options = self._inner(schema.element, nested, depth)
                return f"repeated {kind}", options
            case Kind.MAP:
                if schema.key is None or schema.key.kind not in MAP_KEYS:
                    raise DataError("Protobuf's maps have numbers, texts or booleans as keys")
                kind, options = self._inner(schema.element, nested, depth)
                return f"map<{SCALARS[schema.key.kind][0]}, {kind}>", options
        kind, options = self._type(schema, nested, depth)
        is_scalar = kind in {text for text, _ in SCALARS.values()}
        if not (schema.is_optional and is_scalar):
            return kind, options
        if self._uses_wrappers:
            self.imports.add("google/protobuf/wrappers.proto")
            return f"google.protobuf.{SCALARS[schema.kind][1]}", options
        return (f"optional {kind}" if self._uses_optional else kind), options

    def _inner(
        self, schema: DataSchema, nested: dict[str, tuple[DataSchema, list[str]]], depth: int
    ) -> tuple[str, str]:
        if schema.kind in (Kind.ARRAY, Kind.MAP):
            raise DataError("Protobuf has no arrays or maps directly inside of arrays or maps; put them into structs")
        return self._type(schema, nested, depth)

    def _type(self, schema: DataSchema, nested: dict[str, tuple[DataSchema, list[str]]], depth: int) -> tuple[str, str]:
        if schema.name == DECIMAL_NAME:
            self.imports |= {"confluent/meta.proto", "confluent/type/decimal.proto"}
            precision = schema.parameters.get("connect.decimal.precision", "64")
            return known.DECIMAL_NAME, _parameters(precision=precision, scale=schema.parameters.get("scale", "0"))
        if schema.name is not None and schema.name in LOGICAL:
            name, path = LOGICAL[schema.name]
            self.imports.add(path)
            return name, ""
        if schema.kind is Kind.STRUCT:
            return self._nested(schema, nested, depth), ""
        if schema.kind in (Kind.INT8, Kind.INT16):
            self.imports.add("confluent/meta.proto")
            return SCALARS[schema.kind][0], _parameters(**{"connect.type": schema.kind.value})
        return SCALARS[schema.kind][0], ""

    def _nested(self, schema: DataSchema, nested: dict[str, tuple[DataSchema, list[str]]], depth: int) -> str:
        name = (schema.name or "").rpartition(".")[2]
        same = nested.get(name)
        if same is not None and same[0].fields == schema.fields:
            return name
        name = _checked(name) if name and same is None else self.next_name()
        nested[name] = (schema, self.message(name, schema, depth + 1))
        return name


def _parameters(**given: str) -> str:
    pairs = ", ".join(f'{{ key: "{key}", value: "{value}" }}' for key, value in given.items())
    return f" [(confluent.field_meta) = {{ params: [{pairs}] }}]"
