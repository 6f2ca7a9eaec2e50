"""Normalizes .proto trees, so that texts with the same meaning become equal, and removes extensions.

Messages keep their order: data identifies its message by position. Start at `normalized`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from moldau.schemas.protobuf.elements import (
    SCALARS,
    Enum,
    Extend,
    Extensions,
    Field,
    File,
    Message,
    OneOf,
    Option,
    Range,
    Reserved,
    Rpc,
    Service,
)
from moldau.schemas.protobuf.symbols import Symbols

__all__ = ["normalized", "without_extensions"]


def normalized(file: File, symbols: Symbols) -> File:
    """The file with fields sorted by number, imports and options by name, and full type names."""
    return _Normalizing(symbols).file(file)


def without_extensions(file: File) -> File:
    """The file without extensions and without custom options, except Confluent's own."""
    return replace(
        file,
        options=_plain(file.options),
        extends=[],
        messages=[_message_without(message) for message in file.messages],
        enums=[_enum_without(enum) for enum in file.enums],
        services=[
            replace(
                service,
                options=_plain(service.options),
                rpcs=[replace(rpc, options=_plain(rpc.options)) for rpc in service.rpcs],
            )
            for service in file.services
        ],
    )


def _plain(options: Iterable[Option]) -> list[Option]:
    return [option for option in options if not option.is_custom or option.name.startswith("(confluent.")]


def _message_without(message: Message) -> Message:
    inner = {id(nested): _message_without(nested) for nested in message.messages}

    def plain(field: Field) -> Field:
        return replace(field, options=_plain(field.options), group=inner.get(id(field.group)))

    return replace(
        message,
        options=_plain(message.options),
        fields=[plain(field) for field in message.fields],
        oneofs=[
            replace(oneof, options=_plain(oneof.options), fields=[plain(field) for field in oneof.fields])
            for oneof in message.oneofs
        ],
        messages=list(inner.values()),
        enums=[_enum_without(enum) for enum in message.enums],
        extensions=[],
        extends=[],
    )


def _enum_without(enum: Enum) -> Enum:
    constants = [replace(constant, options=_plain(constant.options)) for constant in enum.constants]
    return replace(enum, options=_plain(enum.options), constants=constants)


class _Normalizing:
    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def file(self, file: File) -> File:
        scope = file.package
        groups: dict[int, Message] = {}
        messages = [self._message(message, scope, groups) for message in file.messages]
        return replace(
            file,
            syntax="proto3" if file.is_proto3 else None,
            imports=sorted(set(file.imports)),
            public_imports=sorted(set(file.public_imports)),
            options=self._options(file.options, scope),
            messages=messages,
            enums=[self._enum(enum, scope) for enum in file.enums],
            extends=self._extends(file.extends, scope, groups),
            services=[self._service(service, scope) for service in file.services],
        )

    def _message(self, message: Message, outer: str, groups: dict[int, Message]) -> Message:
        scope = f"{outer}.{message.name}" if outer else message.name
        inner: dict[int, Message] = {}
        messages = [self._message(nested, scope, inner) for nested in message.messages]
        oneofs = [self._oneof(oneof, scope, inner) for oneof in message.oneofs if oneof.fields]
        result = Message(
            message.name,
            fields=self._fields(message.fields, scope, inner),
            oneofs=sorted(oneofs, key=lambda oneof: oneof.fields[0].number),
            messages=messages,
            enums=[self._enum(enum, scope) for enum in message.enums],
            reserved=_one_by_one(message.reserved),
            extensions=_extensions_one_by_one(message.extensions),
            extends=self._extends(message.extends, scope, inner),
            options=self._options(message.options, scope),
        )
        groups[id(message)] = result
        return result

    def _fields(self, fields: Iterable[Field], scope: str, groups: dict[int, Message]) -> list[Field]:
        return sorted((self._field(field, scope, groups) for field in fields), key=lambda field: field.number)

    def _field(self, field: Field, scope: str, groups: dict[int, Message]) -> Field:
        group = groups.get(id(field.group))
        type_name = field.type if group or field.type in SCALARS else self._spelled_out(field.type, scope)
        return replace(field, type=type_name, group=group, options=self._options(field.options, scope))

    def _oneof(self, oneof: OneOf, scope: str, groups: dict[int, Message]) -> OneOf:
        return OneOf(oneof.name, self._fields(oneof.fields, scope, groups), self._options(oneof.options, scope))

    def _enum(self, enum: Enum, scope: str) -> Enum:
        constants = [replace(item, options=self._options(item.options, scope)) for item in enum.constants]
        constants.sort(key=lambda constant: (constant.number, constant.name))
        return Enum(enum.name, constants, _one_by_one(enum.reserved), self._options(enum.options, scope))

    def _extends(self, extends: Iterable[Extend], scope: str, groups: dict[int, Message]) -> list[Extend]:
        by_type: dict[str, list[Field]] = {}
        for extend in extends:
            by_type.setdefault(self._spelled_out(extend.type, scope), []).extend(extend.fields)
        return [Extend(name, self._fields(fields, scope, groups)) for name, fields in by_type.items()]

    def _service(self, service: Service, scope: str) -> Service:
        rpcs = [self._rpc(rpc, scope) for rpc in service.rpcs]
        return Service(service.name, rpcs, self._options(service.options, scope))

    def _rpc(self, rpc: Rpc, scope: str) -> Rpc:
        request, response = self._spelled_out(rpc.request, scope), self._spelled_out(rpc.response, scope)
        return replace(rpc, request=request, response=response, options=self._options(rpc.options, scope))

    def _options(self, options: Iterable[Option], scope: str) -> list[Option]:
        return sorted((self._option(option, scope) for option in options), key=lambda option: option.name)

    def _option(self, option: Option, scope: str) -> Option:
        if not option.is_custom:
            return option
        written, _, rest = option.name[1:].partition(")")
        extension = self._symbols.resolve_extension(written, scope)
        return option if extension is None else Option(f"({extension}){rest}", option.value)

    def _spelled_out(self, name: str, scope: str) -> str:
        symbol = self._symbols.resolve(name, scope)
        return name if symbol is None else f".{symbol.full_name}"


def _one_by_one(statements: Iterable[Reserved]) -> list[Reserved]:
    values = [value for statement in statements for value in statement.values]
    numbers = sorted((value for value in values if isinstance(value, Range)), key=lambda item: (item.start, item.end))
    names = sorted(value for value in values if isinstance(value, str))
    return [*(Reserved((value,)) for value in numbers), *(Reserved((name,)) for name in names)]


def _extensions_one_by_one(statements: Iterable[Extensions]) -> list[Extensions]:
    single = [Extensions((numbers,), statement.options) for statement in statements for numbers in statement.ranges]
    return sorted(single, key=lambda extensions: extensions.ranges[0].start)
