"""Connect's Protobuf converter: structs as messages, through the registry. Start at `ProtobufConverter`.

A oneof is a struct of its members named `<oneof>_<position>`, as Confluent's converter has it. A field without presence
cannot be null: what was null is read as zero or an empty text, unless `optional.for.nullables` or
`wrapper.for.nullables` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass

from moldau.connect.api.config_def import ConfigDef, ConfigType, Setting
from moldau.connect.api.errors import DataError
from moldau.connect.api.plugin_kinds import SchemaAndValue
from moldau.connect.converters.protobuf_texts import proto_text
from moldau.connect.converters.registry import LOW, REGISTRY_SETTINGS, Read, RegistryConverter, Write
from moldau.formats.registry.data_schema import NO_DEFAULT, DataSchema, Kind
from moldau.formats.registry.protobuf_rows import (
    fill_date,
    fill_decimal,
    fill_time,
    fill_timestamp,
    plain_reader,
)
from moldau.formats.registry.protobuf_schemas import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    WRAPPERS,
    is_map,
    message_descriptor,
    oneofs_of,
    plain_fields_of,
    protobuf_data_schema,
)
from moldau.schemas.errors import SchemaError
from moldau.schemas.parsed_schema import ParsedSchema
from moldau.schemas.protobuf.codec import decode_indexes, encode_indexes
from moldau.schemas.protobuf.schema import ProtobufSchema
from moldau.serdes.schema_source import SchemaText

__all__ = ["ProtobufConverter"]

Message = Any
Descriptor = Any
Fill = Callable[[Message, Any], None]
FILLS: Final[Mapping[str, Fill]] = {
    TIMESTAMP_NAME: fill_timestamp,
    DATE_NAME: fill_date,
    TIME_NAME: fill_time,
}
FIRST: Final = [0]


class ProtobufConverter(RegistryConverter):
    """`io.confluent.connect.protobuf.ProtobufConverter`."""

    schema_type = "PROTOBUF"
    config_def: ClassVar[ConfigDef] = REGISTRY_SETTINGS + ConfigDef(
        Setting(
            "optional.for.nullables",
            ConfigType.BOOLEAN,
            "Write fields that may be null as `optional`.",
            False,
            importance=LOW,
        ),
        Setting(
            "wrapper.for.nullables",
            ConfigType.BOOLEAN,
            "Write fields that may be null as Google's wrappers.",
            False,
            importance=LOW,
        ),
    )

    def schema_text(self, schema: DataSchema) -> SchemaText:
        text = proto_text(
            schema,
            uses_optional=self.values["optional.for.nullables"],
            uses_wrappers=self.values["wrapper.for.nullables"],
        )
        return SchemaText("PROTOBUF", text)

    def writer(self, schema: DataSchema, parsed: ParsedSchema) -> Write:
        assert isinstance(parsed, ProtobufSchema)
        name = _message_name(parsed, schema.name)
        descriptor = message_descriptor(parsed, name)
        prefix, make = encode_indexes(parsed.message_indexes(name)), GetMessageClass(descriptor)
        fill = _message_fill(descriptor, schema)

        def write(value: Any) -> bytes:
            message = make()
            fill(message, value)
            try:
                body: bytes = message.SerializeToString()
            except EncodeError as error:
                raise DataError(f"the message cannot be encoded: {error}") from None
            return prefix + body

        return write

    def reader(self, parsed: ParsedSchema) -> tuple[DataSchema | None, Read]:
        """The function gives schema and value: the positions before each message say which type it has."""
        assert isinstance(parsed, ProtobufSchema)
        known: dict[str, tuple[DataSchema, Any, Callable[[Message], Any]]] = {}

        def read(body: bytes) -> SchemaAndValue:
            indexes, start = decode_indexes(body)
            name = parsed.message_name(indexes)
            found = known.get(name)
            if found is None:
                descriptor = message_descriptor(parsed, name)
                schema = replace(protobuf_data_schema(parsed, name), is_optional=False)
                found = known[name] = schema, GetMessageClass(descriptor), _message_read(descriptor, schema)
            schema, make, convert = found
            try:
                return schema, convert(make.FromString(body[start:]))
            except DecodeError as error:
                raise DataError(f"the data are not a {name} message: {error}") from None

        return None, read

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return None, None
        found: SchemaAndValue = super().to_connect(topic, data)[1]
        return found


def _message_name(parsed: ProtobufSchema, wanted: str | None) -> str:
    """The message of that name, if the schema has it, or the first one."""
    if wanted is not None:
        try:
            parsed.message_indexes(wanted)
        except SchemaError:
            pass
        else:
            return wanted
    return parsed.message_name(FIRST)


# Writing


def _message_fill(descriptor: Descriptor, schema: DataSchema) -> Fill:
    by_name = {field.name: field for field in plain_fields_of(descriptor)}
    oneofs = {f"{name}_{index}": members for index, (name, members) in enumerate(oneofs_of(descriptor))}
    fills: list[tuple[str, DataSchema, Fill]] = []
    for field in schema.fields:
        if field.name in by_name:
            fills.append((field.name, field.schema, _field_fill(by_name[field.name], field.schema)))
        elif field.name in oneofs:
            fills.append((field.name, field.schema, _oneof_fill(oneofs[field.name], field.schema)))
        else:
            raise DataError(f"message {descriptor.full_name} has no field {field.name}")

    def fill(message: Message, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise DataError(f"a struct is a dict by field name, not {type(value).__name__}")
        message.SetInParent()
        for name, inner, write in fills:
            one = value.get(name)
            if one is None:
                if inner.default is NO_DEFAULT or inner.default is None:
                    if not inner.is_optional:
                        raise DataError(f"field {name} is required, and it is null")
                    continue
                one = inner.default
            try:
                write(message, one)
            except (TypeError, ValueError, AttributeError) as error:
                raise DataError(f"field {name}: {error}") from None

    return fill


def _oneof_fill(members: list[FieldDescriptor], schema: DataSchema) -> Fill:
    schemas = {field.name: field.schema for field in schema.fields}
    fills = {one.name: _field_fill(one, schemas[one.name]) for one in members if one.name in schemas}

    def fill(message: Message, value: Any) -> None:
        for name, write in fills.items():
            if value.get(name) is not None:
                write(message, value[name])

    return fill


def _field_fill(field: FieldDescriptor, schema: DataSchema) -> Fill:
    name = field.name
    if is_map(field):
        entry: Descriptor = field.message_type
        return _map_fill(name, entry.fields_by_name["value"], schema.element)
    inner = schema.element if schema.kind is Kind.ARRAY else schema
    fill = _submessage_fill(field, inner)
    if field.is_repeated:
        if schema.kind is not Kind.ARRAY:
            raise DataError(f"field {name} is repeated, and the value is a {schema.kind.value}")
        if fill is not None:

            def add_messages(message: Message, items: Any) -> None:
                target = getattr(message, name)
                for one in items:
                    fill(target.add(), one)

            return add_messages
        convert = _scalar(field)
        return lambda message, items: getattr(message, name).extend(map(convert, items))
    if fill is not None:

        def set_message(message: Message, value: Any) -> None:
            made = getattr(message, name)
            made.SetInParent()
            fill(made, value)

        return set_message
    convert = _scalar(field)
    return lambda message, value: setattr(message, name, convert(value))


def _map_fill(name: str, field: FieldDescriptor, schema: DataSchema) -> Fill:
    fill = _submessage_fill(field, schema)
    convert = None if fill is not None else _scalar(field)

    def write(message: Message, entries: Mapping[Any, Any]) -> None:
        target = getattr(message, name)
        for key, value in entries.items():
            if fill is not None:
                fill(target[key], value)
            elif convert is not None:
                target[key] = convert(value)

    return write


def _submessage_fill(field: FieldDescriptor, schema: DataSchema) -> Fill | None:
    """A function that fills a message with a value; None for scalars."""
    if field.message_type is None:
        return None
    name = str(field.message_type.full_name)
    if name in WRAPPERS:
        convert = _scalar(field.message_type.fields_by_name["value"])
        return lambda message, value: setattr(message, "value", convert(value))
    if name == DECIMAL_NAME:
        precision = int(schema.parameters.get("connect.decimal.precision", "64"))
        return lambda message, value: fill_decimal(message, value, precision)
    return FILLS.get(name) or _message_fill(field.message_type, schema)


def _scalar(field: FieldDescriptor) -> Callable[[Any], Any]:
    if field.enum_type is not None:
        numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}
        return lambda name: numbers[name]
    if field.type in (field.TYPE_UINT64, field.TYPE_FIXED64):
        return lambda number: number & ((1 << 64) - 1)
    if field.type == field.TYPE_BYTES:
        return bytes
    return lambda value: value


# Reading


def _message_read(descriptor: Descriptor, schema: DataSchema) -> Callable[[Message], Any]:
    schemas = {field.name: field.schema for field in schema.fields}
    reads: list[tuple[str, Callable[[Message], Any]]] = []
    for index, (oneof, members) in enumerate(oneofs_of(descriptor)):
        name = f"{oneof}_{index}"
        reads.append((name, _oneof_read(oneof, members, schemas[name])))
    reads += [(field.name, _field_read(field, schemas[field.name])) for field in plain_fields_of(descriptor)]
    return lambda message: {name: read(message) for name, read in reads}


def _oneof_read(oneof: str, members: list[FieldDescriptor], schema: DataSchema) -> Callable[[Message], Any]:
    schemas = {field.name: field.schema for field in schema.fields}
    reads = {one.name: _item_read(one, schemas[one.name]) for one in members}

    def read(message: Message) -> Any:
        chosen = message.WhichOneof(oneof)
        if chosen is None:
            return None
        return {name: one(getattr(message, name)) if name == chosen else None for name, one in reads.items()}

    return read


def _field_read(field: FieldDescriptor, schema: DataSchema) -> Callable[[Message], Any]:
    name = field.name
    if is_map(field):
        entry: Descriptor = field.message_type
        one = _item_read(entry.fields_by_name["value"], schema.element)
        return lambda message: {key: one(value) for key, value in getattr(message, name).items()}
    if field.is_repeated:
        one = _item_read(field, schema.element)
        return lambda message: [one(item) for item in getattr(message, name)]
    one = _item_read(field, schema)
    if field.has_presence:
        return lambda message: one(getattr(message, name)) if message.HasField(name) else None
    return lambda message: one(getattr(message, name))


def _item_read(field: FieldDescriptor, schema: DataSchema) -> Callable[[Any], Any]:
    if field.message_type is not None and schema.kind is Kind.STRUCT:
        return _message_read(field.message_type, schema)
    return plain_reader(field) or (lambda value: value)
