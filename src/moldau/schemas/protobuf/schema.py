"""A parsed Protobuf schema and how to get one, from .proto text or compiled. Start at `parse_protobuf`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from moldau.schemas.errors import InvalidSchemaError
from moldau.schemas.parsed_schema import ParsedSchema, References, SchemaType
from moldau.schemas.protobuf.elements import File, Message
from moldau.schemas.protobuf.from_descriptor import file_from_descriptor
from moldau.schemas.protobuf.normalization import normalized, without_extensions
from moldau.schemas.protobuf.parser import parse_file
from moldau.schemas.protobuf.pools import Compiled, parse_with_extensions
from moldau.schemas.protobuf.printer import canonical_text
from moldau.schemas.protobuf.symbols import Symbols, extensions_of, symbols_of
from moldau.schemas.protobuf.validation import check_file
from moldau.schemas.protobuf.well_known import is_well_known, well_known

__all__ = ["ProtobufSchema", "parse_protobuf"]

_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")


class ProtobufSchema:
    """One .proto file with the files it imports."""

    schema_type = SchemaType.PROTOBUF

    def __init__(self, file: File, references: Mapping[str, ProtobufSchema]) -> None:
        self.file = file
        self._references = references
        self.imported = _imported_schemas(file, references)
        """The imported schemas by path: references and well-known files."""

    @property
    def references(self) -> Mapping[str, ParsedSchema]:
        return self._references

    @cached_property
    def canonical(self) -> str:
        return canonical_text(self.file)

    @property
    def name(self) -> str | None:
        """The full name of the first message, the default type of data; of the first enum if there is no message."""
        first = next(iter(self.file.messages), None) or next(iter(self.file.enums), None)
        if first is None:
            return None
        return f"{self.file.package}.{first.name}" if self.file.package else first.name

    @property
    def top_level_fields(self) -> frozenset[str]:
        first = next(iter(self.file.messages), None)
        return frozenset(field.name for field in first.all_fields()) if first else frozenset()

    def check_field_names(self) -> None:
        """Do nothing: Protobuf's own rules for names are sufficient."""

    @cached_property
    def symbols(self) -> Symbols:
        """Every visible type: those of the file, of its imports and of their public imports."""
        files = [self.file, *(schema.file for schema in self._visible())]
        return Symbols(
            (symbol for file in files for symbol in symbols_of(file)),
            (name for file in files for name in extensions_of(file)),
        )

    @cached_property
    def every_symbol(self) -> Symbols:
        """Every type of the file and all its direct and indirect imports, to resolve fields of imported messages."""
        found: dict[int, ProtobufSchema] = {}
        waiting = [self]
        while waiting:
            schema = waiting.pop()
            if id(schema) not in found:
                found[id(schema)] = schema
                waiting.extend(schema.imported.values())
        return Symbols(symbol for schema in found.values() for symbol in symbols_of(schema.file))

    @cached_property
    def compiled(self) -> Compiled:
        """The compiled schema, which encodes values; built on first use."""
        return Compiled(self)

    @staticmethod
    def well_known(path: str) -> ProtobufSchema:
        """The schema of a well-known file, which needs no reference."""
        return _well_known(path)

    def normalized(self) -> ProtobufSchema:
        return ProtobufSchema(normalized(self.file, self.symbols), self._references)

    def render(self, format: str | None) -> str:
        """The text: `serialized` is compiled, in base64; `ignore_extensions` omits extensions and custom options."""
        match format:
            case "serialized":
                return base64.b64encode(self.compiled.descriptor.SerializeToString()).decode()
            case "ignore_extensions":
                return canonical_text(without_extensions(self.file))
        return self.canonical

    def message_name(self, indexes: list[int]) -> str:
        """The full name of the message at a path of positions: `[1, 0]` is the first inside the second."""
        messages, name = self.file.messages, self.file.package
        for index in indexes or [0]:
            if not 0 <= index < len(messages):
                raise InvalidSchemaError(f"the schema has no message with the indexes {indexes}")
            message = messages[index]
            name = f"{name}.{message.name}" if name else message.name
            messages = message.messages
        return name

    def message_indexes(self, full_name: str) -> list[int]:
        """The path of positions of a message given by full name (or by its name without the package)."""
        local = full_name.removeprefix(f"{self.file.package}.") if self.file.package else full_name
        indexes: list[int] = []
        messages: list[Message] = self.file.messages
        for part in local.split("."):
            position = next((index for index, message in enumerate(messages) if message.name == part), None)
            if position is None:
                raise InvalidSchemaError(f"the schema has no message {full_name!r}")
            indexes.append(position)
            messages = messages[position].messages
        return indexes

    def _visible(self) -> list[ProtobufSchema]:
        found: dict[int, ProtobufSchema] = {}
        waiting = list(self.imported.values())
        while waiting:
            schema = waiting.pop()
            if id(schema) not in found:
                found[id(schema)] = schema
                waiting.extend(schema.imported[path] for path in schema.file.public_imports)
        return list(found.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProtobufSchema):
            return NotImplemented
        return self.canonical == other.canonical and self._references == other._references

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return f"ProtobufSchema({self.canonical!r})"


