"""Builds Google's descriptors from a .proto tree: they encode values and are the compiled form of a schema.

Names are written in full, as the compiler does. Custom options are set if the extensions they use are
visible; others stay in the text only. Start at `descriptor_of_file`; `pools` combines descriptors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import Message as ProtobufMessage

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.protobuf.elements import (
    SCALARS,
    Aggregate,
    Constant,
    Enum,
    Extend,
    Field,
    File,
    Message,
    Option,
    OptionValue,
    Range,
    Reserved,
    Sequence,
    Service,
)
from moldau.schemas.protobuf.printer import quote
from moldau.schemas.protobuf.symbols import Symbols

__all__ = ["CustomOption", "descriptor_of_file", "option_as_text"]

_LABELS: Final = {
    None: FieldDescriptorProto.LABEL_OPTIONAL,
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
_IN_FIELD: Final = frozenset({"default", "json_name"})

CustomOption = tuple[ProtobufMessage, Option, str]
"""The options message it belongs to, the option, and the scope in which its name is resolved."""


def descriptor_of_file(file: File, name: str, symbols: Symbols) -> tuple[FileDescriptorProto, list[CustomOption]]:
    """The descriptor of a file under `name`, and the custom options that are not set in it yet."""
    writer = _Writer(file, symbols)
    descriptor = writer.file()
    descriptor.name = name
    return descriptor, writer.custom


def option_as_text(option: Option, extension: str | None = None) -> str:
    """An option in Protobuf's text format; `extension` is the full name of a custom one."""
    parts = option.name.split(".") if extension is None else [f"[{extension}]", *_rest(option.name)]
    value = _as_text(option.value)
    opening = "".join(f"{part} {{ " for part in parts[:-1])
    return f"{opening}{parts[-1]}: {value}{' }' * (len(parts) - 1)}"


def _rest(name: str) -> list[str]:
    """The parts after the extension in `(an.extension).part.part`."""
    rest = name.partition(")")[2]
    return [part for part in rest.split(".") if part]


def _as_text(value: OptionValue) -> str:
    match value:
        case Constant("string", text):
            return quote(text)
        case Constant():
            return value.text
        case Sequence():
            return f"[{', '.join(map(_as_text, value.items))}]"
        case Aggregate():
            return f"{{ {' '.join(f'{name}: {_as_text(item)}' for name, item in value.entries)} }}"


