"""Protobuf schemas as data schemas, and the .proto text that columns are registered with.

Follows Connect's mapping: well-known types are Connect's logical types, wrappers are nullable scalars, a oneof is a
struct. Start at `protobuf_data_schema`; `proto_text_of` is the other direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from moldau.formats.columns import Column
from moldau.formats.errors import FormatError
from moldau.formats.format import NullableRepresentation
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
from moldau.schemas.protobuf import elements
from moldau.schemas.protobuf.schema import ProtobufSchema

__all__ = [
    "DATE_NAME",
    "DECIMAL_NAME",
    "TIMESTAMP_NAME",
    "TIME_NAME",
    "WRAPPERS",
    "field_kind",
    "is_map",
    "message_descriptor",
    "oneofs_of",
    "plain_fields_of",
    "proto_text_of",
    "protobuf_data_schema",
]

Descriptor = Any
DECIMAL_NAME: Final = "confluent.type.Decimal"
TIMESTAMP_NAME: Final = "google.protobuf.Timestamp"
DATE_NAME: Final = "google.type.Date"
TIME_NAME: Final = "google.type.TimeOfDay"
MAX_DEPTH: Final = 100

_WELL_KNOWN: Final[Mapping[str, DataSchema]] = {
    TIMESTAMP_NAME: DataSchema(Kind.INT64, True, logical.TIMESTAMP),
    DATE_NAME: DataSchema(Kind.INT32, True, logical.DATE),
    TIME_NAME: DataSchema(Kind.INT32, True, logical.TIME),
}
WRAPPERS: Final[Mapping[str, Kind]] = {
    f"google.protobuf.{name}Value": kind
    for name, kind in (
        ("Bool", Kind.BOOLEAN),
        ("Int32", Kind.INT32),
        ("UInt32", Kind.INT64),
        ("Int64", Kind.INT64),
        ("UInt64", Kind.INT64),
        ("Float", Kind.FLOAT32),
        ("Double", Kind.FLOAT64),
        ("String", Kind.STRING),
        ("Bytes", Kind.BYTES),
    )
}
_F: Final = FieldDescriptor
_SCALARS: Final[Mapping[int, Kind]] = {
    _F.TYPE_BOOL: Kind.BOOLEAN,
    _F.TYPE_INT32: Kind.INT32,
    _F.TYPE_SINT32: Kind.INT32,
    _F.TYPE_SFIXED32: Kind.INT32,
    _F.TYPE_UINT32: Kind.INT64,
    _F.TYPE_FIXED32: Kind.INT64,
    _F.TYPE_INT64: Kind.INT64,
    _F.TYPE_SINT64: Kind.INT64,
    _F.TYPE_SFIXED64: Kind.INT64,
    _F.TYPE_UINT64: Kind.INT64,
    _F.TYPE_FIXED64: Kind.INT64,
    _F.TYPE_FLOAT: Kind.FLOAT32,
    _F.TYPE_DOUBLE: Kind.FLOAT64,
    _F.TYPE_STRING: Kind.STRING,
    _F.TYPE_BYTES: Kind.BYTES,
    _F.TYPE_ENUM: Kind.STRING,
}


def field_kind(field: FieldDescriptor) -> Kind:
    """The kind of a scalar field's values."""
    return _SCALARS[field.type]


def message_descriptor(schema: ProtobufSchema, full_name: str | None) -> Descriptor:
    """The message type with that name, by default the first one; raises `FormatError` if there is none."""
    try:
        return schema.compiled.message(full_name or schema.message_name([0]))
    except (KeyError, ValueError) as error:
        raise FormatError(f"The Protobuf schema has no message {full_name}: {error}") from None


def protobuf_data_schema(schema: ProtobufSchema, full_name: str | None = None) -> DataSchema:
    """The data schema of a message type; raises `FormatError` for recursive ones."""
    builder = _Builder(_field_parameters(schema))
    return builder.message(message_descriptor(schema, full_name), frozenset())


