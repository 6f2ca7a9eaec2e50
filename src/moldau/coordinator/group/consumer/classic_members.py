"""Members that still speak the classic protocol in a group of the consumer protocol.

Each JoinGroup acts like a heartbeat of the consumer protocol: it brings the subscription and the owned partitions, and
takes the member one step towards its target; SyncGroup returns the assignment, and Heartbeat signals that the next
step is due. So no member waits for another, and there is no leader. Start at `ConsumerClassicMembers.join`.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Final

from moldau.coordinator.group.classic.group import CONSUMER
from moldau.coordinator.group.classic.membership import ClassicMembership
from moldau.coordinator.group.classic.requests import (
    HeartbeatRequest,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    SyncReply,
    SyncRequest,
)
from moldau.coordinator.group.consumer.assignment import Assignment, without
from moldau.coordinator.group.consumer.draft import Draft
from moldau.coordinator.group.consumer.group import ConsumerGroup
from moldau.coordinator.group.consumer.heartbeat import advance, reconcile, remove_member, take_static_place
from moldau.coordinator.group.consumer.member import NOT_TOLD, ConsumerMember, MemberState
from moldau.coordinator.group.consumer.membership import CLASSIC_STEP, ConsumerMembership
from moldau.coordinator.group.consumer.migration import (
    assigned_bytes,
    assignment_by_name,
    classic_metadata,
    common_protocols,
    subscription_of,
)
from moldau.coordinator.group.group import Group, RefusedError
from moldau.coordinator.group.rebalance_log import log_epoch, some_of
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.deadlines import Deadlines
from moldau.coordinator.runtime.outcome import Outcome, Ticket
from moldau.core.errors import ErrorCode
from moldau.protocol.coordinator_records import ClassicProtocol

__all__ = ["ConsumerClassicMembers"]

NO_LEADER: Final = ""


class ConsumerClassicMembers:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        *,
        consumer: ConsumerMembership,
        classic: ClassicMembership,
        deadlines: Deadlines,
        settings: Callable[[], GroupSettings],
        new_id: Callable[[], str],
    ) -> None:
        self._groups = groups
        self._consumer = consumer
        self._classic = classic
        self._deadlines = deadlines
        self._settings = settings
        self._new_id = new_id

    # --- joining ----------------------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, request: JoinRequest, ticket: Ticket, now_ms: int) -> Outcome:
        if group.is_empty:
            return self._join_as_classic(group, request, ticket, now_ms)
        outcome = Outcome()
        try:
            self._check_join(group, request)
            if not request.member_id and request.group_instance_id is None and request.requires_known_member_id:
                member_id = f"{request.client_id}-{self._new_id()}"
                outcome.reply(ticket, JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            else:
                outcome = self._join(group, request, ticket, now_ms)
        except RefusedError as refused:
            outcome = Outcome()
            outcome.reply(ticket, JoinReply(refused.error, request.member_id))
        return outcome

    def _join_as_classic(self, group: ConsumerGroup, request: JoinRequest, ticket: Ticket, now_ms: int) -> Outcome:
        """The group is empty: it becomes a classic group at once."""
        del self._groups[group.group_id]
        outcome = self._classic.join(request, ticket, now_ms)
        if group.group_id in self._groups:
            outcome.records = group.tombstones() + outcome.records
        else:
            self._groups[group.group_id] = group
        return outcome

    def _check_join(self, group: ConsumerGroup, request: JoinRequest) -> None:
        settings = self._settings()
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            raise RefusedError(ErrorCode.INVALID_SESSION_TIMEOUT)
        others = [member for member in group.members.values() if member.member_id != request.member_id]
        shared = common_protocols(others)
        offered = {one.name for one in request.protocols}
        has_classic = any(member.uses_classic_protocol for member in others)
        if request.protocol_type != CONSUMER or not offered or (has_classic and offered.isdisjoint(shared)):
            raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        self._consumer.check_room(group, request.member_id, request.group_instance_id)

    def _join(self, group: ConsumerGroup, request: JoinRequest, ticket: Ticket, now_ms: int) -> Outcome:
        """One step of a member towards its target."""
        instance_id = request.group_instance_id
        name = request.client_id if instance_id is None else instance_id
        member_id = request.member_id or f"{name}-{self._new_id()}"
        draft = Draft(group)
        if instance_id is not None:
            self._take_place(draft, instance_id, request.member_id, member_id)
        before = draft.group.members.get(member_id, ConsumerMember(member_id))
        protocols = tuple(ClassicProtocol(name=one.name, metadata=one.metadata) for one in request.protocols)
        metadata = classic_metadata(
            instance_id=instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=protocols,
        )
        owned = self._owned_partitions(protocols, now_ms)
        if before.metadata is NOT_TOLD and owned:
            # A new member owns nothing: this one was removed and has to learn it before others use its partitions.
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        draft.put_metadata(member_id, metadata)
        around = self._consumer.around(now_ms)
        is_other = before.metadata.subscribed_topic_names != metadata.subscribed_topic_names
        advance(draft, around, has_changed=before.metadata is NOT_TOLD or is_other)
        change = f"{member_id} joins" if before.metadata is NOT_TOLD else "its topics or subscriptions have changed"
        log_epoch(group, draft.group, change)
        if self._consumer.downgrade_if_classic_only(outcome := Outcome(), draft, now_ms):
            # This one replaced the last member of the consumer protocol: it rejoins a classic group.
            outcome.reply(ticket, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, request.member_id))
            return outcome
        member = reconcile(draft, member_id, owned)
        outcome.records = draft.encoded()
        self._consumer.start_session(group.group_id, member, now_ms)
        self._await_step(group, member, now_ms)
        outcome.reply(
            ticket, JoinReply(ErrorCode.NONE, member_id, member.member_epoch, CONSUMER, protocols[0].name, NO_LEADER)
        )
        return outcome

    def _take_place(self, draft: Draft, instance_id: str, told_id: str, member_id: str) -> None:
        present = draft.group.static_member(instance_id)
        if present is None:
            return
        if told_id and told_id != present.member_id:
            raise RefusedError(ErrorCode.FENCED_INSTANCE_ID)
        if present.member_id != member_id:
            take_static_place(draft, present, member_id)

    def _owned_partitions(self, protocols: Sequence[ClassicProtocol], now_ms: int) -> Assignment:
        """The partitions the member reports as owned, trusted even if it missed a generation meanwhile."""
        return assignment_by_name(subscription_of(protocols).owned, self._consumer.around(now_ms).topics)

    # --- syncing, staying, leaving ----------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncRequest, ticket: Ticket, now_ms: int) -> Outcome:
        outcome = Outcome()
        try:
            member = _known_member(group, request.member_id, request.group_instance_id)
            protocol = _checked_protocol(member, request)
            self._consumer.start_session(group.group_id, member, now_ms)
            if group.epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
                self._await_step(group, member, now_ms)
                raise RefusedError(ErrorCode.REBALANCE_IN_PROGRESS)
            self._deadlines.cancel((CLASSIC_STEP, group.group_id, member.member_id))
            assigned = assigned_bytes(member, self._consumer.around(now_ms).topics)
            outcome.reply(ticket, SyncReply(ErrorCode.NONE, CONSUMER, protocol, assigned))
        except RefusedError as refused:
            outcome.reply(ticket, SyncReply(refused.error))
        return outcome

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, ticket: Ticket, now_ms: int) -> Outcome:
        outcome = Outcome()
        try:
            member = _known_member(group, request.member_id, request.group_instance_id)
            if request.generation_id != member.member_epoch:
                raise RefusedError(ErrorCode.ILLEGAL_GENERATION)
            self._consumer.start_session(group.group_id, member, now_ms)
            must_join = _has_step_to_take(group, member)
            if must_join and self._deadlines.get((CLASSIC_STEP, group.group_id, member.member_id)) is None:
                self._await_step(group, member, now_ms)
            outcome.reply(ticket, ErrorCode.REBALANCE_IN_PROGRESS if must_join else ErrorCode.NONE)
        except RefusedError as refused:
            outcome.reply(ticket, refused.error)
        return outcome

    def leave(self, group: ConsumerGroup, members: Sequence[LeavingMember], ticket: Ticket, now_ms: int) -> Outcome:
        outcome = Outcome()
        draft = Draft(group)
        results: list[tuple[LeavingMember, ErrorCode]] = []
        gone: list[str] = []
        for leaving in members:
            try:
                member_id = leaving.member_id
                if not member_id and leaving.group_instance_id is not None:
                    member_id = draft.group.static_members.get(leaving.group_instance_id, "")
                member = _known_member(draft.group, member_id, leaving.group_instance_id)
                remove_member(draft, member.member_id, self._consumer.around(now_ms))
                gone.append(member.member_id)
                results.append((leaving, ErrorCode.NONE))
            except RefusedError as refused:
                results.append((leaving, refused.error))
        if gone:
            log_epoch(group, draft.group, f"{some_of(gone)} left")
            self._consumer.finish_removal(outcome, draft, gone, now_ms)
        outcome.reply(ticket, LeaveReply(ErrorCode.NONE, tuple(results)))
        return outcome

    def _await_step(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        """Expect its next request within its rebalance timeout: a join after a heartbeat, a sync after a join."""
        deadline_ms = now_ms + member.metadata.rebalance_timeout_ms
        self._deadlines.set((CLASSIC_STEP, group.group_id, member.member_id), deadline_ms)


def _has_step_to_take(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is MemberState.STABLE:
        return False
    is_free = group.is_free(member.member_id)
    missing = without(group.target_of(member.member_id), member.assigned)
    return all(is_free(topic, partition) for topic, partitions in missing.items() for partition in partitions)


def _known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is not None:
        current = group.static_members.get(instance_id)
        if current is not None and current != member_id:
            raise RefusedError(ErrorCode.FENCED_INSTANCE_ID)
    member = group.members.get(member_id)
    if member is None or not member.uses_classic_protocol:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _checked_protocol(member: ConsumerMember, request: SyncRequest) -> str:
    classic = member.metadata.classic_member_metadata
    assert classic is not None
    protocol = classic.supported_protocols[0].name
    if request.generation_id != member.member_epoch:
        raise RefusedError(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, protocol):
        raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return protocol