class _Writer:
    def __init__(self, file: File, symbols: Symbols) -> None:
        self._file = file
        self._symbols = symbols
        self.custom: list[CustomOption] = []

    def file(self) -> FileDescriptorProto:
        file = self._file
        target = FileDescriptorProto(package=file.package or None)
        target.dependency.extend([*file.imports, *file.public_imports])
        target.public_dependency.extend(range(len(file.imports), len(file.imports) + len(file.public_imports)))
        if file.edition:
            target.syntax = "editions"
            target.edition = _edition(file.edition)
        elif file.syntax:
            target.syntax = file.syntax
        self._set_options(target, file.options, file.package)
        for message in file.messages:
            self._message(target.message_type.add(), message, file.package)
        for enum in file.enums:
            self._enum(target.enum_type.add(), enum, file.package)
        self._extends(target.extension, file.extends, file.package)
        for service in file.services:
            self._service(target.service.add(), service, file.package)
        return target

    def _message(self, target: DescriptorProto, message: Message, scope: str) -> None:
        target.name = message.name
        full_name = f"{scope}.{message.name}" if scope else message.name
        self._set_options(target, message.options, full_name)
        for inner in message.messages:
            self._message(target.nested_type.add(), inner, full_name)
        for field in message.fields:
            self._field(target.field.add(), field, full_name, target)
        for index, oneof in enumerate(message.oneofs):
            declared = target.oneof_decl.add(name=oneof.name)
            self._set_options(declared, oneof.options, full_name)
            for field in oneof.fields:
                self._field(target.field.add(oneof_index=index), field, full_name, target)
        self._track_presence(target, message)
        for enum in message.enums:
            self._enum(target.enum_type.add(), enum, full_name)
        for numbers in _ranges(message.reserved):
            target.reserved_range.add(start=numbers.start, end=numbers.end + 1)
        target.reserved_name.extend(_names(message.reserved))
        for extensions in message.extensions:
            for numbers in extensions.ranges:
                target.extension_range.add(start=numbers.start, end=numbers.end + 1)
        self._extends(target.extension, message.extends, full_name)

    def _track_presence(self, target: DescriptorProto, message: Message) -> None:
        """Add a synthetic oneof for each optional field of proto3; these come after the oneofs in the text."""
        if not self._file.is_proto3:
            return
        for index, field in enumerate(message.fields):
            if field.label == "optional":
                target.field[index].proto3_optional = True
                target.field[index].oneof_index = len(target.oneof_decl)
                target.oneof_decl.add(name=f"_{field.name}")

    def _field(self, target: FieldDescriptorProto, field: Field, scope: str, owner: DescriptorProto | None) -> None:
        target.name, target.number, target.label = field.name, field.number, _LABELS[field.label]
        if field.map_key is not None and owner is not None:
            self._map_field(target, field, scope, owner)
        else:
            self._set_type(target, field.type, scope)
            if field.group is not None:
                target.type = FieldDescriptorProto.TYPE_GROUP
        for option in field.options:
            if option.name in _IN_FIELD and isinstance(option.value, Constant):
                _set_in_field(target, option.name, option.value.text)
        self._set_options(target, [option for option in field.options if option.name not in _IN_FIELD], scope)

    def _map_field(self, target: FieldDescriptorProto, field: Field, scope: str, owner: DescriptorProto) -> None:
        entry = owner.nested_type.add(name=_entry_name(field.name))
        entry.options.map_entry = True
        key = entry.field.add(name="key", number=1, label=FieldDescriptorProto.LABEL_OPTIONAL)
        self._set_type(key, str(field.map_key), scope)
        value = entry.field.add(name="value", number=2, label=FieldDescriptorProto.LABEL_OPTIONAL)
        self._set_type(value, field.type, scope)
        target.label, target.type = FieldDescriptorProto.LABEL_REPEATED, FieldDescriptorProto.TYPE_MESSAGE
        target.type_name = f".{scope}.{entry.name}"

    def _set_type(self, target: FieldDescriptorProto, name: str, scope: str) -> None:
        if name in SCALARS:
            target.type = FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
            return
        target.type_name, is_message = self._resolve_name(name, scope)
        target.type = FieldDescriptorProto.TYPE_MESSAGE if is_message else FieldDescriptorProto.TYPE_ENUM

    def _resolve_name(self, name: str, scope: str) -> tuple[str, bool]:
        symbol = self._symbols.resolve(name, scope)
        if symbol is None:
            raise InvalidSchemaError(f"Invalid Protobuf schema: the type {name!r} in {scope or 'the file'} is unknown")
        return f".{symbol.full_name}", isinstance(symbol.element, Message)

    def _enum(self, target: EnumDescriptorProto, enum: Enum, scope: str) -> None:
        target.name = enum.name
        self._set_options(target, enum.options, scope)
        for constant in enum.constants:
            value = target.value.add(name=constant.name, number=constant.number)
            self._set_options(value, constant.options, scope)
        for numbers in _ranges(enum.reserved):
            target.reserved_range.add(start=numbers.start, end=numbers.end)
        target.reserved_name.extend(_names(enum.reserved))

    def _extends(self, target: Any, extends: Iterable[Extend], scope: str) -> None:
        for extend in extends:
            extendee, _ = self._resolve_name(extend.type, scope)
            for field in extend.fields:
                self._field(target.add(extendee=extendee), field, scope, None)

    def _service(self, target: Any, service: Service, scope: str) -> None:
        target.name = service.name
        self._set_options(target, service.options, scope)
        for rpc in service.rpcs:
            method = target.method.add(name=rpc.name)
            method.input_type, _ = self._resolve_name(rpc.request, scope)
            method.output_type, _ = self._resolve_name(rpc.response, scope)
            method.client_streaming, method.server_streaming = rpc.request_streams, rpc.response_streams
            self._set_options(method, rpc.options, scope)

    def _set_options(self, holder: Any, options: Iterable[Option], scope: str) -> None:
        for option in options:
            if option.is_custom:
                self.custom.append((holder.options, option, scope))
                continue
            try:
                text_format.Merge(option_as_text(option), holder.options)
            except (text_format.ParseError, ValueError, UnicodeError) as error:
                raise InvalidSchemaError(
                    f"Invalid Protobuf schema: the option {option.name!r} in {scope or 'the file'} is invalid: {error}"
                ) from None


def _set_in_field(target: FieldDescriptorProto, name: str, text: str) -> None:
    if name == "json_name":
        target.json_name = text
    elif target.type == FieldDescriptorProto.TYPE_BYTES:
        target.default_value = "".join(_escaped_byte(byte) for byte in text.encode("latin-1", "replace"))
    else:
        target.default_value = text


def _escaped_byte(byte: int) -> str:
    character = chr(byte)
    return character if character.isprintable() and byte < 127 and character not in "\\\"'" else f"\\{byte:03o}"


def _entry_name(field_name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in field_name.split("_")) + "Entry"


def _edition(text: str) -> Any:
    try:
        return Edition.Value(f"EDITION_{text}")
    except ValueError:
        raise InvalidSchemaError(f"Invalid Protobuf schema: the edition {text!r} is unknown") from None


def _ranges(reserved: Iterable[Reserved]) -> Iterator[Range]:
    return (value for statement in reserved for value in statement.values if isinstance(value, Range))


def _names(reserved: Iterable[Reserved]) -> Iterator[str]:
    return (value for statement in reserved for value in statement.values if isinstance(value, str))
