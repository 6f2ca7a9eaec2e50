"""Formatters of the console consumer: the text printed for a record, set by the formatter properties.

No I/O: from a message to bytes. The common case, only values, has a separate fast path, since it runs once
per record. Start at `formatter_for`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from moldau.cli.options import parse_bool
from moldau.cli.tool import ToolError, log_line

if TYPE_CHECKING:
    from moldau.cli.console.serdes import Deserializer
    from moldau.serdes.serde import Part

__all__ = ["Formatter", "Message", "formatter_for"]

CREATE_TIME, LOG_APPEND_TIME = 1, 2
COORDINATOR_FORMATTERS = frozenset(
    {"OffsetsMessageFormatter", "GroupMetadataMessageFormatter", "TransactionLogMessageFormatter"}
)
SCHEMA_FORMATTERS = frozenset({"AvroMessageFormatter", "JsonSchemaMessageFormatter", "ProtobufMessageFormatter"})


class Message(Protocol):
    """The methods of confluent_kafka's message that formatters use."""

    def key(self) -> Any: ...
    def value(self) -> Any: ...
    def headers(self) -> Any: ...
    def timestamp(self) -> tuple[int, int]: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def leader_epoch(self) -> int | None: ...
    def topic(self) -> str | None: ...


Formatter = Callable[[Message], bytes]


def formatter_for(class_name: str | None, properties: Mapping[str, str]) -> Formatter:
    """The formatter for a Java class name; raises `ToolError` for an unknown class."""
    simple = (class_name or "DefaultMessageFormatter").rsplit(".", 1)[-1].rsplit("$", 1)[-1]
    if simple == "DefaultMessageFormatter":
        return default_formatter(properties)
    if simple == "LoggingMessageFormatter":
        return logging_formatter(properties)
    if simple == "NoOpMessageFormatter":
        return lambda message: b""
    if simple in COORDINATOR_FORMATTERS:
        # Imported only here: other topics do not need the coordinators' schemas.
        from moldau.cli.console.coordinator_formatters import coordinator_formatter

        return coordinator_formatter(simple)
    if simple in SCHEMA_FORMATTERS:
        from moldau.cli.console.schema_records import schema_formatter

        return schema_formatter(properties)
    raise ToolError(
        f"{class_name} is not available: there is DefaultMessageFormatter, LoggingMessageFormatter, "
        f"NoOpMessageFormatter, {', '.join(sorted(COORDINATOR_FORMATTERS | SCHEMA_FORMATTERS))}"
    )


def default_formatter(
    properties: Mapping[str, str],
    *,
    key_reader: Deserializer | None = None,
    value_reader: Deserializer | None = None,
) -> Formatter:
    """The formatter for timestamp, partition, offset, epoch, headers, key, value, as the properties request.

    The readers decode keys and values if the properties name no deserializer.
    """
    shows = {field: parse_bool(properties.get(f"print.{field}", "false")) for field in _FIELDS}
    shows["value"] = parse_bool(properties.get("print.value", "true"))
    line_end = properties.get("line.separator", "\n").encode()
    null = properties.get("null.literal", "null").encode()
    value_reader = value_reader or _deserializer(properties, "value")
    if shows["value"] and not any(shows[field] for field in _FIELDS) and value_reader is None:
        return _values_only(line_end, null)

    separator = properties.get("key.separator", "\t").encode()
    key_reader = key_reader or _deserializer(properties, "key")
    header_reader = _deserializer(properties, "headers")
    between_headers = properties.get("headers.separator", ",").encode()
    renderers: dict[str, Formatter] = {
        "timestamp": _timestamp,
        "partition": lambda message: b"Partition:%d" % (message.partition() or 0),
        "offset": lambda message: b"Offset:%d" % (message.offset() or 0),
        "epoch": _epoch,
        "headers": lambda message: _headers(message, between_headers, header_reader, null),
        "key": lambda message: _content(message.key(), key_reader, null),
        "value": lambda message: _content(message.value(), value_reader, null),
    }
    chosen = [render for field, render in renderers.items() if shows[field]]
    if not chosen:
        return lambda message: b""
    return lambda message: separator.join([render(message) for render in chosen]) + line_end


def _deserializer(properties: Mapping[str, str], part: Part | Literal["headers"]) -> Deserializer | None:
    """The deserializer named by `key.deserializer`, `value.deserializer` or `headers.deserializer`."""
    name = properties.get(f"{part}.deserializer")
    if part == "headers":
        name = name or properties.get("header.deserializer")
    if not name:
        return None
    # Imported only here: most records are printed as they are.
    from moldau.cli.console.serdes import deserializer_named

    return deserializer_named(name, properties, part)


def logging_formatter(properties: Mapping[str, str]) -> Formatter:
    """The default formatter, which also writes a log line for each record."""
    default = default_formatter(properties)

    def render(message: Message) -> bytes:
        key, value = (
            _content(part, None, b"null").decode(errors="replace") for part in (message.key(), message.value())
        )
        text = f"{_timestamp(message).decode()}, key:{key}, value:{value}"
        log_line("INFO", text, "org.apache.kafka.tools.consumer.LoggingMessageFormatter")
        return default(message)

    return render


_FIELDS = ("timestamp", "partition", "offset", "epoch", "headers", "key")


def _values_only(line_end: bytes, null: bytes) -> Formatter:
    def render(message: Message) -> bytes:
        value = message.value()
        return (null if value is None else value) + line_end

    return render


def _timestamp(message: Message) -> bytes:
    kind, milliseconds = message.timestamp()
    if kind == CREATE_TIME:
        return b"CreateTime:%d" % milliseconds
    if kind == LOG_APPEND_TIME:
        return b"LogAppendTime:%d" % milliseconds
    return b"NO_TIMESTAMP"


def _epoch(message: Message) -> bytes:
    epoch = message.leader_epoch()
    return b"NO_EPOCH" if epoch is None else b"Epoch:%d" % epoch


def _headers(message: Message, separator: bytes, reader: Deserializer | None, null: bytes) -> bytes:
    headers = message.headers()
    if not headers:
        return b"NO_HEADERS"
    return separator.join([name.encode() + b":" + _content(value, reader, null) for name, value in headers])


def _content(content: bytes | str | None, reader: Deserializer | None, null: bytes) -> bytes:
    if content is None:
        return null
    raw = content.encode() if isinstance(content, str) else content
    return raw if reader is None else reader(raw)
