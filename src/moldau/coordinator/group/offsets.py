"""Committed offsets of one shard's groups: the current ones, and the records of commits, deletions and expiry.

Offsets of open transactions are stored separately until their marker arrives. `Group.check_commit` decides who may
commit. Start at `Offsets.replay`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moldau.coordinator.group.group import Group
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Producer
from moldau.core.errors import ErrorCode
from moldau.protocol.coordinator_records import (
    OffsetCommitValue,
    OffsetCommitValueWithExpiry,
    RecordValue,
    encode_value,
)
from moldau.protocol.offset_records import OffsetValue, encode_offset_key, encode_offset_value

__all__ = [
    "NO_OFFSET",
    "CommittedOffset",
    "FetchedOffset",
    "OffsetToCommit",
    "Offsets",
    "commit_record",
    "expired_records",
]


Place = tuple[str, int]
"""Topic and partition."""


class OffsetToCommit(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    expire_ms: int | None = None
    """An explicit expiry time, as clients before Kafka 2.1 could request."""


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expire_ms: int | None = None
    order: int = 0
    """Orders the writes of one shard."""


class FetchedOffset(NamedTuple):
    topic: str
    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


NO_OFFSET = -1


def commit_record(group_id: str, commit: OffsetToCommit, now_ms: int) -> CoordinatorRecord:
    key = encode_offset_key(group_id, commit.topic, commit.partition)
    if commit.expire_ms is None:
        return CoordinatorRecord(key, encode_offset_value(commit.offset, commit.leader_epoch, commit.metadata, now_ms))
    value = OffsetCommitValueWithExpiry(
        offset=commit.offset, metadata=commit.metadata, commit_timestamp=now_ms, expire_timestamp=commit.expire_ms
    )
    return CoordinatorRecord(key, encode_value(value))


class Offsets:
    def __init__(self) -> None:
        self._groups: dict[str, dict[Place, CommittedOffset]] = {}
        self._pending: dict[int, dict[str, dict[Place, CommittedOffset]]] = {}
        """By producer, then group: offsets of open transactions."""
        self._written = 0

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    # --- questions --------------------------------------------------------------------------------------

    def of(self, group_id: str) -> dict[Place, CommittedOffset]:
        return self._groups.get(group_id, {})

    def is_undecided(self, group_id: str, place: Place) -> bool:
        """Whether an open transaction is about to change this offset."""
        return any(place in groups.get(group_id, ()) for groups in self._pending.values())

    def has_undecided(self, group_id: str) -> bool:
        return any(groups.get(group_id) for groups in self._pending.values())

    def fetched(
        self, group_id: str, places: Iterable[Place] | None, *, require_stable: bool
    ) -> Iterator[FetchedOffset]:
        """The committed offset of each place, or of all places of the group."""
        known = self.of(group_id)
        for place in known if places is None else places:
            committed = known.get(place)
            if require_stable and self._pending and self.is_undecided(group_id, place):
                yield FetchedOffset(*place, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
            elif committed is None:
                yield FetchedOffset(*place)
            else:
                yield FetchedOffset(*place, committed.offset, committed.leader_epoch, committed.metadata)

    # --- records ----------------------------------------------------------------------------------------

    def tombstones(self, group_id: str, places: Iterable[Place] | None = None) -> list[CoordinatorRecord]:
        """The records that delete a group's offsets: all, or those at `places` that exist."""
        known = self.of(group_id)
        chosen = known if places is None else [place for place in places if place in known]
        return [CoordinatorRecord(encode_offset_key(group_id, *place), None) for place in chosen]

    # --- replay -----------------------------------------------------------------------------------------

    def replay(
        self, group_id: str, place: Place, value: OffsetValue | RecordValue | None, producer: Producer | None
    ) -> None:
        if value is None:
            self._forget(group_id, place)
            return
        self._written += 1
        committed = _committed_offset(value, self._written)
        if producer is None:
            self._groups.setdefault(group_id, {})[place] = committed
        else:
            groups = self._pending.setdefault(producer.producer_id, {})
            groups.setdefault(group_id, {})[place] = committed

    def replay_marker(self, producer_id: int, is_commit: bool) -> None:
        """A transaction has ended: apply its offsets if it was committed, drop them otherwise."""
        for group_id, offsets in self._pending.pop(producer_id, {}).items():
            if not is_commit:
                continue
            known = self._groups.setdefault(group_id, {})
            for place, committed in offsets.items():
                current = known.get(place)
                # An offset committed outside of the transaction meanwhile is newer.
                if current is None or current.order < committed.order:
                    known[place] = committed

    def _forget(self, group_id: str, place: Place) -> None:
        offsets = self._groups.get(group_id)
        if offsets is not None:
            offsets.pop(place, None)
            if not offsets:
                del self._groups[group_id]
        for groups in self._pending.values():
            groups.get(group_id, {}).pop(place, None)


def _committed_offset(value: OffsetValue | RecordValue, order: int) -> CommittedOffset:
    if isinstance(value, OffsetCommitValueWithExpiry):
        return CommittedOffset(
            value.offset, -1, value.metadata, value.commit_timestamp, _expiry(value.expire_timestamp), order
        )
    assert isinstance(value, (OffsetValue, OffsetCommitValue))
    return CommittedOffset(value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, None, order)


def _expiry(expire_ms: int) -> int | None:
    return expire_ms if expire_ms >= 0 else None


def expired_records(
    group: Group, offsets: Offsets, now_ms: int, retention_ms: int
) -> tuple[list[CoordinatorRecord], bool]:
    """Tombstones for a group's expired offsets, and whether the group is deleted with them.

    It is deleted when it has no members and no offsets left, and no open transaction has offsets for it.
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
