"""Builds a .proto tree from a descriptor, for schemas that are sent in compiled form.

Generated parts are converted back: map entries become `map<…>`, the oneof of an optional proto3 field becomes
its label. Options are read with a pool that has the extensions in use. Start at `file_from_descriptor`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message as ProtobufMessage

from moldau.schemas.protobuf.elements import (
    Aggregate,
    Constant,
    Enum,
    EnumConstant,
    Extend,
    Extensions,
    Field,
    File,
    Message,
    OneOf,
    Option,
    OptionValue,
    Range,
    Reserved,
    Rpc,
    Service,
)
from moldau.schemas.protobuf.tokens import unescape

__all__ = ["file_from_descriptor"]

_SCALAR_NAMES: Final = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in FieldDescriptorProto.Type.items()
    if name not in {"TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM"}
}
_LABELS: Final = {
    FieldDescriptorProto.LABEL_OPTIONAL: "optional",
    FieldDescriptorProto.LABEL_REQUIRED: "required",
    FieldDescriptorProto.LABEL_REPEATED: "repeated",
}
_TEXT_DEFAULTS: Final = frozenset({FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES})


def file_from_descriptor(descriptor: FileDescriptorProto) -> File:
    """Return the tree of a compiled file."""
    return _Reader(descriptor).file()


class _Reader:
    def __init__(self, descriptor: FileDescriptorProto) -> None:
        self._descriptor = descriptor
        self._is_proto3 = descriptor.syntax == "proto3"

    def file(self) -> File:
        source = self._descriptor
        public = {source.dependency[index] for index in source.public_dependency}
        has_syntax = source.syntax in ("proto2", "proto3")
        return File(
            syntax=source.syntax if has_syntax else None,
            edition=_edition(source) if source.syntax == "editions" else None,
            package=source.package,
            imports=[path for path in source.dependency if path not in public],
            public_imports=[path for path in source.dependency if path in public],
            options=_options(source, source.options),
            messages=[self._message(message, source.package) for message in source.message_type],
            enums=[_enum(enum) for enum in source.enum_type],
            extends=self._extends(source.extension),
            services=[_service(service) for service in source.service],
        )

    def _message(self, source: DescriptorProto, scope: str) -> Message:
        full_name = f"{scope}.{source.name}" if scope else source.name
        entries = {f".{full_name}.{inner.name}": inner for inner in source.nested_type if inner.options.map_entry}
        message = Message(
            source.name,
            messages=[self._message(inner, full_name) for inner in source.nested_type if not inner.options.map_entry],
            enums=[_enum(enum) for enum in source.enum_type],
            reserved=_reserved_numbers((item.start, item.end - 1) for item in source.reserved_range),
            extensions=[Extensions((Range(item.start, item.end - 1),)) for item in source.extension_range],
            extends=self._extends(source.extension),
            options=_options(source, source.options),
        )
        message.reserved += [Reserved(tuple(source.reserved_name))] if source.reserved_name else []
        self._add_fields(message, source, entries)
        return message

    def _add_fields(self, message: Message, source: DescriptorProto, entries: dict[str, DescriptorProto]) -> None:
        oneofs = [OneOf(oneof.name, options=_options(oneof, oneof.options)) for oneof in source.oneof_decl]
        groups = {inner.name: inner for inner in message.messages}
        for item in source.field:
            field = self._field(item, entries.get(item.type_name))
            if item.type == FieldDescriptorProto.TYPE_GROUP:
                field.group = groups.get(field.type.rpartition(".")[2])
                field.type = field.group.name if field.group else field.type
            if item.HasField("oneof_index") and not item.proto3_optional:
                field.label = None
                oneofs[item.oneof_index].fields.append(field)
            else:
                message.fields.append(field)
        message.oneofs = [oneof for oneof in oneofs if oneof.fields]

    def _field(self, source: FieldDescriptorProto, entry: DescriptorProto | None) -> Field:
        options = _options(source, source.options)
        options += _special_options(source)
        if entry is not None:
            key, value = entry.field
            return Field(source.name, source.number, _type(value), map_key=_type(key), options=options)
        label = None if self._is_implicit(source) else _LABELS[source.label]
        return Field(source.name, source.number, _type(source), label, options=options)

    def _is_implicit(self, source: FieldDescriptorProto) -> bool:
        """Whether a field has no label: outside proto2, a single field that is not `optional`."""
        is_single = source.label == FieldDescriptorProto.LABEL_OPTIONAL
        return is_single and not source.proto3_optional and self._descriptor.syntax in ("proto3", "editions")

    def _extends(self, extensions: Iterable[FieldDescriptorProto]) -> list[Extend]:
        by_type: dict[str, Extend] = {}
        for extension in extensions:
            extend = by_type.setdefault(extension.extendee, Extend(extension.extendee))
            extend.fields.append(self._field(extension, None))
        return list(by_type.values())


def _type(source: FieldDescriptorProto) -> str:
    return source.type_name or _SCALAR_NAMES.get(source.type, "")


def _edition(source: FileDescriptorProto) -> str:
    return Edition.Name(source.edition).removeprefix("EDITION_")


def _special_options(source: FieldDescriptorProto) -> list[Option]:
    """The two options stored in the field itself. A json_name generated by the compiler is left out."""
    options: list[Option] = []
    if source.HasField("default_value"):
        is_text = source.type in _TEXT_DEFAULTS
        is_number = source.default_value.lstrip("+-")[:1].isdigit()
        kind = "string" if is_text else "number" if is_number else "name"
        is_bytes = source.type == FieldDescriptorProto.TYPE_BYTES
        text = unescape(source.default_value) if is_bytes else source.default_value
        options.append(Option("default", Constant(kind, text)))
    if source.HasField("json_name") and source.json_name != _json_name(source.name):
        options.append(Option("json_name", Constant("string", source.json_name)))
    return options


def _json_name(name: str) -> str:
    """The compiler's JSON name of a field: underscores are removed, the letter after each becomes a capital."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _enum(source: EnumDescriptorProto) -> Enum:
    enum = Enum(
        source.name,
        [EnumConstant(item.name, item.number, _options(item, item.options)) for item in source.value],
        _reserved_numbers((item.start, item.end) for item in source.reserved_range),
        _options(source, source.options),
    )
    enum.reserved += [Reserved(tuple(source.reserved_name))] if source.reserved_name else []
    return enum