def parse_protobuf(text: str, references: References | None = None, *, validate: bool = True) -> ProtobufSchema:
    """Return the schema that a .proto text, or a compiled file in base64, describes.

    `validate` also checks what the grammar does not cover: that names exist and numbers are unused.
    """
    schema = _Parsing(references or {}).parse(text)
    if validate:
        check_file(schema.file, schema.symbols)
    return schema


class _Parsing:
    """Parses a schema and those of its references that are given as texts."""

    def __init__(self, references: References) -> None:
        self._given = references
        self._parsed: dict[str, ProtobufSchema] = {}
        self._under_way: list[str] = []

    def parse(self, text: str) -> ProtobufSchema:
        _refuse_surrogates(text)
        compiled = _parse_base64(text)
        file = parse_file(text) if compiled is None else file_from_descriptor(compiled)
        needed = {path: self._reference(path) for path in self._given}
        if compiled is not None:
            file = file_from_descriptor(
                parse_with_extensions(compiled.SerializeToString(), _imported_schemas(file, needed))
            )
        return ProtobufSchema(file, needed)

    def _reference(self, path: str) -> ProtobufSchema:
        known = self._parsed.get(path)
        if known is not None:
            return known
        if path in self._under_way:
            raise InvalidSchemaError(
                f"Invalid Protobuf schema: the imports form a cycle: {' -> '.join(self._under_way)}"
            )
        self._under_way.append(path)
        self._parsed[path] = parsed = self._parse_reference(path, self._given[path])
        self._under_way.pop()
        return parsed

    def _parse_reference(self, path: str, reference: str | ParsedSchema) -> ProtobufSchema:
        if isinstance(reference, ProtobufSchema):
            return reference
        if not isinstance(reference, str):
            raise InvalidSchemaError(
                f"reference {path!r} is a schema of type {reference.schema_type}; Protobuf can import Protobuf only"
            )
        _refuse_surrogates(reference)
        try:
            compiled = _parse_base64(reference)
            file = parse_file(reference) if compiled is None else file_from_descriptor(compiled)
            own = [inner for inner in (*file.imports, *file.public_imports) if inner in self._given]
            return ProtobufSchema(file, {inner: self._reference(inner) for inner in own})
        except InvalidSchemaError as error:
            raise InvalidSchemaError(f"reference {path!r}: {error}") from None


def _imported_schemas(file: File, references: Mapping[str, ProtobufSchema]) -> dict[str, ProtobufSchema]:
    imported: dict[str, ProtobufSchema] = {}
    for path in (*file.imports, *file.public_imports):
        if path in references:
            imported[path] = references[path]
        elif is_well_known(path):
            imported[path] = _well_known(path)
        else:
            raise InvalidSchemaError(
                f"Invalid Protobuf schema: the import {path!r} is neither a reference of the schema "
                "nor one of the well-known types"
            )
    return imported


@cache
def _well_known(path: str) -> ProtobufSchema:
    return ProtobufSchema(well_known(path), {})


def _parse_base64(text: str) -> FileDescriptorProto | None:
    """Decode a compiled file in base64, or return `None`. A .proto text always has characters that base64 lacks."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        return FileDescriptorProto.FromString(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return None


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidSchemaError(f"the Protobuf schema holds a lone surrogate at character {error.start}") from None
