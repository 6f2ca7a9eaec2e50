"""All broker settings in one table, collected from the modules of each subject. Start at `BROKER_KEYS`."""

from __future__ import annotations

from typing import Any

from moldau.core.config.coordinator_keys import COORDINATOR_KEYS
from moldau.core.config.key import ConfigKey, keys_by_name
from moldau.core.config.log_keys import LOG_KEYS
from moldau.core.config.network_keys import NETWORK_KEYS
from moldau.core.config.replication_keys import REPLICATION_KEYS
from moldau.core.config.schema_keys import SCHEMA_KEYS
from moldau.core.config.security_keys import SECURITY_KEYS

__all__ = ["BROKER_KEYS", "LISTENER_PREFIX", "base_key", "default_value", "scale_units"]

BROKER_KEYS = keys_by_name(
    [*NETWORK_KEYS, *LOG_KEYS, *REPLICATION_KEYS, *COORDINATOR_KEYS, *SECURITY_KEYS, *SCHEMA_KEYS]
)

LISTENER_PREFIX = "listener.name."


def base_key(name: str) -> ConfigKey | None:
    """The key that a setting is an instance of, without its `listener.name.<listener>.[<mechanism>.]` prefix."""
    key = BROKER_KEYS.get(name)
    if key is not None or not name.startswith(LISTENER_PREFIX):
        return key
    _, _, rest = name[len(LISTENER_PREFIX) :].partition(".")
    if rest in BROKER_KEYS:
        return BROKER_KEYS[rest]
    _, _, after_mechanism = rest.partition(".")
    return BROKER_KEYS.get(after_mechanism)


def default_value(name: str) -> Any:
    """A key's built-in default, which may be that of a key with a coarser unit (hours for ms)."""
    key = BROKER_KEYS[name]
    for synonym, factor, _ in key.synonyms:
        default = BROKER_KEYS[synonym].default
        if default is not None:
            return scale_units(default, factor)
    return key.default


def scale_units(value: Any, factor: int) -> Any:
    """Coarse units to fine ones; -1 means no limit in any unit."""
    return value if factor == 1 or value == -1 else value * factor
