"""Validates a .proto tree: names must exist, numbers must be unused, and its syntax must allow what it uses.

Only the first error is reported, with its message and field. Start at `check_file`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.protobuf.elements import (
    MAX_FIELD_NUMBER,
    SCALARS,
    Enum,
    Extend,
    Field,
    File,
    Message,
    Range,
    Reserved,
)
from moldau.schemas.protobuf.symbols import Symbols

__all__ = ["check_file"]

_MAP_KEYS: Final = SCALARS - {"bytes", "double", "float"}
_INTERNAL: Final = Range(19_000, 19_999)
"""Field numbers that Protobuf reserves for itself."""


def check_file(file: File, symbols: Symbols) -> None:
    """Raise for the first error in a file whose visible types are `symbols`."""
    _Check(file, symbols).run()


class _Check:
    def __init__(self, file: File, symbols: Symbols) -> None:
        self._file = file
        self._symbols = symbols

    def run(self) -> None:
        file = self._file
        self._unique(file.package, _names_at_top(file))
        for message in file.messages:
            self._message(message, file.package)
        for enum in file.enums:
            self._enum(enum, file.package)
        for extend in file.extends:
            self._extend(extend, file.package)
        for service in file.services:
            self._unique(_full_name(file.package, service.name), (rpc.name for rpc in service.rpcs))
            for rpc in service.rpcs:
                for name in (rpc.request, rpc.response):
                    self._known_type(name, file.package, f"rpc {service.name}.{rpc.name}", needs_message=True)

    def _message(self, message: Message, scope: str) -> None:
        full_name = _full_name(scope, message.name)
        self._unique(full_name, _names_in(message))
        self._numbers(message, full_name)
        for field in message.all_fields():
            self._field(field, full_name)
        for inner in message.messages:
            self._message(inner, full_name)
        for enum in message.enums:
            self._enum(enum, full_name)
        for extend in message.extends:
            self._extend(extend, full_name)
        for oneof in message.oneofs:
            if not oneof.fields:
                raise _invalid(f"oneof {full_name}.{oneof.name} has no fields")

    def _numbers(self, message: Message, full_name: str) -> None:
        names, ranges = _reserved_names_and_ranges(message.reserved)
        ranges += [numbers for extensions in message.extensions for numbers in extensions.ranges]
        taken: dict[int, str] = {}
        for field in message.all_fields():
            where = f"field {full_name}.{field.name}"
            if field.number in taken:
                raise _invalid(f"{where} has the number {field.number} of field {taken[field.number]!r}")
            taken[field.number] = field.name
            if field.name in names:
                raise _invalid(f"{where} uses a reserved name")
        _refuse_taken(taken, ranges, full_name)

    def _field(self, field: Field, scope: str) -> None:
        where = f"field {scope}.{field.name}"
        if not 1 <= field.number <= MAX_FIELD_NUMBER or _INTERNAL.start <= field.number <= _INTERNAL.end:
            raise _invalid(
                f"{where} has the number {field.number}; allowed are 1 to {MAX_FIELD_NUMBER} "
                f"without {_INTERNAL.start} to {_INTERNAL.end}"
            )
        if field.map_key is not None and field.map_key not in _MAP_KEYS:
            raise _invalid(
                f"{where} is a map with keys of type {field.map_key}; allowed are whole numbers, bool, string"
            )
        if self._file.is_proto3 and (field.label == "required" or field.group is not None):
            raise _invalid(f"{where} is {'a group' if field.group else 'required'}, which proto3 does not have")
        if self._file.is_proto3 and any(option.name == "default" for option in field.options):
            raise _invalid(f"{where} has a default, which proto3 does not have")
        if field.group is None and field.type not in SCALARS:
            self._known_type(field.type, scope, where)

    def _extend(self, extend: Extend, scope: str) -> None:
        self._known_type(extend.type, scope, f"extend in {scope or 'the file'}", needs_message=True)
        for field in extend.fields:
            self._field(field, scope)

    def _known_type(self, name: str, scope: str, where: str, *, needs_message: bool = False) -> None:
        symbol = self._symbols.resolve(name, scope)
        if symbol is None:
            raise _invalid(f"{where} has the type {name!r}, which neither the schema nor an import defines")
        if needs_message and not isinstance(symbol.element, Message):
            raise _invalid(f"{where} needs a message, {name!r} is an enum")

    def _enum(self, enum: Enum, scope: str) -> None:
        full_name = _full_name(scope, enum.name)
        if not enum.constants:
            raise _invalid(f"enum {full_name} has no constants")
        if self._file.is_proto3 and enum.constants[0].number != 0:
            raise _invalid(f"enum {full_name} must begin with the number 0 in proto3")
        allows_alias = any(option.name == "allow_alias" and option.value_text == "true" for option in enum.options)
        names, ranges = _reserved_names_and_ranges(enum.reserved)
        taken: dict[int, str] = {}
        for constant in enum.constants:
            where = f"constant {full_name}.{constant.name}"
            if not -(2**31) <= constant.number < 2**31:
                raise _invalid(f"{where} has the number {constant.number}, which needs more than 32 bits")
            if constant.number in taken and not allows_alias:
                raise _invalid(
                    f"{where} has the number {constant.number} of {taken[constant.number]!r}; allow_alias is not set"
                )
            taken[constant.number] = constant.name
            if constant.name in names:
                raise _invalid(f"{where} uses a reserved name")
        _refuse_taken(taken, ranges, full_name)

    def _unique(self, scope: str, names: Iterable[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise _invalid(f"{_full_name(scope, name)!r} is defined twice")
            seen.add(name)


def _names_at_top(file: File) -> Iterator[str]:
    """The names in the file's scope. Enum constants belong to the scope around their enum."""
    yield from (message.name for message in file.messages)
    yield from (service.name for service in file.services)
    yield from (field.name for extend in file.extends for field in extend.fields)
    for enum in file.enums:
        yield enum.name
        yield from (constant.name for constant in enum.constants)


def _names_in(message: Message) -> Iterator[str]:
    yield from (field.name for field in message.all_fields())
    yield from (oneof.name for oneof in message.oneofs)
    yield from (inner.name for inner in message.messages)
    yield from (field.name for extend in message.extends for field in extend.fields)
    for enum in message.enums:
        yield enum.name
        yield from (constant.name for constant in enum.constants)


def _reserved_names_and_ranges(statements: Iterable[Reserved]) -> tuple[set[str], list[Range]]:
    values = [value for statement in statements for value in statement.values]
    return {value for value in values if isinstance(value, str)}, [
        value for value in values if isinstance(value, Range)
    ]


def _refuse_taken(taken: dict[int, str], ranges: list[Range], full_name: str) -> None:
    """Raise if a reserved number is used. One pass over sorted numbers and ranges, since there may be many of both."""
    ordered = sorted(ranges, key=lambda numbers: (numbers.start, numbers.end))
    position, furthest = 0, None
    for number in sorted(taken):
        while position < len(ordered) and ordered[position].start <= number:
            furthest = max(ordered[position].end, furthest if furthest is not None else ordered[position].end)
            position += 1
        if furthest is not None and number <= furthest:
            raise _invalid(f"{full_name}.{taken[number]} uses the reserved number {number}")
    backwards = next((numbers for numbers in ranges if numbers.end < numbers.start), None)
    if backwards is not None:
        raise _invalid(f"{full_name} has a range of numbers from {backwards.start} to {backwards.end}, which is none")


def _full_name(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _invalid(problem: str) -> InvalidSchemaError:
    return InvalidSchemaError(f"Invalid Protobuf schema: {problem}")
