"""Log lines about a group's rebalances: one at the start, one for the result.

They use Kafka's terms, so that log searches find them. Start at `log_rebalance`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.coordinator.group.classic.group import ClassicGroup
from moldau.coordinator.group.consumer.group import ConsumerGroup

__all__ = ["log_epoch", "log_generation", "log_rebalance", "some_of"]

log = logging.getLogger("moldau.coordinator.group")


def log_rebalance(group: ClassicGroup, reason: str) -> None:
    """A join phase begins."""
    log.info(
        "group %s: rebalance of generation %d with %s begins: %s",
        group.group_id,
        group.generation_id,
        _members(len(group.members)),
        reason,
    )


def log_generation(group: ClassicGroup, generation_id: int) -> None:
    """A join phase has ended."""
    if group.members:
        log.info(
            "group %s: generation %d has %s, protocol %s",
            group.group_id,
            generation_id,
            _members(len(group.members)),
            group.protocol_name,
        )
    else:
        log.info("group %s: generation %d is empty", group.group_id, generation_id)


def log_epoch(before: ConsumerGroup, after: ConsumerGroup, reason: str) -> None:
    """Log a decision about a group of the consumer protocol (KIP-848) if it started a new epoch."""
    if after.epoch != before.epoch:
        log.info("group %s: epoch %d has %s: %s", after.group_id, after.epoch, _members(len(after.members)), reason)


def some_of(member_ids: Sequence[str]) -> str:
    """The first few member ids, to keep the log line short."""
    shown = ", ".join(member_ids[:3])
    return shown if len(member_ids) <= 3 else f"{shown} and {len(member_ids) - 3} more"


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"
