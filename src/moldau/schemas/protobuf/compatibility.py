"""Whether data of one Protobuf schema can be read with another: fields are matched by number, types by wire format.

Only incompatible changes are reported. A missing label is never compared, and reordering messages is compatible: data
identifies its message by its position in the schema it was written with. Start at `differences`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.findings import NOTHING, Findings, join_findings
from moldau.schemas.incompatibility import Incompatibility, Sides, shorten
from moldau.schemas.pairs import Effort, Pairs
from moldau.schemas.parsed_schema import SchemaType
from moldau.schemas.protobuf.elements import SCALARS, Enum, Field, Message, OneOf
from moldau.schemas.protobuf.schema import ProtobufSchema
from moldau.schemas.protobuf.symbols import Symbol

__all__ = ["differences"]

_WIRE_GROUPS: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool", "enum"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "signed number"),
    **dict.fromkeys(("string", "bytes"), "text"),
    **dict.fromkeys(("fixed32", "sfixed32"), "four bytes"),
    **dict.fromkeys(("fixed64", "sfixed64"), "eight bytes"),
    "float": "float",
    "double": "double",
}
"""Types with the same wire format; a type may change to another of its group."""

_SENTENCES: Final = {
    "FIELD_KIND_CHANGED": (
        "The kind of the field at path '{path}' (scalar, message or map) is another one in {new} than in {old}"
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "A field of {old} became a member of the oneof at path '{path}' in {new}, which has other members of {old}"
    ),
    "FIELD_NAMED_TYPE_CHANGED": (
        "The message type of the field at path '{path}' in {new} does not match the one in {old}"
    ),
    "FIELD_NUMERIC_LABEL_CHANGED": (
        "The label of the numeric field at path '{path}' is another one in {new} than in {old}"
    ),
    "FIELD_SCALAR_KIND_CHANGED": "The type of the field at path '{path}' in {new} is not read like the one in {old}",
    "MESSAGE_REMOVED": "The message at path '{path}' in {old} is missing in {new}",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "Several fields of {old} became members of the oneof at path '{path}' in {new}, only one of them can be set"
    ),
    "ONEOF_FIELD_REMOVED": "The oneof's field at path '{path}' in {old} is missing in {new}",
    "PACKAGE_CHANGED": "The package is another one in {new} than in {old}",
    "REQUIRED_FIELD_ADDED": "The required field at path '{path}' in {new} is missing in {old}",
    "REQUIRED_FIELD_REMOVED": "The required field at path '{path}' in {old} is missing in {new}",
}


def differences(new: ProtobufSchema, old: ProtobufSchema, sides: Sides, effort: Effort) -> list[Incompatibility]:
    """Return why `new` cannot read data of `old`; an empty list means that it can."""
    try:
        found = _Comparison(new, old, sides, effort).compare()
    except RecursionError:
        raise InvalidSchemaError("the Protobuf schemas are nested too deeply to be compared") from None
    return found.distinct()


class _Comparison:
    def __init__(self, new: ProtobufSchema, old: ProtobufSchema, sides: Sides, effort: Effort) -> None:
        self._new, self._old = new, old
        self._words = {"new": f"the {sides.reader} schema", "old": f"the {sides.writer} schema"}
        self._effort = effort
        self._pairs = Pairs()

    def compare(self) -> Findings:
        old, new = self._old.file, self._new.file
        found = self._finding("PACKAGE_CHANGED", "#/") if old.package != new.package else NOTHING
        return found + self._types(old.messages, new.messages, _Scopes(old.package, new.package), "#")

    def _types(self, olds: list[Message], news: list[Message], scopes: _Scopes, path: str) -> Findings:
        self._effort.spend(len(news))
        successors = {message.name: message for message in news}
        found: list[Findings] = []
        for message in olds:
            place = f"{path}/{message.name}"
            successor = successors.get(message.name)
            if successor is None:
                found.append(self._finding("MESSAGE_REMOVED", place))
            else:
                found.append(self._messages(message, successor, scopes.inside(message.name), place))
        return join_findings(found)

    def _messages(self, old: Message, new: Message, scopes: _Scopes, path: str) -> Findings:
        self._effort.spend()
        place = shorten(path)
        return self._pairs.compare((id(old), id(new)), lambda: self._message(old, new, scopes, place))

    def _message(self, old: Message, new: Message, scopes: _Scopes, path: str) -> Findings:
        olds = {field.number: field for field in old.all_fields()}
        news = {field.number: field for field in new.all_fields()}
        found = [self._oneofs(old, new, path)]
        for number in sorted(olds.keys() | news.keys()):
            self._effort.spend()
            found.append(self._fields(olds.get(number), news.get(number), scopes, f"{path}/{number}"))
        found.append(self._types(old.messages, new.messages, scopes, path))
        return join_findings(found)

    def _fields(self, old: Field | None, new: Field | None, scopes: _Scopes, path: str) -> Findings:
        if new is None:
            return self._finding("REQUIRED_FIELD_REMOVED", path) if old and old.label == "required" else NOTHING
        if old is None:
            return self._finding("REQUIRED_FIELD_ADDED", path) if new.label == "required" else NOTHING
        if (old.map_key is None) != (new.map_key is None):
            return self._finding("FIELD_KIND_CHANGED", path)
        found = NOTHING
        if old.map_key is not None and new.map_key is not None:
            found += self._type_names(old.map_key, new.map_key, scopes, path)
        found += self._type_names(old.type, new.type, scopes, path)
        return found or self._labels(old, new, scopes, path)

    def _type_names(self, old: str, new: str, scopes: _Scopes, path: str) -> Findings:
        before, now = self._old_type(old, scopes), self._new_type(new, scopes)
        if isinstance(before, Symbol) and isinstance(now, Symbol):
            return self._message_types(before, now, path)
        if isinstance(before, Symbol) or isinstance(now, Symbol):
            return self._finding("FIELD_KIND_CHANGED", path)
        same = _WIRE_GROUPS.get(before) == _WIRE_GROUPS.get(now)
        return NOTHING if same else self._finding("FIELD_SCALAR_KIND_CHANGED", path)

    def _message_types(self, old: Symbol, new: Symbol, path: str) -> Findings:
        assert isinstance(old.element, Message)
        assert isinstance(new.element, Message)
        if old.local_name != new.local_name:
            return self._finding("FIELD_NAMED_TYPE_CHANGED", path)
        place = f"#/{old.local_name.replace('.', '/')}"
        found = self._messages(old.element, new.element, _Scopes(old.full_name, new.full_name), place)
        return found + self._finding("FIELD_NAMED_TYPE_CHANGED", path) if found else NOTHING

    def _labels(self, old: Field, new: Field, scopes: _Scopes, path: str) -> Findings:
        if old.label is None or new.label is None or old.label == new.label:
            return NOTHING
        kind = self._old_type(old.type, scopes)
        is_numeric = not isinstance(kind, Symbol) and _WIRE_GROUPS.get(kind) != "text"
        return self._finding("FIELD_NUMERIC_LABEL_CHANGED", path) if is_numeric else NOTHING

    def _oneofs(self, old: Message, new: Message, path: str) -> Findings:
        kept = {field.number for field in new.all_fields()}
        home = {field.number: oneof.name for oneof in old.oneofs for field in oneof.fields}
        alone = {field.number for field in old.fields}
        found: list[Findings] = []
        for oneof in new.oneofs:
            found.append(self._moved_into_oneof(oneof, home, alone, f"{path}/{oneof.name}"))
        survivors = {oneof.name for oneof in new.oneofs}
        for oneof in old.oneofs:
            if oneof.name in survivors:
                gone = (field.number for field in oneof.fields if field.number not in kept)
                found.append(self._removed_fields(gone, f"{path}/{oneof.name}"))
        return join_findings(found)

    def _moved_into_oneof(self, oneof: OneOf, home: dict[int, str], alone: set[int], path: str) -> Findings:
        """Report fields that could be set together before and are now in one oneof."""
        numbers = [field.number for field in oneof.fields]
        moved = [number for number in numbers if number in alone]
        homes = {home[number] for number in numbers if number in home}
        if len(moved) > 1:
            return self._finding("MULTIPLE_FIELDS_MOVED_TO_ONEOF", path)
        return self._finding("FIELD_MOVED_TO_EXISTING_ONEOF", path) if len(moved) + len(homes) > 1 else NOTHING

    def _removed_fields(self, numbers: Iterable[int], path: str) -> Findings:
        return join_findings(self._finding("ONEOF_FIELD_REMOVED", f"{path}/{number}") for number in numbers)

    def _old_type(self, name: str, scopes: _Scopes) -> Symbol | str:
        return _type_of(name, scopes.old, self._old)

    def _new_type(self, name: str, scopes: _Scopes) -> Symbol | str:
        return _type_of(name, scopes.new, self._new)

    def _finding(self, rule: str, path: str) -> Findings:
        place = shorten(path)
        sentence = _SENTENCES[rule].format(path=place, **self._words)
        self._effort.spend_on_text(len(sentence))
        return Findings(Incompatibility.of(SchemaType.PROTOBUF, rule, place, sentence))


class _Scopes:
    """The scopes in which names are looked up, one for each schema."""

    __slots__ = ("new", "old")

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def inside(self, name: str) -> _Scopes:
        return _Scopes(f"{self.old}.{name}" if self.old else name, f"{self.new}.{name}" if self.new else name)


def _type_of(name: str, scope: str, schema: ProtobufSchema) -> Symbol | str:
    """A message's symbol, the name of a scalar, or `enum`: enums are encoded like scalars."""
    if name in SCALARS:
        return name
    symbol = schema.every_symbol.resolve(name, scope)
    if symbol is None:
        raise InvalidSchemaError(f"Invalid Protobuf schema: the type {name!r} in {scope or 'the file'} is unknown")
    return "enum" if isinstance(symbol.element, Enum) else symbol
