"""What an application gives a toolkit client: servers and properties of any plain type.

`client.properties` then translates what comes out; serdes are `client.serialization`. Start at `rendered_properties`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from moldau.client.connection import normalize_servers
from moldau.core.errors import InvalidConfigError

__all__ = ["log_report", "rendered_properties"]

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
