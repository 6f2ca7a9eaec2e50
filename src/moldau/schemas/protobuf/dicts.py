"""Protobuf messages as plain Python values: dicts by field name, with numbers and bytes as they are.

Unlike in Protobuf's JSON mapping, which the console tools use, 64-bit numbers stay numbers and bytes stay bytes. Enums
are their names; the types of `google.protobuf` (Timestamp, Struct and so on) look as they do in JSON. Converters are
cached per type, since a pipeline converts millions of messages of few types. Start at `MessageDicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from google.protobuf import json_format
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from moldau.schemas.errors import InvalidValueError

__all__ = ["MessageDicts"]

Descriptor = Any
"""The descriptor of a message; the library has two classes for it, and its type stubs only one."""
Read = Callable[[Any], Any]
Write = Callable[[Message, Any], None]


class _FieldRead(NamedTuple):
    name: str
    may_be_absent: bool
    read: Read | None
    """`None` for values that need no conversion."""


class MessageDicts:
    """Converts messages whose types are in one pool."""

    def __init__(self, pool: DescriptorPool | None) -> None:
        self._pool = pool
        self._reads: dict[str, list[_FieldRead]] = {}
        self._writes: dict[str, dict[str, Write]] = {}

    def to_dict(self, message: Message) -> dict[str, Any]:
        """A message's fields; fields that track presence are left out if they are not set."""
        found: dict[str, Any] = {}
        descriptor = message.DESCRIPTOR
        for name, may_be_absent, read in self._reads.get(descriptor.full_name) or self._reads_of(descriptor):
            if may_be_absent and not message.HasField(name):
                continue
            value = getattr(message, name)
            found[name] = value if read is None else read(value)
        return found

    def fill(self, message: Message, value: Any) -> None:
        """Set a message's fields from a dict; `None` leaves a field unchanged. Raises `InvalidValueError`."""
        descriptor = message.DESCRIPTOR
        if not isinstance(value, Mapping):
            raise InvalidValueError(f"{value!r:.80} is no {descriptor.full_name}: a message is a dict")
        writes = self._writes.get(descriptor.full_name) or self._writes_of(descriptor)
        for name, given in value.items():
            write = writes.get(name)
            if write is None:
                raise InvalidValueError(f"the value is no {descriptor.full_name}: it has no field {name!r}")
            if given is None:
                continue
            try:
                write(message, given)
            except (TypeError, ValueError, AttributeError, KeyError, json_format.ParseError) as error:
                raise InvalidValueError(f"{given!r:.80} is no {descriptor.full_name}.{name}: {error}") from None

    # Reading

    def _reads_of(self, descriptor: Descriptor) -> list[_FieldRead]:
        reads = [_FieldRead(field.name, field.has_presence, self._read_of(field)) for field in descriptor.fields]
        self._reads[descriptor.full_name] = reads
        return reads

    def _read_of(self, field: FieldDescriptor) -> Read | None:
        if _is_map(field):
            entry = self._read_of_one(_map_value(field))
            return dict if entry is None else lambda entries: {key: entry(entries[key]) for key in entries}
        one = self._read_of_one(field)
        if not field.is_repeated:
            return one
        return list if one is None else lambda items: [one(item) for item in items]

    def _read_of_one(self, field: FieldDescriptor) -> Read | None:
        if field.enum_type is not None:
            names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
            return lambda number: names.get(number, number)
        if field.message_type is None:
            return None
        if _is_well_known(field.message_type):
            return lambda message: json_format.MessageToDict(message, descriptor_pool=self._pool)
        return self.to_dict

    # Writing

    def _writes_of(self, descriptor: Descriptor) -> dict[str, Write]:
        writes: dict[str, Write] = {}
        for field in descriptor.fields:
            writes[field.json_name] = writes[field.name] = self._write_of(field)
        self._writes[descriptor.full_name] = writes
        return writes

    def _write_of(self, field: FieldDescriptor) -> Write:
        name = field.name
        if _is_map(field):
            return self._write_of_map(name, _map_value(field))
        if field.message_type is not None:
            fill = self._fill_of(field.message_type)
            if field.is_repeated:
                return _writing_each(name, fill)
            return lambda message, value: fill(getattr(message, name), value)
        plain = _enum_number(field.enum_type) if field.enum_type is not None else None
        if field.is_repeated:
            return lambda message, items: getattr(message, name).extend(items if plain is None else map(plain, items))
        if plain is None:
            return lambda message, value: setattr(message, name, value)
        return lambda message, value: setattr(message, name, plain(value))

    def _write_of_map(self, name: str, field: FieldDescriptor) -> Write:
        if field.message_type is not None:
            fill = self._fill_of(field.message_type)

            def write_messages(message: Message, entries: Mapping[Any, Any]) -> None:
                for key, value in entries.items():
                    fill(getattr(message, name)[key], value)

            return write_messages
        plain = _enum_number(field.enum_type) if field.enum_type is not None else None

        def write_values(message: Message, entries: Mapping[Any, Any]) -> None:
            target = getattr(message, name)
            for key, value in entries.items():
                target[key] = value if plain is None else plain(value)

        return write_values

    def _fill_of(self, descriptor: Descriptor) -> Write:
        return self._fill_well_known if _is_well_known(descriptor) else self._fill_message

    def _fill_message(self, message: Message, value: Any) -> None:
        # Marks the message as set even if none of its fields is.
        message.SetInParent()
        self.fill(message, value)

    def _fill_well_known(self, message: Message, value: Any) -> None:
        message.SetInParent()
        if isinstance(value, datetime) and message.DESCRIPTOR.full_name == Timestamp.DESCRIPTOR.full_name:
            message.FromDatetime(value)  # type: ignore[attr-defined]
        else:
            json_format.ParseDict(value, message, descriptor_pool=self._pool)


def _writing_each(name: str, fill: Write) -> Write:
    def write(message: Message, items: Iterable[Any]) -> None:
        target = getattr(message, name)
        for item in items:
            fill(target.add(), item)

    return write


def _enum_number(enum: EnumDescriptor) -> Callable[[Any], int]:
    numbers = {name: value.number for name, value in enum.values_by_name.items()}

    def number_of(value: Any) -> int:
        if isinstance(value, str) and value not in numbers:
            raise ValueError(f"{enum.full_name} has {', '.join(numbers)}")
        number: int = numbers.get(value, value)
        return number

    return number_of


def _is_map(field: FieldDescriptor) -> bool:
    return field.is_repeated and field.message_type is not None and field.message_type.GetOptions().map_entry


def _map_value(field: FieldDescriptor) -> FieldDescriptor:
    entry: Descriptor = field.message_type
    value: FieldDescriptor = entry.fields_by_name["value"]
    return value


def _is_well_known(descriptor: Descriptor) -> bool:
    return str(descriptor.full_name).startswith("google.protobuf.")
