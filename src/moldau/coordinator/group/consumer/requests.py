"""ConsumerGroupHeartbeat's request and reply, independent of versions and bytes. Handlers translate."""

from __future__ import annotations

from typing import NamedTuple

from moldau.coordinator.group.consumer.assignment import Assignment
from moldau.core.errors import ErrorCode

__all__ = ["ConsumerHeartbeat", "ConsumerHeartbeatReply"]


class ConsumerHeartbeat(NamedTuple):
    """`None`, and -1 for the timeout, mean "as before"."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Assignment | None = None
    brings_member_id: bool = True
    """Whether members choose their ids themselves, as they do since version 1."""

    @property
    def is_full(self) -> bool:
        """Whether all fields are present, as clients send it when they do not know what the coordinator received."""
        has_subscription = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        return self.rebalance_timeout_ms != -1 and has_subscription and self.owned is not None


class ConsumerHeartbeatReply(NamedTuple):
    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    """`None` if the member has already received it."""
