"""The group coordinator's core for one partition of `__consumer_offsets`: its groups and their offsets.

Dispatches requests, records and deadlines to the group's protocol: `coordinator.group.classic.membership` or
`coordinator.group.consumer.membership`. Pure: takes facts and the time, returns outcomes. Start at `GroupCore`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from moldau.coordinator.group.classic.group import ClassicGroup
from moldau.coordinator.group.classic.membership import JOIN_PHASE, SESSION, SYNC_PHASE, ClassicMembership
from moldau.coordinator.group.classic.requests import HeartbeatRequest, JoinRequest, LeavingMember, SyncRequest
from moldau.coordinator.group.consumer.classic_members import ConsumerClassicMembers
from moldau.coordinator.group.consumer.group import CONSUMER_GROUP_KEYS, ConsumerGroup, ConsumerGroupKey
from moldau.coordinator.group.consumer.membership import NO_FACTS, ConsumerFacts, ConsumerMembership
from moldau.coordinator.group.consumer.requests import ConsumerHeartbeat
from moldau.coordinator.group.group import Group, RefusedError
from moldau.coordinator.group.offsets import (
    FetchedOffset,
    Offsets,
    OffsetToCommit,
    Place,
    commit_record,
    expired_records,
)
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.deadlines import Deadlines
from moldau.coordinator.runtime.outcome import Outcome, Producer, Ticket
from moldau.core.errors import ErrorCode
from moldau.protocol.coordinator_records import (
    GROUP_KEYS,
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    RecordKey,
    RecordValue,
    decode_key,
    decode_value,
)
from moldau.protocol.offset_records import OffsetKey, OffsetValue, decode_offset_key, decode_offset_value
from moldau.protocol.record_schemas import MalformedRecordError

__all__ = ["CommitRequest", "FetchOffsetsReply", "GroupCore"]

log = logging.getLogger(__name__)

RETENTION, EXPIRY = "retention", "expiry"
TOMBSTONES_AT_ONCE: Final = 1000
"""The most records of one expiry; the rest follows shortly after, so that requests are not delayed for long."""
FIRST_WITH_GROUP_NOT_FOUND: Final = 9


class CommitRequest(NamedTuple):
    group_id: str
    member_id: str
    group_instance_id: str | None
    epoch: int
    """Generation, or member epoch of the consumer protocol."""
    offsets: tuple[OffsetToCommit, ...]
    api_version: int
    producer: Producer | None = None
    """Whose transaction the offsets belong to, if any."""


@dataclass(slots=True)
class OffsetCounts:
    """Offsets since the start, for metrics."""

    committed: int = 0
    expired: int = 0
    deleted: int = 0


class FetchOffsetsReply(NamedTuple):
    error: ErrorCode
    offsets: tuple[FetchedOffset, ...] = ()


class GroupCore:
    def __init__(
        self, settings: Callable[[], GroupSettings], new_id: Callable[[], str], facts: ConsumerFacts = NO_FACTS
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.deadlines = Deadlines()
        self.classic = ClassicMembership(self.groups, self.deadlines, settings, new_id)
        self.consumer = ConsumerMembership(
            self.groups, self.deadlines, facts=facts, new_id=new_id, classic=self.classic, settings=settings
        )
        self.mixed = ConsumerClassicMembers(
            self.groups,
            consumer=self.consumer,
            classic=self.classic,
            deadlines=self.deadlines,
            settings=settings,
            new_id=new_id,
        )
        """For members of the classic protocol in groups of the other one."""
        self.offset_counts = OffsetCounts()
        self._settings = settings
        self._to_expire: list[str] = []
        """Groups that the current expiry round has not checked yet."""

    # --- membership, classic protocol -------------------------------------------------------------------

    def join(self, request: JoinRequest, ticket: Ticket, now_ms: int) -> Outcome:
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.mixed.join(group, request, ticket, now_ms)
        return self.classic.join(request, ticket, now_ms)

    def sync(self, request: SyncRequest, ticket: Ticket, now_ms: int) -> Outcome:
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.mixed.sync(group, request, ticket, now_ms)
        return self.classic.sync(request, ticket, now_ms)

    def heartbeat(self, request: HeartbeatRequest, ticket: Ticket, now_ms: int) -> Outcome:
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self.mixed.heartbeat(group, request, ticket, now_ms)
        return self.classic.heartbeat(request, ticket, now_ms)

    def leave(self, group_id: str, members: Sequence[LeavingMember], ticket: Ticket, now_ms: int) -> Outcome:
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self.mixed.leave(group, members, ticket, now_ms)
        return self.classic.leave(group_id, members, ticket, now_ms)

    # --- membership, consumer protocol ------------------------------------------------------------------

    def consumer_heartbeat(self, request: ConsumerHeartbeat, ticket: Ticket, now_ms: int) -> Outcome:
        return self.consumer.heartbeat(request, ticket, now_ms)

    # --- offsets ----------------------------------------------------------------------------------------

    def commit(self, request: CommitRequest, ticket: Ticket, now_ms: int) -> Outcome:
        """Reply: an `ErrorCode` for the whole request, or one for each offset in order."""
        outcome = Outcome(producer=request.producer)
        try:
            self._check_commit(request, now_ms)
        except RefusedError as refused:
            outcome.reply(ticket, refused.error)
            return outcome
        longest = self._settings().offset_metadata_max_bytes
        errors = []
        for commit in request.offsets:
            is_too_long = len(commit.metadata) > longest
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_long else ErrorCode.NONE)
            if not is_too_long:
                outcome.records.append(commit_record(request.group_id, commit, now_ms))
        self.offset_counts.committed += len(outcome.records)
        outcome.reply(ticket, errors)
        return outcome

    def _check_commit(self, request: CommitRequest, now_ms: int) -> None:
        group = self.groups.get(request.group_id)
        if group is None:
            # A client that commits without ever joining creates an empty group, once the offsets are written.
            if request.epoch >= 0:
                is_newer = request.api_version >= FIRST_WITH_GROUP_NOT_FOUND and request.producer is None
                raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND if is_newer else ErrorCode.ILLEGAL_GENERATION)
            return
        group.check_commit(
            request.member_id,
            request.group_instance_id,
            request.epoch,
            is_transactional=request.producer is not None,
            api_version=request.api_version,
        )
        if isinstance(group, ClassicGroup) and request.member_id in group.members:
            self.classic.touch(group, group.members[request.member_id], now_ms)

    def fetch_offsets(
        self,
        group_id: str,
        places: Collection[Place] | None,
        ticket: Ticket,
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
        require_stable: bool = False,
    ) -> Outcome:
        outcome = Outcome()
        group = self.groups.get(group_id)
        try:
            if group is not None:
                group.check_fetch(member_id, member_epoch)
        except RefusedError as refused:
            outcome.reply(ticket, FetchOffsetsReply(refused.error))
            return outcome
        fetched = self.offsets.fetched(group_id, places, require_stable=require_stable)
        outcome.reply(ticket, FetchOffsetsReply(ErrorCode.NONE, tuple(fetched)))
        return outcome

    def delete_offsets(self, group_id: str, places: Sequence[Place], ticket: Ticket) -> Outcome:
        """Reply: an `ErrorCode` for the whole request, or one for each place in order."""
        outcome = Outcome()
        group = self.groups.get(group_id)
        try:
            if group is None:
                raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND)
            group.check_offset_delete()
        except RefusedError as refused:
            outcome.reply(ticket, refused.error)
            return outcome
        subscribed = {topic for topic in {topic for topic, _ in places} if group.is_subscribed_to(topic)}
        outcome.records = self.offsets.tombstones(group_id, [place for place in places if place[0] not in subscribed])
        self.offset_counts.deleted += len(outcome.records)
        outcome.reply(
            ticket,
            [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic in subscribed else ErrorCode.NONE for topic, _ in places],
        )
        return outcome

    def forget_topics(self, topics: Collection[str]) -> Outcome:
        """Delete the offsets of deleted topics."""
        outcome = Outcome()
        for group_id in self.groups:
            places = [place for place in self.offsets.of(group_id) if place[0] in topics]
            outcome.records += self.offsets.tombstones(group_id, places)
        return outcome

    # --- groups as a whole ------------------------------------------------------------------------------

    def delete_group(self, group_id: str, ticket: Ticket) -> Outcome:
        """Reply: an `ErrorCode`."""
        outcome = Outcome()
        group = self.groups.get(group_id)
        if group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif not group.is_empty:
            error = ErrorCode.NON_EMPTY_GROUP
        else:
            error = ErrorCode.NONE
            self.offset_counts.deleted += len(self.offsets.of(group_id))
            outcome.records = self.offsets.tombstones(group_id) + group.tombstones()
            outcome.then = lambda: self._drop(group_id)
        outcome.reply(ticket, error if group_id else ErrorCode.INVALID_GROUP_ID)
        return outcome

    def look(self, view: Callable[[GroupCore], Any], ticket: Ticket) -> Outcome:
        """Reply: the result of `view`, sent once the state it shows is committed."""
        outcome = Outcome()
        outcome.reply(ticket, view(self))
        return outcome

    # --- replay -----------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, producer: Producer | None = None) -> None:
        """Apply one record; one that cannot be decoded is logged and skipped."""
        try:
            offset_key = decode_offset_key(key)
            offset_value = None if value is None else decode_offset_value(value)
            if offset_key is not None and (value is None or offset_value is not None):
                self._replay_offset(offset_key, offset_value, producer)
                return
            known = decode_key(key, GROUP_KEYS)
            if known is not None:
                self._replay(known, None if value is None else decode_value(known, value), producer)
        except MalformedRecordError as error:
            log.error("skipping a record of __consumer_offsets that cannot be read: %s", error)

    def _replay_offset(
        self, key: OffsetKey | OffsetCommitKey, value: OffsetValue | RecordValue | None, producer: Producer | None
    ) -> None:
        self.offsets.replay(key.group, (key.topic, key.partition), value, producer)
        if value is not None and key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group)

    def _replay(self, key: RecordKey, value: RecordValue | None, producer: Producer | None) -> None:
        if isinstance(key, OffsetCommitKey):
            self._replay_offset(key, value, producer)
        elif isinstance(key, GroupMetadataKey):
            if value is None:
                if isinstance(self.groups.get(key.group), ClassicGroup):
                    self._drop_membership(key.group)
                return
            assert isinstance(value, GroupMetadataValue)
            group = self.groups.get(key.group)
            if not isinstance(group, ClassicGroup):
                group = self.groups[key.group] = ClassicGroup(key.group)
            group.take(value)
        elif isinstance(key, CONSUMER_GROUP_KEYS):
            self._replay_consumer(key, value)

    def _replay_consumer(self, key: ConsumerGroupKey, value: RecordValue | None) -> None:
        group = self.groups.get(key.group_id)
        if isinstance(group, ConsumerGroup):
            if value is None and isinstance(key, ConsumerGroupMetadataKey):
                self._drop_membership(key.group_id)
                return
        elif value is None:
            return
        else:
            group = self.groups[key.group_id] = ConsumerGroup(key.group_id)
        group.replay(key, value)

    def _drop_membership(self, group_id: str) -> None:
        """Remove a group's members; the group remains only if it has offsets."""
        if self.offsets.of(group_id) or self.offsets.has_undecided(group_id):
            self.groups[group_id] = ClassicGroup(group_id)
        else:
            self._drop(group_id)

    def _drop(self, group_id: str) -> None:
        self.groups.pop(group_id, None)
        self.deadlines.cancel((JOIN_PHASE, group_id))
        self.deadlines.cancel((SYNC_PHASE, group_id))

    def replay_marker(self, producer_id: int, producer_epoch: int, is_commit: bool) -> None:
        self.offsets.replay_marker(producer_id, is_commit)

    def on_loaded(self, now_ms: int) -> None:
        for group_id, group in list(self.groups.items()):
            if isinstance(group, ClassicGroup):
                self.classic.start_sessions(group, now_ms)
                has_offsets = self.offsets.of(group_id) or self.offsets.has_undecided(group_id)
                if group.protocol_type is None and not has_offsets:
                    del self.groups[group_id]  # all its offsets are deleted, and it had no members
            elif isinstance(group, ConsumerGroup):
                self.consumer.start_sessions(group, now_ms)
        self.deadlines.set(RETENTION, now_ms + self._settings().offsets_retention_check_interval_ms)

    # --- time -------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        return self.deadlines.next_ms()

    def on_time(self, now_ms: int) -> Outcome:
        due = self.deadlines.pop_due(now_ms)
        if due == RETENTION:
            self.deadlines.set(RETENTION, now_ms + self._settings().offsets_retention_check_interval_ms)
            self._to_expire = list(self.groups)
            return self._expire(now_ms)
        if due == EXPIRY:
            return self._expire(now_ms)
        return self._on_group_deadline(due, now_ms) if isinstance(due, tuple) else Outcome()

    def _on_group_deadline(self, due: tuple[Any, ...], now_ms: int) -> Outcome:
        phase, group_id, *rest = due
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self.consumer.on_deadline(phase, group, rest, now_ms)
        if not isinstance(group, ClassicGroup):
            return Outcome()
        if phase == SESSION:
            return self.classic.on_session_deadline(group, rest[0], now_ms)
        if phase == JOIN_PHASE:
            return self.classic.on_join_deadline(group, now_ms)
        return self.classic.on_sync_deadline(group, now_ms)

    def _expire(self, now_ms: int) -> Outcome:
        """Expire offsets unused for the retention time, and groups that have neither offsets nor members left."""
        outcome = Outcome()
        dropped: list[str] = []
        while self._to_expire and len(outcome.records) < TOMBSTONES_AT_ONCE:
            group = self.groups.get(self._to_expire.pop())
            if group is not None:
                records, is_gone = expired_records(group, self.offsets, now_ms, self._settings().offsets_retention_ms)
                self.offset_counts.expired += len(records) - (len(group.tombstones()) if is_gone else 0)
                outcome.records += records
                dropped += [group.group_id] if is_gone else []
        if self._to_expire:
            self.deadlines.set(EXPIRY, now_ms + 1)
        outcome.then = lambda: self._drop_all(dropped)
        return outcome

    def _drop_all(self, group_ids: Iterable[str]) -> None:
        for group_id in group_ids:
            self._drop(group_id)
