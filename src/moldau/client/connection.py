"""librdkafka clients built from Java properties.

Every tool and every class of the toolkit builds its producer, consumer or admin client here, so that properties are
translated (`client.properties.translation`) and errors in them reported in one place. `rendered_properties` turns the
properties of an application, of any plain type, into text. Log lines of clients are in `client.connection_log`. Start
at `build`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from moldau.client.connection_log import CONNECTED_DEBUG, ConnectionLog, Report
from moldau.client.properties.translation import Kind, Translated, translate
from moldau.core.errors import InvalidConfigError
from moldau.core.properties import parse_properties

__all__ = ["Report", "build", "load_properties", "log_report", "normalize_servers", "rendered_properties"]


Client = TypeVar("Client")
_ALIASES = {
    "queue.buffering.max.ms": "linger.ms",
    "message.timeout.ms": "delivery.timeout.ms",
    "compression.codec": "compression.type",
    "request.required.acks": "acks",
    "message.send.max.retries": "retries",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
}
"""librdkafka's canonical names of properties, as they occur in its errors, and the names that users know."""

_UNKNOWN_KEY = re.compile(r'No such configuration property: "([^"]+)"')


def load_properties(location: str) -> dict[str, str]:
    """Read a client properties file; raises `InvalidConfigError` when that fails."""
    try:
        return parse_properties(Path(location).read_text())
    except OSError as error:
        raise InvalidConfigError(f"cannot read {location}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidConfigError(f"{location} is not a text file") from None


def normalize_servers(servers: str) -> str:
    """A bootstrap list without blanks and chroots; the wildcard address 0.0.0.0 becomes 127.0.0.1.

    Raises `InvalidConfigError` where an entry is not `host:port`.
    """
    entries = [entry.strip() for entry in servers.split(",") if entry.strip()]
    if not entries:
        raise InvalidConfigError("No bootstrap server was given: write host:port, for example localhost:9092")
    return ",".join(_normalize_server(entry) for entry in entries)


def _normalize_server(entry: str) -> str:
    address = entry.rpartition("://")[2].partition("/")[0]
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidConfigError(
            f"Invalid url in bootstrap.servers: {entry} (write host:port, for example localhost:9092)"
        )
    return f"{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"


def build(
    factory: Callable[[dict[str, Any]], Client],
    kind: Kind,
    properties: Mapping[str, str],
    *,
    report: Report,
    title: str,
    extra: Mapping[str, Any] | None = None,
) -> tuple[Client, Translated]:
    """Create a client; properties that librdkafka does not know are ignored with a warning.

    `extra` holds librdkafka settings that are not translated, such as callbacks.
    """
    from confluent_kafka import KafkaException

    translated = translate(properties, kind)
    if translated.settings.get("group.id") == "":
        # librdkafka's Python binding crashes the process for an empty group.id.
        raise InvalidConfigError("group.id must not be empty")
    for warning in translated.warnings:
        report("WARN", warning)
    settings: dict[str, Any] = {**translated.settings, **(extra or {})}
    settings["logger"] = ConnectionLog.to(report).of_client(title)
    settings["debug"] = ",".join(filter(None, (settings.get("debug"), CONNECTED_DEBUG)))
    while True:
        try:
            return factory(settings), translated
        except KafkaException as error:
            message = error.args[0].str()
            unknown = _UNKNOWN_KEY.search(message)
            if unknown is None or unknown.group(1) not in settings:
                raise InvalidConfigError(_with_known_names(message)) from None
            report("WARN", f"{unknown.group(1)} has no counterpart here and is left out")
            del settings[unknown.group(1)]


def _with_known_names(message: str) -> str:
    for name, known in _ALIASES.items():
        message = message.replace(f'"{name}"', f'"{known}"').replace(f"`{name}`", f"`{known}`")
    return message


logger = logging.getLogger("moldau.client")


def log_report(level: str, text: str) -> None:
    """The default `report` of the toolkit: librdkafka's log lines go to the logger `moldau.client`."""
    logger.log(logging.ERROR if level == "ERROR" else logging.WARNING, "%s", text)


def rendered_properties(servers: str | None, properties: Mapping[str, object] | None) -> dict[str, str]:
    """Properties as text, with a checked `bootstrap.servers`; `servers` overrides the one in the properties.

    Raises `InvalidConfigError` where no server is named or a value is not plain.
    """
    rendered = {key: _render(key, value) for key, value in (properties or {}).items() if value is not None}
    rendered["bootstrap.servers"] = normalize_servers(servers or rendered.get("bootstrap.servers", ""))
    return rendered


def _render(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidConfigError(f"{key} must be a string, a number, True or False, not {type(value).__name__}")
