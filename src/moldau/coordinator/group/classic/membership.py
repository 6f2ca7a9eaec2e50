"""The classic protocol: joining, syncing, staying alive and leaving, decided for one shard's groups.

A *join phase* gathers members (PreparingRebalance), a *sync phase* distributes the leader's assignment
(CompletingRebalance, then Stable): `coordinator.group.classic.rebalance`. This module decides who may join, stay and
leave. Handlers deal with versions and bytes, `coordinator.group.offsets` with offsets. Start at
`ClassicMembership.join`.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Final

from moldau.coordinator.group.classic.group import ClassicGroup, ClassicMember, ClassicState, voted_protocol
from moldau.coordinator.group.classic.rebalance import (
    JOIN_PHASE,
    SESSION,
    SYNC_PHASE,
    ClassicRebalance,
    joined_reply,
    synced_reply,
)
from moldau.coordinator.group.classic.requests import (
    HeartbeatRequest,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    SyncReply,
    SyncRequest,
)
from moldau.coordinator.group.group import Group, RefusedError
from moldau.coordinator.group.rebalance_log import some_of
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.deadlines import Deadlines
from moldau.coordinator.runtime.outcome import Outcome, Ticket
from moldau.core.errors import ErrorCode

__all__ = ["JOIN_PHASE", "SESSION", "SYNC_PHASE", "ClassicMembership"]

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long a member may wait for its first reply: without an id it cannot send heartbeats."""

EMPTY, PREPARING = ClassicState.EMPTY, ClassicState.PREPARING
STABLE = ClassicState.STABLE


