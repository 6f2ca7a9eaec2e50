"""Which committed offsets have been of no use for longer than they are kept."""

from __future__ import annotations

from moldau.coordinator.group.group import Group
from moldau.coordinator.group.offsets import CommittedOffset, Offsets
from moldau.coordinator.runtime.outcome import CoordinatorRecord

__all__ = ["expired_records"]


def expired_records(
    group: Group, offsets: Offsets, now_ms: int, retention_ms: int
) -> tuple[list[CoordinatorRecord], bool]:
    """Tombstones for a group's expired offsets, and whether the group goes with them.

    It goes when it has neither members nor offsets left, and none that an open transaction may bring.
    """
    known = offsets.of(group.group_id)
    expired = [
        place
        for place, committed in known.items()
        if _is_expired(group, place[0], committed, now_ms, retention_ms)
        and not offsets.is_undecided(group.group_id, place)
    ]
    records = offsets.tombstones(group.group_id, expired)
    is_gone = group.is_empty and len(expired) == len(known) and not offsets.has_undecided(group.group_id)
    return (records + group.tombstones() if is_gone else records), is_gone


def _is_expired(group: Group, topic: str, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    idle_since_ms = group.idle_since_ms(topic, committed.committed_ms)
    if idle_since_ms is None:
        return False
    if committed.expire_ms is not None:
        return now_ms >= committed.expire_ms
    return now_ms - idle_since_ms >= retention_ms
