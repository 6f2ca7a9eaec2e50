"""A rebalance of a classic group: gather members, announce the generation, distribute the leader's assignment.

The phases and their deadlines; the requests that start them are in `coordinator.group.classic.membership`. Every wait
ends: sessions, the join phase and the sync phase all have a deadline. Start at `ClassicRebalance.prepare`.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.coordinator.group.classic.group import ClassicGroup, ClassicMember, ClassicState, voted_protocol
from moldau.coordinator.group.classic.requests import JoinReply, SyncReply
from moldau.coordinator.group.rebalance_log import log_generation, log_rebalance, some_of
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.deadlines import Deadlines
from moldau.coordinator.runtime.outcome import Outcome
from moldau.core.errors import ErrorCode

__all__ = ["JOIN_PHASE", "SESSION", "SYNC_PHASE", "ClassicRebalance", "joined_reply", "synced_reply"]

SESSION, JOIN_PHASE, SYNC_PHASE = "session", "join", "sync"

EMPTY, PREPARING = ClassicState.EMPTY, ClassicState.PREPARING
COMPLETING, STABLE = ClassicState.COMPLETING, ClassicState.STABLE


class ClassicRebalance:
    def __init__(self, deadlines: Deadlines, settings: Callable[[], GroupSettings]) -> None:
        self._deadlines = deadlines
        self._settings = settings
        self.completed = 0
        """Counter: join phases that ended with a generation."""

    # --- the join phase ---------------------------------------------------------------------------------

    def rebalance_or_complete(self, group: ClassicGroup, now_ms: int, outcome: Outcome, reason: str) -> None:
        if group.state is not PREPARING:
            self.prepare(group, now_ms, outcome, reason)
        elif group.has_all_joined and not group.is_initial:
            self._complete(group, now_ms, outcome)

    def prepare(self, group: ClassicGroup, now_ms: int, outcome: Outcome, reason: str) -> None:
        """Begin a join phase: all members have to rejoin. `reason` is for the log."""
        log_rebalance(group, reason)
        if group.state is COMPLETING:
            self._fail_syncs(group, now_ms, outcome)
        group.pending_sync.clear()
        self._deadlines.cancel((SYNC_PHASE, group.group_id))
        group.is_initial = group.state is EMPTY
        group.state = PREPARING
        if group.is_initial:
            # Its members are starting up: wait for the others instead of rebalancing for each of them.
            group.has_newcomers = False
            group.delay_ms = self._settings().group_initial_rebalance_delay_ms
            group.delay_left_ms = max(group.rebalance_timeout_ms - group.delay_ms, 0)
            self._deadlines.set((JOIN_PHASE, group.group_id), now_ms + group.delay_ms)
        elif group.has_all_joined:
            self._complete(group, now_ms, outcome)
        else:
            self._deadlines.set((JOIN_PHASE, group.group_id), now_ms + group.rebalance_timeout_ms)

    def _fail_syncs(self, group: ClassicGroup, now_ms: int, outcome: Outcome) -> None:
        for member in group.members.values():
            if member.awaiting_sync is not None:
                outcome.reply(member.awaiting_sync, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS))
                member.awaiting_sync = None
                self.touch(group, member, now_ms)

    def on_join_deadline(self, group: ClassicGroup, now_ms: int) -> Outcome:
        outcome = Outcome()
        if group.state is not PREPARING:
            return outcome
        if group.is_initial and group.has_newcomers and group.delay_left_ms > 0:
            group.has_newcomers = False
            delay_ms = min(self._settings().group_initial_rebalance_delay_ms, group.delay_left_ms)
            group.delay_left_ms = max(group.delay_left_ms - group.delay_ms, 0)
            group.delay_ms = delay_ms
            self._deadlines.set((JOIN_PHASE, group.group_id), now_ms + delay_ms)
        else:
            self._complete(group, now_ms, outcome)
        return outcome

    def _complete(self, group: ClassicGroup, now_ms: int, outcome: Outcome) -> None:
        """End the join phase: the members that rejoined are the next generation."""
        for member in [one for one in group.members.values() if one.awaiting_join is None]:
            if member.group_instance_id is None:
                self.remove(group, member, outcome)
        if group.members and not group.elect_leader():
            # Only static members are left and none has rejoined: they stay until their sessions expire.
            self._deadlines.set((JOIN_PHASE, group.group_id), now_ms + group.rebalance_timeout_ms)
            return
        self._deadlines.cancel((JOIN_PHASE, group.group_id))
        group.is_initial = False
        if not group.members:
            outcome.records.append(
                group.record(
                    {}, {}, generation_id=group.generation_id + 1, protocol_name=None, leader=None, now_ms=now_ms
                )
            )
            log_generation(group, group.generation_id + 1)
            return
        self.completed += 1
        group.generation_id += 1
        group.protocol_name = voted_protocol(group.members.values(), group.members.get(group.leader or ""))
        group.state = COMPLETING
        log_generation(group, group.generation_id)
        for member in group.members.values():
            if member.awaiting_join is None:
                continue
            reply = joined_reply(group, member, has_members=member.member_id == group.leader)
            outcome.reply(member.awaiting_join, reply)
            member.awaiting_join = None
            member.is_new = False
            group.pending_sync.add(member.member_id)
            self.touch(group, member, now_ms)
        self._deadlines.set((SYNC_PHASE, group.group_id), now_ms + group.rebalance_timeout_ms)

    # --- the sync phase ---------------------------------------------------------------------------------

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes], now_ms: int, outcome: Outcome) -> None:
        """Store the leader's assignment, then answer every member that waits for it."""
        outcome.records.append(
            group.record(
                group.members,
                assignments,
                generation_id=group.generation_id,
                protocol_name=group.protocol_name,
                leader=group.leader,
                now_ms=now_ms,
            )
        )
        for member in group.members.values():
            if member.awaiting_sync is not None:
                outcome.reply(member.awaiting_sync, synced_reply(group, assignments.get(member.member_id, b"")))
                member.awaiting_sync = None
                self.touch(group, member, now_ms)

    def on_sync_deadline(self, group: ClassicGroup, now_ms: int) -> Outcome:
        """Remove members that joined and never sent SyncGroup."""
        outcome = Outcome()
        if group.state not in (COMPLETING, STABLE) or not group.pending_sync:
            return outcome
        silent = sorted(group.pending_sync)
        for member_id in silent:
            self.remove(group, group.members[member_id], outcome)
        self.prepare(group, now_ms, outcome, f"{some_of(silent)} did not ask for an assignment")
        return outcome

    # --- members ----------------------------------------------------------------------------------------

    def touch(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
        """Extend the member's session, unless it waits for a reply and so cannot send heartbeats."""
        if not member.is_waiting:
            self._deadlines.set((SESSION, group.group_id, member.member_id), now_ms + member.session_timeout_ms)

    def on_session_deadline(self, group: ClassicGroup, member_id: str, now_ms: int) -> Outcome:
        """The member sent nothing for a whole session."""
        outcome = Outcome()
        member = group.members.get(member_id)
        if member_id in group.pending_members:
            group.pending_members.discard(member_id)
        elif member is None or (member.is_waiting and not member.is_new):
            return outcome
        else:
            self.remove(group, member, outcome)
        self.after_removal(group, now_ms, outcome, f"the session of {member_id} has expired")
        return outcome

    def remove(self, group: ClassicGroup, member: ClassicMember, outcome: Outcome) -> None:
        outcome.reply(member.awaiting_join, JoinReply(ErrorCode.UNKNOWN_MEMBER_ID))
        outcome.reply(member.awaiting_sync, SyncReply(ErrorCode.UNKNOWN_MEMBER_ID))
        member.awaiting_join = member.awaiting_sync = None
        self._deadlines.cancel((SESSION, group.group_id, member.member_id))
        group.remove(member)

    def after_removal(self, group: ClassicGroup, now_ms: int, outcome: Outcome, reason: str) -> None:
        if group.state is not EMPTY:
            self.rebalance_or_complete(group, now_ms, outcome, reason)

    def start_sessions(self, group: ClassicGroup, now_ms: int) -> None:
        """After a restart every member has a whole session to send a request."""
        for member in group.members.values():
            self.touch(group, member, now_ms)


def joined_reply(group: ClassicGroup, member: ClassicMember, *, has_members: bool) -> JoinReply:
    return JoinReply(
        ErrorCode.NONE,
        member.member_id,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader or "",
        group.member_metadata() if has_members else (),
    )


def synced_reply(group: ClassicGroup, assignment: bytes) -> SyncReply:
    return SyncReply(ErrorCode.NONE, group.protocol_type, group.protocol_name, assignment)
