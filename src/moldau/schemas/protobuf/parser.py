"""Parses a .proto text into its tree: proto2, proto3 and editions.

Only the grammar is checked here; `validation` checks that names exist and numbers are unused. Written by hand
because the maintained parser for Python (generated, 100 kB per second) would need most of a minute for the 5 MB that
a registry may receive, and its tree differs from the one a registry has to print. Start at `parse_file`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.schemas.protobuf.elements import (
    MAX_FIELD_NUMBER,
    Enum,
    EnumConstant,
    Extend,
    Extensions,
    Field,
    File,
    Message,
    OneOf,
    Range,
    Reserved,
    Rpc,
    Service,
)
from moldau.schemas.protobuf.option_parser import OptionParser
from moldau.schemas.protobuf.tokens import Tokens

__all__ = ["parse_file"]

_MAX_NESTING: Final = 32
"""The maximum nesting of messages; protoc has the same limit."""

_LABELS: Final = ("optional", "repeated", "required")
_MAX_ENUM_NUMBER: Final = 2**31 - 1


def parse_file(text: str) -> File:
    """Return the tree of a .proto text, or raise with line and reason."""
    return _Parser(text).file()


class _Parser:
    """A recursive descent parser; `_depth` limits the recursion."""

    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._options = OptionParser(self._tokens)
        self._depth = 0
        self._statements: dict[str, Callable[[File], None]] = {
            "import": self._import,
            "package": self._package,
            "option": self._file_option,
            "message": lambda file: file.messages.append(self._message()),
            "enum": lambda file: file.enums.append(self._enum()),
            "extend": lambda file: file.extends.append(self._extend(file.messages)),
            "service": lambda file: file.services.append(self._service()),
        }

    def file(self) -> File:
        tokens, file = self._tokens, File()
        if tokens.kind == "end":
            tokens.fail("the text is empty")
        if tokens.text in ("syntax", "edition"):
            self._syntax(file)
        while tokens.kind != "end":
            if tokens.accept(";"):
                continue
            statement = self._statements.get(tokens.text) if tokens.kind == "name" else None
            if statement is None:
                tokens.fail("expected message, enum, service, extend, import, package or option")
            tokens.advance()
            statement(file)
        return file

    def _syntax(self, file: File) -> None:
        tokens = self._tokens
        keyword = tokens.advance()
        tokens.expect("=")
        value = tokens.string()
        if keyword == "edition":
            file.edition = value
        elif value in ("proto2", "proto3"):
            file.syntax = value
        else:
            tokens.fail(f"the syntax {value!r} is neither proto2 nor proto3")
        tokens.expect(";")

    def _import(self, file: File) -> None:
        tokens = self._tokens
        is_public = tokens.accept("public")
        if not is_public:
            tokens.accept("weak")
        (file.public_imports if is_public else file.imports).append(tokens.string())
        tokens.expect(";")

    def _package(self, file: File) -> None:
        if file.package:
            self._tokens.fail("there is a package already")
        file.package = self._tokens.dotted_name()
        self._tokens.expect(";")

    def _file_option(self, file: File) -> None:
        file.options.append(self._options.statement())

    def _message(self) -> Message:
        message = Message(self._tokens.name("the name of a message"))
        self._message_body(message)
        return message

    def _message_body(self, message: Message) -> None:
        tokens = self._tokens
        self._descend()
        tokens.expect("{")
        while not tokens.accept("}"):
            if not tokens.accept(";"):
                self._message_statement(message)
        self._depth -= 1

    def _message_statement(self, message: Message) -> None:
        """Parse one statement. Keywords take precedence: a field type named like one is written with a leading dot."""
        tokens = self._tokens
        keyword = tokens.text
        if keyword == "option":
            tokens.advance()
            message.options.append(self._options.statement())
        elif keyword in ("message", "enum", "oneof", "extend"):
            tokens.advance()
            if keyword == "message":
                message.messages.append(self._message())
            elif keyword == "enum":
                message.enums.append(self._enum())
            elif keyword == "extend":
                message.extends.append(self._extend(message.messages))
            else:
                message.oneofs.append(self._oneof(message.messages))
        elif keyword == "reserved":
            tokens.advance()
            message.reserved.append(self._parse_reserved(MAX_FIELD_NUMBER))
        elif keyword == "extensions":
            tokens.advance()
            message.extensions.append(self._extensions())
        else:
            message.fields.append(self._field(message.messages))

    def _field(self, groups: list[Message], *, may_be_labelled: bool = True) -> Field:
        tokens = self._tokens
        label = None
        if tokens.text in _LABELS and may_be_labelled:
            label = tokens.advance()
        if tokens.text == "group":
            tokens.advance()
            return self._group(label, groups)
        if tokens.text == "map" and tokens.next_is("<"):
            return self._map_field()
        type_name = self._tokens.type_name()
        name = tokens.name("the name of a field")
        tokens.expect("=")
        number = tokens.integer()
        field = Field(name, number, type_name, label, options=self._options.bracketed_options())
        tokens.expect(";")
        return field

    def _map_field(self) -> Field:
        tokens = self._tokens
        tokens.advance()
        tokens.expect("<")
        key = tokens.name("the type of a map's keys")
        tokens.expect(",")
        value = self._tokens.type_name()
        tokens.expect(">")
        name = tokens.name("the name of a field")
        tokens.expect("=")
        number = tokens.integer()
        field = Field(name, number, value, map_key=key, options=self._options.bracketed_options())
        tokens.expect(";")
        return field

    def _group(self, label: str | None, groups: list[Message]) -> Field:
        """Parse a group (proto2 only): a field with its message. The field's name is the message's in lower case."""
        tokens = self._tokens
        name = tokens.name("the name of a group")
        if not name[0].isupper():
            tokens.fail(f"the name of a group must start with a capital letter, {name!r} does not")
        tokens.expect("=")
        number = tokens.integer()
        options = self._options.bracketed_options()
        message = Message(name)
        self._message_body(message)
        groups.append(message)
        return Field(name.lower(), number, name, label, options=options, group=message)

    def _oneof(self, groups: list[Message]) -> OneOf:
        tokens = self._tokens
        oneof = OneOf(tokens.name("the name of a oneof"))
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept(";"):
                continue
            if tokens.text == "option":
                tokens.advance()
                oneof.options.append(self._options.statement())
            elif tokens.text in _LABELS:
                tokens.fail("fields of a oneof have no label")
            else:
                oneof.fields.append(self._field(groups, may_be_labelled=False))
        return oneof

    def _enum(self) -> Enum:
        tokens = self._tokens
        enum = Enum(tokens.name("the name of an enum"))
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept(";"):
                continue
            if tokens.text == "option" and not tokens.next_is("="):
                tokens.advance()
                enum.options.append(self._options.statement())
            elif tokens.text == "reserved" and not tokens.next_is("="):
                tokens.advance()
                enum.reserved.append(self._parse_reserved(_MAX_ENUM_NUMBER))
            else:
                name = tokens.name("the name of an enum's constant")
                tokens.expect("=")
                number = tokens.integer()
                enum.constants.append(EnumConstant(name, number, self._options.bracketed_options()))
                tokens.expect(";")
        return enum

    def _extend(self, groups: list[Message]) -> Extend:
        tokens = self._tokens
        extend = Extend(self._tokens.type_name())
        tokens.expect("{")
        while not tokens.accept("}"):
            if not tokens.accept(";"):
                extend.fields.append(self._field(groups))
        return extend

    def _service(self) -> Service:
        tokens = self._tokens
        service = Service(tokens.name("the name of a service"))
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept(";"):
                continue
            if tokens.accept("option"):
                service.options.append(self._options.statement())
            else:
                tokens.expect("rpc")
                service.rpcs.append(self._rpc())
        return service

    def _rpc(self) -> Rpc:
        tokens = self._tokens
        name = tokens.name("the name of an rpc")
        request_streams, request = self._rpc_type()
        tokens.expect("returns")
        response_streams, response = self._rpc_type()
        rpc = Rpc(name, request, response, request_streams, response_streams)
        if tokens.accept("{"):
            while not tokens.accept("}"):
                if not tokens.accept(";"):
                    tokens.expect("option")
                    rpc.options.append(self._options.statement())
        else:
            tokens.expect(";")
        return rpc

    def _rpc_type(self) -> tuple[bool, str]:
        tokens = self._tokens
        tokens.expect("(")
        streams = tokens.text == "stream" and not tokens.next_is(")")
        if streams:
            tokens.advance()
        name = self._tokens.type_name()
        tokens.expect(")")
        return streams, name

    def _parse_reserved(self, maximum: int) -> Reserved:
        tokens = self._tokens
        values: list[str | Range] = []
        while True:
            if tokens.kind == "string":
                values.append(tokens.string())
            elif tokens.kind == "name":
                values.append(tokens.name())
            else:
                values.append(self._range(maximum))
            if not tokens.accept(","):
                break
        tokens.expect(";")
        return Reserved(tuple(values))

    def _extensions(self) -> Extensions:
        ranges = [self._range(MAX_FIELD_NUMBER)]
        while self._tokens.accept(","):
            ranges.append(self._range(MAX_FIELD_NUMBER))
        options = self._options.bracketed_options()
        self._tokens.expect(";")
        return Extensions(tuple(ranges), options)

    def _range(self, maximum: int) -> Range:
        tokens = self._tokens
        start = tokens.integer()
        if not tokens.accept("to"):
            return Range(start, start)
        return Range(start, maximum if tokens.accept("max") else tokens.integer())

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            self._tokens.fail(f"nested more than {_MAX_NESTING} levels deep")
