"""Settings of groups of the consumer protocol (KIP-848).

A group may override two of them, within the broker's bounds. Start at `ConsumerSettings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.core.config.group_keys import HEARTBEAT_INTERVAL, SESSION_TIMEOUT
from moldau.core.config.sections import setting

__all__ = ["ConsumerSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    group_coordinator_rebalance_protocols: Sequence[str] = setting("group.coordinator.rebalance.protocols")
    """The protocols that groups may use: `classic`, `consumer`."""
    group_consumer_session_timeout_ms: int = setting("group.consumer.session.timeout.ms")
    group_consumer_min_session_timeout_ms: int = setting("group.consumer.min.session.timeout.ms")
    group_consumer_max_session_timeout_ms: int = setting("group.consumer.max.session.timeout.ms")
    group_consumer_heartbeat_interval_ms: int = setting("group.consumer.heartbeat.interval.ms")
    group_consumer_min_heartbeat_interval_ms: int = setting("group.consumer.min.heartbeat.interval.ms")
    group_consumer_max_heartbeat_interval_ms: int = setting("group.consumer.max.heartbeat.interval.ms")
    group_consumer_max_size: int = setting("group.consumer.max.size")
    group_consumer_assignors: Sequence[str] = setting("group.consumer.assignors", tuple)
    group_consumer_migration_policy: str = setting("group.consumer.migration.policy")
    group_consumer_regex_refresh_interval_ms: int = setting("group.consumer.regex.refresh.interval.ms")

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
    """Clamp a group's value: the bounds may have been narrowed after it was set."""
    return max(least, min(value, most))
