"""What an application gives a toolkit client: servers, properties of any plain type, serdes by object or by name.

`client.properties` then translates what comes out. Start at `rendered_properties`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from moldau.client.connection import normalize_servers
from moldau.client.serializers import STRING, Part, serde_named
from moldau.core.errors import InvalidConfigError

__all__ = ["chosen_serde", "log_report", "rendered_properties", "without_serdes"]

_ENCODINGS = ("serializer.encoding", "deserializer.encoding")

logger = logging.getLogger("moldau.client")


def log_report(level: str, text: str) -> None:
    """Where librdkafka's complaints go unless the application wants them elsewhere: the logger `moldau.client`."""
    logger.log(logging.ERROR if level == "ERROR" else logging.WARNING, "%s", text)


def rendered_properties(servers: str | None, properties: Mapping[str, object] | None) -> dict[str, str]:
    """Properties as text, with a checked `bootstrap.servers`; `servers` wins over what the properties say.

    Raises `InvalidConfigError` where no server is named or a value is not plain.
    """
    rendered = {key: _rendered(key, value) for key, value in (properties or {}).items() if value is not None}
    rendered["bootstrap.servers"] = normalize_servers(servers or rendered.get("bootstrap.servers", ""))
    return rendered


def _rendered(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidConfigError(f"{key} must be text, a number or a truth value, not {type(value).__name__}")


def without_serdes(properties: Mapping[str, str]) -> dict[str, str]:
    """Everything but the properties that choose serdes, which librdkafka does not know."""
    suffixes = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer", *_ENCODINGS)
    return {key: value for key, value in properties.items() if not key.endswith(suffixes)}


def chosen_serde(given: Any, properties: Mapping[str, str], part: Part, kind: str) -> Any:
    """The serde object an application gave, else the one its properties name, else text.

    `kind` is `serializer` or `deserializer`.
    """
    if given is not None:
        return given
    encoding = properties.get(f"{part}.{kind}.encoding") or properties.get(f"{kind}.encoding")
    name = properties.get(f"{part}.{kind}")
    if name is not None:
        return serde_named(name, encoding)
    return serde_named("StringSerde", encoding) if encoding else STRING
