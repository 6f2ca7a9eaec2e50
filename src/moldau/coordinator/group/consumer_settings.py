"""Settings of groups of the consumer protocol, each under Kafka's name with underscores.

Two of them a group may have of its own, within the bounds the broker sets. Start at `ConsumerSettings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["HEARTBEAT_INTERVAL", "SESSION_TIMEOUT", "ConsumerSettings"]

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
"""The names of a group's own settings; the broker's have `group.` in front."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5000
    group_consumer_min_heartbeat_interval_ms: int = 5000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: Sequence[str] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000

    @classmethod
    def of(cls, value: Callable[[str], Any]) -> ConsumerSettings:
        """Read them from a broker's configuration."""
        return cls(**{name: value(name.replace("_", ".")) for name in cls.__dataclass_fields__})

    def session_timeout_ms(self, group: Mapping[str, str]) -> int:
        asked = int(group.get(SESSION_TIMEOUT, self.group_consumer_session_timeout_ms))
        return _within(asked, self.group_consumer_min_session_timeout_ms, self.group_consumer_max_session_timeout_ms)

    def heartbeat_interval_ms(self, group: Mapping[str, str]) -> int:
        asked = int(group.get(HEARTBEAT_INTERVAL, self.group_consumer_heartbeat_interval_ms))
        return _within(
            asked, self.group_consumer_min_heartbeat_interval_ms, self.group_consumer_max_heartbeat_interval_ms
        )

    @property
    def allows_upgrade(self) -> bool:
        return self.group_consumer_migration_policy.lower() in ("bidirectional", "upgrade")

    @property
    def allows_downgrade(self) -> bool:
        return self.group_consumer_migration_policy.lower() in ("bidirectional", "downgrade")


def _within(value: int, least: int, most: int) -> int:
    """Bounds may have been narrowed after a group's value was set."""
    return max(least, min(value, most))