class _Builder:
    def __init__(self, parameters: Mapping[tuple[str, str], Mapping[str, str]]) -> None:
        self._parameters = parameters
        self._budget = Budget()

    def message(self, descriptor: Descriptor, above: frozenset[str]) -> DataSchema:
        name = str(descriptor.full_name)
        if name in above:
            raise FormatError(f"Protobuf message {name} contains itself: recursive types cannot be columns")
        inside = above | {name}
        fields = []
        for index, (oneof, members) in enumerate(oneofs_of(descriptor)):
            inner = tuple(DataField(member.name, self.field(member, inside)) for member in members)
            fields.append(DataField(f"{oneof}_{index}", DataSchema(Kind.STRUCT, True, fields=inner)))
        fields += [DataField(field.name, self.field(field, inside)) for field in plain_fields_of(descriptor)]
        return DataSchema(Kind.STRUCT, True, name, fields=tuple(fields))

    def field(self, field: FieldDescriptor, above: frozenset[str]) -> DataSchema:
        self._budget.spend()
        if is_map(field):
            entry: Descriptor = field.message_type
            key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
            inner = self._one(value, above, self._given(field))
            return DataSchema(Kind.MAP, True, key=self._one(key, above, {}), value=inner)
        one = self._one(field, above, self._given(field))
        return DataSchema(Kind.ARRAY, True, value=one) if field.is_repeated else one

    def _given(self, field: FieldDescriptor) -> Mapping[str, str]:
        owner: Descriptor = field.containing_type
        return self._parameters.get((str(owner.full_name), field.name), {})

    def _one(self, field: FieldDescriptor, above: frozenset[str], given: Mapping[str, str]) -> DataSchema:
        if field.message_type is None:
            # Protobuf has no smaller numbers than 32 bits; Connect notes them beside the field.
            small = given.get("connect.type")
            kind = Kind(small) if small in ("int8", "int16") else field_kind(field)
            return DataSchema(kind, bool(field.has_presence))
        name = str(field.message_type.full_name)
        if name in WRAPPERS:
            return DataSchema(WRAPPERS[name], True)
        if name == DECIMAL_NAME:
            return decimal_schema(int(given.get("precision", 64)), int(given.get("scale", 0)), is_optional=True)
        return _WELL_KNOWN.get(name) or self.message(field.message_type, above)


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map, which descriptors show as a repeated message of key and value."""
    return bool(field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry)


def oneofs_of(descriptor: Descriptor) -> list[tuple[str, list[FieldDescriptor]]]:
    """The oneofs that were written, without those that stand for `optional` fields."""
    found = []
    for oneof in descriptor.oneofs:
        members = list(oneof.fields)
        if not _is_synthetic(oneof):
            found.append((str(oneof.name), members))
    return found


def plain_fields_of(descriptor: Descriptor) -> list[FieldDescriptor]:
    """The fields outside of oneofs, in the order of the text."""
    return [
        field for field in descriptor.fields if field.containing_oneof is None or _is_synthetic(field.containing_oneof)
    ]


def _is_synthetic(oneof: Any) -> bool:
    return len(oneof.fields) == 1 and str(oneof.name) == f"_{oneof.fields[0].name}"


def _field_parameters(schema: ProtobufSchema) -> dict[tuple[str, str], Mapping[str, str]]:
    """The `params` of `(confluent.field_meta)`, by message and field; from the text, as descriptors need an import."""
    found: dict[tuple[str, str], Mapping[str, str]] = {}
    for file in (schema.file, *(one.file for one in schema.imported.values())):
        for scope, message in _messages(file):
            for field in message.all_fields():
                parameters = _parameters(field)
                if parameters:
                    found[scope, field.name] = parameters
    return found


def _messages(file: elements.File) -> Iterator[tuple[str, elements.Message]]:
    pending = [(f"{file.package}." if file.package else "", message) for message in file.messages]
    while pending:
        prefix, message = pending.pop()
        name = f"{prefix}{message.name}"
        yield name, message
        pending += [(f"{name}.", inner) for inner in message.messages]


def _parameters(field: elements.Field) -> dict[str, str]:
    found: dict[str, str] = {}
    for option in field.options:
        if option.name.lstrip("(.").startswith("confluent.field_meta") and isinstance(option.value, elements.Aggregate):
            for name, value in option.value.entries:
                if name == "params":
                    found |= dict(_pairs(value))
    return found


def _pairs(value: elements.OptionValue) -> Iterator[tuple[str, str]]:
    items = value.items if isinstance(value, elements.Sequence) else (value,)
    for item in items:
        if isinstance(item, elements.Aggregate):
            entry = {name: one.text for name, one in item.entries if isinstance(one, elements.Constant)}
            yield entry.get("key", ""), entry.get("value", "")


# To Protobuf


def proto_text_of(
    columns: tuple[Column, ...], *, full_name: str | None, nullable: NullableRepresentation | None
) -> str:
    """The .proto text under which rows of these columns are registered; raises `FormatError` if there is none."""
    package, _, name = (full_name or "").rpartition(".")
    is_default = not name or name.startswith("ConnectDefault")
    printer = _Printer(nullable)
    fields = [(column.name, column.type) for column in columns]
    body = printer.message(printer.next_name() if is_default else name, fields, 0)
    head = ['syntax = "proto3";', ""]
    if package and not is_default:
        head += [f"package {package};", ""]
    imports = [f'import "{path}";' for path in sorted(printer.imports)]
    return "\n".join([*head, *imports, *([""] if imports else []), *body, ""])


_PROTO_SCALARS: Final[Mapping[SqlType, tuple[str, str]]] = {
    BOOLEAN: ("bool", "BoolValue"),
    INTEGER: ("int32", "Int32Value"),
    BIGINT: ("int64", "Int64Value"),
    DOUBLE: ("double", "DoubleValue"),
    STRING: ("string", "StringValue"),
    BYTES: ("bytes", "BytesValue"),
}
_PROTO_TIMES: Final[Mapping[SqlType, tuple[str, str]]] = {
    TIMESTAMP: (TIMESTAMP_NAME, "google/protobuf/timestamp.proto"),
    DATE: (DATE_NAME, "google/type/date.proto"),
    TIME: (TIME_NAME, "google/type/timeofday.proto"),
}


class _Printer:
    """Prints messages with their nested ones inside them; names of nested ones count up."""

    def __init__(self, nullable: NullableRepresentation | None) -> None:
        self.imports: set[str] = set()
        self._nullable = nullable
        self._count = 0

    def next_name(self) -> str:
        self._count += 1
        return f"ConnectDefault{self._count}"

    def message(self, name: str, fields: list[tuple[str, SqlType]], depth: int) -> list[str]:
        indent = "  " * depth
        own: list[str] = []
        nested: list[str] = []
        for number, (field, sql_type) in enumerate(fields, 1):
            # The type of a map's entries is named after the field, and a name begins with a letter.
            pattern = "_*[A-Za-z][A-Za-z0-9_]*" if isinstance(sql_type, MapType) else "[A-Za-z_][A-Za-z0-9_]*"
            if re.fullmatch(pattern, field) is None:
                raise FormatError(f"Schema is not compatible with Protobuf: Illegal field name: {field}")
            text, options = self._field_type(sql_type, nested, depth)
            own.append(f"{indent}  {text} {field} = {number}{options};")
        if nested:
            own.append("")
        return [f"{indent}message {name} {{", *own, *nested, f"{indent}}}"]

    def _field_type(self, sql_type: SqlType, nested: list[str], depth: int) -> tuple[str, str]:
        match sql_type:
            case ArrayType(element):
                text, options = self._inner_type(element, nested, depth)
                return f"repeated {text}", options
            case MapType(_, value):
                text, options = self._inner_type(value, nested, depth)
                return f"map<string, {text}>", options
        text, options = self._type(sql_type, nested, depth)
        is_optional = self._nullable is NullableRepresentation.OPTIONAL and sql_type in _PROTO_SCALARS
        return (f"optional {text}" if is_optional else text), options

    def _inner_type(self, sql_type: SqlType, nested: list[str], depth: int) -> tuple[str, str]:
        if isinstance(sql_type, ArrayType | MapType):
            raise FormatError(
                f"PROTOBUF format does not support {sql_type} inside of an ARRAY or a MAP; put it into a STRUCT"
            )
        return self._type(sql_type, nested, depth)

    def _type(self, sql_type: SqlType, nested: list[str], depth: int) -> tuple[str, str]:
        match sql_type:
            case DecimalType(precision, scale):
                self.imports |= {"confluent/meta.proto", "confluent/type/decimal.proto"}
                pairs = ", ".join(
                    f'{{ key: "{key}", value: "{value}" }}'
                    for key, value in (("precision", precision), ("scale", scale))
                )
                return DECIMAL_NAME, f" [(confluent.field_meta) = {{ params: [{pairs}] }}]"
            case StructType(fields):
                name = self.next_name()
                nested += self.message(name, [(field.name, field.type) for field in fields], depth + 1)
                return name, ""
        if sql_type in _PROTO_TIMES:
            name, path = _PROTO_TIMES[sql_type]
            self.imports.add(path)
            return name, ""
        scalar, wrapper = _PROTO_SCALARS[sql_type]
        if self._nullable is NullableRepresentation.WRAPPER:
            self.imports.add("google/protobuf/wrappers.proto")
            return f"google.protobuf.{wrapper}", ""
        return scalar, ""
