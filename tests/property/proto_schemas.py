"""Protobuf schemas and changes people make to them, drawn at random as texts. Start at `proto_files`."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from moldau.schemas.protobuf.elements import (
    Constant,
    Enum,
    EnumConstant,
    Field,
    File,
    Message,
    OneOf,
    Option,
    Range,
    Reserved,
)

__all__ = ["changed_proto", "proto_files"]

SCALARS = [
    "int32",
    "int64",
    "uint32",
    "uint64",
    "bool",
    "sint32",
    "sint64",
    "string",
    "bytes",
    "fixed32",
    "float",
    "double",
]
KEYS = ["string", "int32", "bool"]


@st.composite
def proto_files(draw: st.DrawFn) -> File:
    """A proto3 file with two or three messages that use one another."""
    names = ["First", "Second", "Third"][: draw(st.integers(1, 3))]
    file = File(syntax="proto3", package=draw(st.sampled_from(["", "p", "p.q"])))
    file.messages = [_message(draw, name, names, depth=1) for name in names]
    file.enums = [_enum(draw, "Colour")] if draw(st.booleans()) else []
    file.options = (
        [Option("java_package", Constant("string", draw(st.text(max_size=5))))] if draw(st.booleans()) else []
    )
    return file


def _message(draw: st.DrawFn, name: str, names: list[str], depth: int) -> Message:
    message = Message(name)
    if depth and draw(st.booleans()):
        message.messages = [_message(draw, "Inner", names, depth - 1)]
    if draw(st.booleans()):
        message.enums = [_enum(draw, "Kind")]
    types = [*SCALARS, *names, *(inner.name for inner in message.messages), *(enum.name for enum in message.enums)]
    for number in draw(st.lists(st.integers(1, 9), unique=True, max_size=5)):
        field = _field(draw, number, types)
        if field.label is None and field.map_key is None and draw(st.integers(0, 3)) == 0:
            message.oneofs = message.oneofs or [OneOf("choice")]
            message.oneofs[0].fields.append(field)
        else:
            message.fields.append(field)
    if draw(st.booleans()):
        message.reserved = [Reserved((Range(20, 29), Range(40, 40))), Reserved(("gone",))]
    return message


def _field(draw: st.DrawFn, number: int, types: list[str]) -> Field:
    kind = draw(st.sampled_from(types))
    match draw(st.sampled_from(["plain", "plain", "repeated", "optional", "map"])):
        case "map":
            return Field(f"f{number}", number, kind, map_key=draw(st.sampled_from(KEYS)))
        case "plain":
            return Field(f"f{number}", number, kind)
        case label:
            options = [Option("deprecated", Constant("name", "true"))] if draw(st.booleans()) else []
            return Field(f"f{number}", number, kind, label, options=options)


def _enum(draw: st.DrawFn, name: str) -> Enum:
    count = draw(st.integers(1, 3))
    return Enum(name, [EnumConstant(f"{name.upper()}_{number}", number) for number in range(count)])


@st.composite
def changed_proto(draw: st.DrawFn, file: File) -> File:
    """The file with the first message's fields changed a little."""
    first = file.messages[0]
    fields = list(first.fields)
    match draw(st.sampled_from(["add", "remove", "type", "rename", "nothing"])):
        case "add":
            fields.append(Field("extra", 15, draw(st.sampled_from(SCALARS))))
        case "remove" if fields:
            fields.pop()
        case "type" if fields:
            fields[-1] = replace(fields[-1], type=draw(st.sampled_from(SCALARS)))
        case "rename" if fields:
            fields[0] = replace(fields[0], name="renamed")
    return replace(file, messages=[replace(first, fields=fields), *file.messages[1:]])
