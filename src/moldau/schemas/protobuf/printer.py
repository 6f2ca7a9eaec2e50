"""Prints a .proto tree as text, the form that a registry stores and compares.

Statements come in a fixed order (messages before enums, plain fields before oneofs), everything else as written.
`normalized` sorts what may be in any order, and writes names in full. Start at `canonical_text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.schemas.protobuf.elements import (
    MAX_FIELD_NUMBER,
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
    Sequence,
    Service,
)

__all__ = ["canonical_text", "quote"]

_ESCAPES = str.maketrans(
    {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
    | {"\\": r"\\", "'": r"\'", '"': r"\""}
    | {chr(code): f"\\{code:03o}" for code in (*range(7), *range(14, 32), 127)}
)


def canonical_text(file: File) -> str:
    """The text of a file, with an empty line between sections."""
    head = [f'syntax = "{file.syntax}";'] if file.syntax else []
    head += [f'edition = "{file.edition}";'] if file.edition else []
    head += [f"package {file.package};"] if file.package else []
    imports = [f"import {quote(path)};" for path in file.imports]
    imports += [f"import public {quote(path)};" for path in file.public_imports]
    groups = _groups((), (), file.extends)
    types = [line for message in file.messages if id(message) not in groups for line in _message(message)]
    types += [line for enum in file.enums for line in _enum(enum)]
    extends = [line for extend in file.extends for line in _extend(extend)]
    services = [line for service in file.services for line in _service(service)]
    sections = [imports, _options(file.options), types, extends, services]
    lines = list(head)
    for section in sections:
        lines += ["", *section] if section else []
    return "".join(f"{line}\n" for line in lines)


def quote(text: str) -> str:
    """The text in quotes, with special characters escaped."""
    return f'"{text.translate(_ESCAPES)}"'


def _message(message: Message, opening: str | None = None) -> list[str]:
    groups = _groups(message.fields, message.oneofs, message.extends)
    plain = [line for field in message.fields if field.group is None for line in _field(field)]
    nested = [line for inner in message.messages if id(inner) not in groups for line in _message(inner)]
    nested += [line for enum in message.enums for line in _enum(enum)]
    sections = [
        [_reserved_text(reserved, MAX_FIELD_NUMBER) for reserved in message.reserved],
        _options(message.options),
        plain,
        [line for oneof in message.oneofs for line in _oneof(oneof)],
        [line for field in message.fields if field.group is not None for line in _field(field)],
        [line for extensions in message.extensions for line in _extensions(extensions)],
        [line for extend in message.extends for line in _extend(extend)],
        nested,
    ]
    return _block(opening or f"message {message.name}", sections)


def _groups(fields: Iterable[Field], oneofs: Iterable[OneOf], extends: Iterable[Extend]) -> set[int]:
    """The `id()` of each group's message, which is printed in place of its field."""
    every = [*fields, *(field for oneof in oneofs for field in oneof.fields)]
    every += [field for extend in extends for field in extend.fields]
    return {id(field.group) for field in every if field.group is not None}


def _field(field: Field) -> list[str]:
    label = f"{field.label} " if field.label else ""
    if field.group is not None:
        return _message(field.group, f"{label}group {field.group.name} = {field.number}{_inline(field.options)}")
    type_name = f"map<{field.map_key}, {field.type}>" if field.map_key else field.type
    return _with_options(f"{label}{type_name} {field.name} = {field.number}", field.options)


def _oneof(oneof: OneOf) -> list[str]:
    plain = [line for field in oneof.fields if field.group is None for line in _field(field)]
    groups = [line for field in oneof.fields if field.group is not None for line in _field(field)]
    return _block(f"oneof {oneof.name}", [_options(oneof.options), plain, groups])


def _enum(enum: Enum) -> list[str]:
    constants = [line for constant in enum.constants for line in _constant_lines(constant)]
    reserved = [_reserved_text(reserved, 2**31 - 1) for reserved in enum.reserved]
    return _block(f"enum {enum.name}", [reserved + _options(enum.options) + constants])


def _constant_lines(constant: EnumConstant) -> list[str]:
    return _with_options(f"{constant.name} = {constant.number}", constant.options)