def _service(source: ServiceDescriptorProto) -> Service:
    return Service(source.name, [_rpc(method) for method in source.method], _options(source, source.options))


def _rpc(source: MethodDescriptorProto) -> Rpc:
    streams = source.client_streaming, source.server_streaming
    return Rpc(source.name, source.input_type, source.output_type, *streams, _options(source, source.options))


def _reserved_numbers(ranges: Iterable[tuple[int, int]]) -> list[Reserved]:
    found = tuple(Range(start, end) for start, end in ranges)
    return [Reserved(found)] if found else []


def _options(holder: ProtobufMessage, options: ProtobufMessage) -> list[Option]:
    if not holder.HasField("options"):
        return []
    found: list[Option] = []
    for field, value in options.ListFields():
        if field.name == "map_entry":
            continue
        name = f"({field.full_name})" if field.is_extension else field.name
        found += [Option(name, item) for item in _values(field, value)]
    return found


def _values(field: FieldDescriptor, value: Any) -> list[OptionValue]:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, item = entry.fields
        return [Aggregate((("key", _value(key, name)), ("value", _value(item, value[name])))) for name in sorted(value)]
    return [_value(field, item) for item in value] if field.is_repeated else [_value(field, value)]


def _value(field: FieldDescriptor, value: Any) -> OptionValue:
    if field.message_type is not None:
        return Aggregate(
            tuple((inner.name, item) for inner, content in value.ListFields() for item in _values(inner, content))
        )
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return Constant("name", known.name) if known else Constant("number", str(value))
    if isinstance(value, bool):
        return Constant("name", "true" if value else "false")
    if isinstance(value, str):
        return Constant("string", value)
    if isinstance(value, bytes):
        return Constant("string", value.decode("latin-1"))
    return Constant("number", repr(value))