class ClassicMembership(ClassicRebalance):
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        deadlines: Deadlines,
        settings: Callable[[], GroupSettings],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(deadlines, settings)
        self._groups = groups
        self._new_id = new_id

    # --- joining ----------------------------------------------------------------------------------------

    def join(self, request: JoinRequest, ticket: Ticket, now_ms: int) -> Outcome:
        outcome = Outcome()
        try:
            group = self._group_to_join(request)
            if request.member_id:
                self._rejoin(group, request, ticket, now_ms, outcome)
            else:
                self._join_anew(group, request, ticket, now_ms, outcome)
        except RefusedError as refused:
            member_id = request.member_id
            if refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED:
                self._turn_away(self._classic(request.group_id), member_id, now_ms, outcome)
                member_id = ""
            outcome.reply(ticket, JoinReply(refused.error, member_id))
        return outcome

    def _turn_away(self, group: ClassicGroup, member_id: str, now_ms: int, outcome: Outcome) -> None:
        """The group is full without this member: remove it and do not wait for it."""
        group.pending_members.discard(member_id)
        self._deadlines.cancel((SESSION, group.group_id, member_id))
        member = group.members.get(member_id)
        if member is not None:
            self.remove(group, member, outcome)
            self.after_removal(group, now_ms, outcome, f"the group is full without {member_id}")

    def _group_to_join(self, request: JoinRequest) -> ClassicGroup:
        settings = self._settings()
        if not request.group_id:
            raise RefusedError(ErrorCode.INVALID_GROUP_ID)
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            raise RefusedError(ErrorCode.INVALID_SESSION_TIMEOUT)
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_id:
                raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
            group = ClassicGroup(request.group_id)
        if not isinstance(group, ClassicGroup):
            raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not self._has_room(group, request.member_id):
            raise RefusedError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.supports(request.protocol_type, request.protocols):
            raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return group

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        most = self._settings().group_max_size
        if group.state is EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is PREPARING:
            is_back = member is not None and member.awaiting_join is not None
            return is_back or group.awaiting_join_count < most
        return member is not None or len(group.members) < most

    def _join_anew(
        self, group: ClassicGroup, request: JoinRequest, ticket: Ticket, now_ms: int, outcome: Outcome
    ) -> None:
        """A join without a member id: a new member, or a static member that was restarted."""
        instance_id = request.group_instance_id
        member_id = f"{request.client_id if instance_id is None else instance_id}-{self._new_id()}"
        if instance_id is not None:
            current = group.static_members.get(instance_id)
            if current is not None:
                self._replace(group, group.members[current], member_id, request, ticket, now_ms, outcome)
                return
        elif request.requires_known_member_id:
            self._groups[group.group_id] = group
            group.pending_members.add(member_id)
            self._deadlines.set((SESSION, group.group_id, member_id), now_ms + request.session_timeout_ms)
            outcome.reply(ticket, JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        self._add(group, member_id, request, ticket, now_ms, outcome)

    def _add(  # noqa: PLR0917
        self,
        group: ClassicGroup,
        member_id: str,
        request: JoinRequest,
        ticket: Ticket,
        now_ms: int,
        outcome: Outcome,
    ) -> None:
        self._groups[group.group_id] = group
        if not group.members:
            group.protocol_type = request.protocol_type
        group.pending_members.discard(member_id)
        group.add(_member(member_id, request, ticket, is_new=True))
        group.has_newcomers = True
        self._deadlines.set((SESSION, group.group_id, member_id), now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
        self.rebalance_or_complete(group, now_ms, outcome, f"{member_id} joins")

    def _rejoin(self, group: ClassicGroup, request: JoinRequest, ticket: Ticket, now_ms: int, outcome: Outcome) -> None:
        """A join with a member id: handed out just before, or from an earlier generation."""
        if request.member_id in group.pending_members and request.group_instance_id is None:
            self._add(group, request.member_id, request, ticket, now_ms, outcome)
            return
        member = group.checked_member(request.member_id, request.group_instance_id)
        if group.state is EMPTY:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        is_leader = group.leader == member.member_id
        is_changed = member.protocols != request.protocols
        if group.state is PREPARING or is_changed or (is_leader and group.state is STABLE):
            self._update(group, member, request, ticket, outcome)
            change = "joins with another subscription" if is_changed else "joins again"
            self.rebalance_or_complete(group, now_ms, outcome, f"{member.member_id} {change}")
            return
        # It missed the reply to its last join, or rejoins without need: answer with the current generation.
        self.touch(group, member, now_ms)
        outcome.reply(ticket, joined_reply(group, member, has_members=is_leader))

    def _update(
        self, group: ClassicGroup, member: ClassicMember, request: JoinRequest, ticket: Ticket, outcome: Outcome
    ) -> None:
        outcome.reply(member.awaiting_join, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        group.update(member, request.protocols)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.awaiting_join = ticket
        if not member.is_new:
            self._deadlines.cancel((SESSION, group.group_id, member.member_id))

    def _replace(  # noqa: PLR0917
        self,
        group: ClassicGroup,
        old: ClassicMember,
        member_id: str,
        request: JoinRequest,
        ticket: Ticket,
        now_ms: int,
        outcome: Outcome,
    ) -> None:
        """A static member came back under a new id: a client that still uses the old one is fenced."""
        new = _member(member_id, request, ticket)
        new.assignment = old.assignment
        if group.state is STABLE and self._keeps_its_protocol(group, old, new):
            self._replace_in_place(group, old, new, request, ticket, now_ms, outcome)
            return
        outcome.reply(old.awaiting_join, JoinReply(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        outcome.reply(old.awaiting_sync, SyncReply(ErrorCode.FENCED_INSTANCE_ID))
        self._deadlines.cancel((SESSION, group.group_id, old.member_id))
        group.replace(old, new)
        self.rebalance_or_complete(group, now_ms, outcome, f"{new.member_id} replaces {old.member_id}")

    def _keeps_its_protocol(self, group: ClassicGroup, old: ClassicMember, new: ClassicMember) -> bool:
        members = [new if one is old else one for one in group.members.values()]
        leader = new if group.leader == old.member_id else group.members.get(group.leader or "")
        return voted_protocol(members, leader) == group.protocol_name

    def _replace_in_place(  # noqa: PLR0917
        self,
        group: ClassicGroup,
        old: ClassicMember,
        new: ClassicMember,
        request: JoinRequest,
        ticket: Ticket,
        now_ms: int,
        outcome: Outcome,
    ) -> None:
        """Without a rebalance: the generation continues with the new id in the old one's place."""
        is_leader = group.leader == old.member_id
        members = {one.member_id: one for one in (new if it is old else it for it in group.members.values())}
        outcome.records.append(
            group.record(
                members,
                {one.member_id: one.assignment for one in members.values()},
                generation_id=group.generation_id,
                protocol_name=group.protocol_name,
                leader=new.member_id if is_leader else group.leader,
                now_ms=now_ms,
            )
        )

        is_pending = old.member_id in group.pending_sync

        def settle() -> None:
            new.awaiting_join = None
            if is_pending:
                group.pending_sync.add(new.member_id)
            group.replace(group.members[new.member_id], new)
            self._deadlines.cancel((SESSION, group.group_id, old.member_id))
            self.touch(group, new, now_ms)

        outcome.then = settle
        is_assigning = is_leader and request.can_skip_assignment
        leader = new.member_id if is_assigning else group.leader or ""
        reply = JoinReply(
            ErrorCode.NONE,
            new.member_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            # Clients without skip_assignment get the leader's old id, so that they do not compute an assignment.
            leader,
            tuple(
                one._replace(member_id=new.member_id, metadata=new.metadata_for(group.protocol_name))
                if one.member_id == old.member_id
                else one
                for one in group.member_metadata()
            )
            if is_assigning
            else (),
            skip_assignment=is_assigning,
        )
        outcome.reply(ticket, reply)

    # --- the sync phase ---------------------------------------------------------------------------------

    def sync(self, request: SyncRequest, ticket: Ticket, now_ms: int) -> Outcome:
        outcome = Outcome()
        try:
            group = self._classic(request.group_id)
            member = group.checked_member(request.member_id, request.group_instance_id)
            _check_sync(group, request)
        except RefusedError as refused:
            outcome.reply(ticket, SyncReply(refused.error))
            return outcome
        group.pending_sync.discard(member.member_id)
        if group.state is STABLE:
            self.touch(group, member, now_ms)
            outcome.reply(ticket, synced_reply(group, member.assignment))
        else:
            outcome.reply(member.awaiting_sync, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS))
            member.awaiting_sync = ticket
            self._deadlines.cancel((SESSION, group.group_id, member.member_id))
            if member.member_id == group.leader:
                self.assign(group, dict(request.assignments), now_ms, outcome)
        if not group.pending_sync:
            self._deadlines.cancel((SYNC_PHASE, group.group_id))
        return outcome

    # --- staying and leaving ----------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest, ticket: Ticket, now_ms: int) -> Outcome:
        outcome = Outcome()
        try:
            outcome.reply(ticket, self._heartbeat(request, now_ms))
        except RefusedError as refused:
            outcome.reply(ticket, refused.error)
        return outcome

    def _heartbeat(self, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        group = self._classic(request.group_id)
        member = group.checked_member(request.member_id, request.group_instance_id)
        if group.state is EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self.touch(group, member, now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING else ErrorCode.NONE

    def leave(self, group_id: str, members: Sequence[LeavingMember], ticket: Ticket, now_ms: int) -> Outcome:
        outcome = Outcome()
        try:
            group = self._classic(group_id)
        except RefusedError as refused:
            outcome.reply(ticket, LeaveReply(refused.error))
            return outcome
        results = [(one, self._leave(group, one, outcome)) for one in members]
        gone = [one.member_id or one.group_instance_id or "" for one, error in results if error is ErrorCode.NONE]
        if gone:
            self.after_removal(group, now_ms, outcome, f"{some_of(gone)} left")
        outcome.reply(ticket, LeaveReply(ErrorCode.NONE, tuple(results)))
        return outcome

    def _leave(self, group: ClassicGroup, leaving: LeavingMember, outcome: Outcome) -> ErrorCode:
        member_id = leaving.member_id
        if not member_id and leaving.group_instance_id is not None:
            member_id = group.static_members.get(leaving.group_instance_id, "")
        if member_id in group.pending_members:
            group.pending_members.discard(member_id)
            self._deadlines.cancel((SESSION, group.group_id, member_id))
            return ErrorCode.NONE
        try:
            self.remove(group, group.checked_member(member_id, leaving.group_instance_id), outcome)
        except RefusedError as refused:
            return refused.error
        return ErrorCode.NONE

    def _classic(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID)
        return group


def _check_sync(group: ClassicGroup, request: SyncRequest) -> None:
    if request.generation_id != group.generation_id:
        raise RefusedError(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, group.protocol_type):
        raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.protocol_name not in (None, group.protocol_name):
        raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is EMPTY:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is PREPARING:
        raise RefusedError(ErrorCode.REBALANCE_IN_PROGRESS)


def _member(member_id: str, request: JoinRequest, ticket: Ticket, *, is_new: bool = False) -> ClassicMember:
    return ClassicMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocols=request.protocols,
        is_new=is_new,
        awaiting_join=ticket,
    )