def _extend(extend: Extend) -> list[str]:
    return _block(f"extend {extend.type}", [[line for field in extend.fields for line in _field(field)]])


def _service(service: Service) -> list[str]:
    rpcs = [line for rpc in service.rpcs for line in _rpc(rpc)]
    return _block(f"service {service.name}", [_options(service.options), rpcs])


def _rpc(rpc: Rpc) -> list[str]:
    request = f"{'stream ' if rpc.request_streams else ''}{rpc.request}"
    response = f"{'stream ' if rpc.response_streams else ''}{rpc.response}"
    signature = f"rpc {rpc.name} ({request}) returns ({response})"
    if not rpc.options:
        return [f"{signature};"]
    return [f"{signature} {{", *_indent(_options(rpc.options)), "};"]


def _reserved_text(reserved: Reserved, maximum: int) -> str:
    values = [quote(value) if isinstance(value, str) else _range(value, maximum) for value in reserved.values]
    return f"reserved {', '.join(values)};"


def _extensions(extensions: Extensions) -> list[str]:
    ranges = ", ".join(_range(numbers, MAX_FIELD_NUMBER) for numbers in extensions.ranges)
    return _with_options(f"extensions {ranges}", extensions.options)


def _range(numbers: Range, maximum: int) -> str:
    if numbers.start == numbers.end:
        return str(numbers.start)
    return f"{numbers.start} to {'max' if numbers.end >= maximum else numbers.end}"


def _options(options: Iterable[Option]) -> list[str]:
    return [line for option in options for line in _end_option("option ", option, ";")]


def _end_option(prefix: str, option: Option, end: str) -> list[str]:
    lines = _option(option)
    lines[0] = prefix + lines[0]
    lines[-1] += end
    return lines


def _with_options(start: str, options: list[Option]) -> list[str]:
    """A statement with its options: a single one on the same line, several on lines of their own."""
    if not options:
        return [f"{start};"]
    if len(options) == 1:
        lines = _option(options[0])
        lines[0] = f"{start} [{lines[0]}"
        lines[-1] += "];"
        return lines
    listed = [
        line
        for position, option in enumerate(options)
        for line in _list_option(_option(option), position, len(options))
    ]
    return [f"{start} [", *_indent(listed), "];"]


def _inline(options: list[Option]) -> str:
    return f" [{', '.join(' '.join(_option(option)) for option in options)}]" if options else ""


def _option(option: Option) -> list[str]:
    value = option.value
    if isinstance(value, Sequence) and len(value.items) == 1:
        lines = _value(value.items[0])
        lines[0] = f"[{lines[0]}"
        lines[-1] += "]"
    else:
        lines = _value(value)
    return [f"{option.name} = {lines[0]}", *lines[1:]]


def _value(value: OptionValue) -> list[str]:
    match value:
        case Constant("string", text):
            return [quote(text)]
        case Constant():
            return [value.text]
        case Sequence():
            listed = [
                line
                for position, item in enumerate(value.items)
                for line in _list_option(_value(item), position, len(value.items))
            ]
            return ["[", *_indent(listed), "]"] if listed else ["[]"]
        case Aggregate():
            listed = [
                line
                for position, (name, item) in enumerate(value.entries)
                for line in _list_option(_entry(name, item), position, len(value.entries))
            ]
            return ["{", *_indent(listed), "}"] if listed else ["{}"]


def _entry(name: str, value: OptionValue) -> list[str]:
    lines = _value(value)
    return [f"{name}: {lines[0]}", *lines[1:]]


def _list_option(lines: list[str], position: int, count: int) -> list[str]:
    return [*lines[:-1], f"{lines[-1]},"] if position < count - 1 else lines


def _block(opening: str, sections: list[list[str]]) -> list[str]:
    """A statement with a body, with an empty line between sections."""
    body: list[str] = []
    for section in sections:
        if section:
            body += ["", *section] if body else section
    return [f"{opening} {{", *_indent(body), "}"] if body else [f"{opening} {{}}"]


def _indent(lines: Iterable[str]) -> Iterator[str]:
    """Indent all lines, also empty ones: other registries store texts in this form, and ours must be equal."""
    return (f"  {line}" for line in lines)
