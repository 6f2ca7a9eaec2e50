"""Settings that a consumer group may override, within its broker's bounds.

Start at `GROUP_KEYS` and `parse_group_overrides`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.core.config.broker_config import BrokerConfig
from moldau.core.config.broker_keys import default_value
from moldau.core.config.key import ConfigType, TopicConfigKey, at_least, keys_by_name
from moldau.core.errors import InvalidConfigError

__all__ = ["GROUP_KEYS", "HEARTBEAT_INTERVAL", "SESSION_TIMEOUT", "group_values", "parse_group_overrides"]

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"

GROUP_KEYS = keys_by_name(
    [
        TopicConfigKey(
            SESSION_TIMEOUT,
            ConfigType.INT,
            default_value("group.consumer.session.timeout.ms"),
            "Silence after which a member is removed, with the consumer protocol.",
            at_least(1),
            "group.consumer.session.timeout.ms",
        ),
        TopicConfigKey(
            HEARTBEAT_INTERVAL,
            ConfigType.INT,
            default_value("group.consumer.heartbeat.interval.ms"),
            "How often members report, with the consumer protocol.",
            at_least(1),
            "group.consumer.heartbeat.interval.ms",
        ),
    ]
)
"""Each falls back to the corresponding broker key."""

_BOUNDS = {
    SESSION_TIMEOUT: ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    HEARTBEAT_INTERVAL: ("group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
}


def group_values(overrides: Mapping[str, str], config: BrokerConfig) -> dict[str, Any]:
    """Every setting of a group with these overrides, typed."""
    return {
        name: key.parse(overrides[name]) if name in overrides else config.value(key.broker_key or name)
        for name, key in GROUP_KEYS.items()
    }


def parse_group_overrides(overrides: Mapping[str, str], config: BrokerConfig) -> None:
    """Raise `InvalidConfigError` unless these overrides are valid."""
    for name in overrides:
        if name not in GROUP_KEYS:
            raise InvalidConfigError(f"Unknown group config name: {name}")
    values = group_values(overrides, config)
    for name, (least, most) in _BOUNDS.items():
        if name not in overrides:
            continue
        if values[name] < config.value(least):
            raise InvalidConfigError(f"{name} must be at least {least} ({config.value(least)})")
        if values[name] > config.value(most):
            raise InvalidConfigError(f"{name} must be at most {most} ({config.value(most)})")
    if values[HEARTBEAT_INTERVAL] >= values[SESSION_TIMEOUT]:
        raise InvalidConfigError(f"{HEARTBEAT_INTERVAL} must be less than {SESSION_TIMEOUT}")
