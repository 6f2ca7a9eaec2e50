"""The consumer protocol (KIP-848), decided for one shard's groups: heartbeats, sessions, overdue revocations.

A heartbeat's effect on a group is decided in `coordinator.group.consumer.heartbeat`; this module finds the group,
removes members that missed a deadline, and emits the records. Start at `ConsumerMembership.heartbeat`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from moldau.coordinator.group.classic.group import ClassicGroup
from moldau.coordinator.group.classic.membership import SESSION, ClassicMembership
from moldau.coordinator.group.classic.requests import JoinReply, SyncReply
from moldau.coordinator.group.consumer.draft import Draft
from moldau.coordinator.group.consumer.group import ConsumerGroup
from moldau.coordinator.group.consumer.heartbeat import Surroundings, check_request, heartbeat, leave, remove_member
from moldau.coordinator.group.consumer.member import JOINING, LEAVING, ConsumerMember, MemberState
from moldau.coordinator.group.consumer.migration import can_downgrade, downgrade, upgrade
from moldau.coordinator.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.consumer.topics import Topics
from moldau.coordinator.group.group import Group, RefusedError
from moldau.coordinator.group.rebalance_log import log_epoch
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.runtime.deadlines import Deadlines
from moldau.coordinator.runtime.outcome import Outcome, Ticket
from moldau.core.errors import ErrorCode

__all__ = ["CLASSIC_STEP", "CONSUMER_SESSION", "NO_FACTS", "REVOCATION", "ConsumerFacts", "ConsumerMembership"]

CONSUMER_SESSION: Final = "consumer session"
REVOCATION: Final = "revocation"
CLASSIC_STEP: Final = "classic step"
"""What a member of the classic protocol has to do next: a join, or a sync."""
MEMBER_DEADLINES: Final = (CONSUMER_SESSION, REVOCATION, CLASSIC_STEP)
"""Kinds of deadlines, each for a group and a member."""
RETRY_MS: Final = 5000


@dataclass(frozen=True, slots=True)
class ConsumerFacts:
    """What the consumer protocol needs from the broker, read afresh each time."""

    topics: Callable[[], Topics]
    settings: Callable[[], ConsumerSettings] = ConsumerSettings
    group_settings: Callable[[str], Mapping[str, str]] = lambda group_id: {}
    """A group's own settings, by name."""


class _NoTopics:
    moment = None

    def names(self) -> tuple[str, ...]:
        return ()

    def facts(self, name: str) -> None:
        return None

    def name_of(self, topic_id: UUID) -> None:
        return None


NO_FACTS: Final = ConsumerFacts(_NoTopics)
"""A cluster without topics."""


class ConsumerMembership:
    def __init__(
        self,
        groups: MutableMapping[str, Group],
        deadlines: Deadlines,
        *,
        facts: ConsumerFacts,
        new_id: Callable[[], str],
        classic: ClassicMembership,
        settings: Callable[[], GroupSettings],
    ) -> None:
        self._groups = groups
        self._deadlines = deadlines
        self._facts = facts
        self._new_id = new_id
        self._classic = classic
        self._settings = settings

    def heartbeat(self, request: ConsumerHeartbeat, ticket: Ticket, now_ms: int) -> Outcome:
        """Reply: a `ConsumerHeartbeatReply`."""
        outcome = Outcome()
        try:
            check_request(request, self._facts.settings())
            decide = self._stay if request.member_epoch >= JOINING else self._leave
            outcome.reply(ticket, decide(request, now_ms, outcome))
        except RefusedError as refused:
            outcome = Outcome()
            outcome.reply(ticket, ConsumerHeartbeatReply(refused.error, refused.message))
        return outcome

    def _stay(self, request: ConsumerHeartbeat, now_ms: int, outcome: Outcome) -> ConsumerHeartbeatReply:
        group = self._group(request, now_ms, outcome)
        member_id = request.member_id or self._new_id()
        if request.member_epoch == JOINING:
            self.check_room(group, member_id, request.instance_id)
        before = group.members.get(member_id)
        draft = Draft(group)
        member = heartbeat(draft, request, member_id, self.around(now_ms))
        outcome.records += draft.encoded()
        change = f"{member_id} joins" if before is None else "its topics or subscriptions have changed"
        log_epoch(group, draft.group, change)
        self._note(group.group_id, before, member, now_ms)
        is_told = request.member_epoch == JOINING or request.is_full
        has_changed = before is None or before.assigned != member.assigned
        return ConsumerHeartbeatReply(
            ErrorCode.NONE,
            None,
            member_id,
            member.member_epoch,
            self._facts.settings().heartbeat_interval_ms(self._facts.group_settings(group.group_id)),
            member.assigned if is_told or has_changed else None,
        )

    def _leave(self, request: ConsumerHeartbeat, now_ms: int, outcome: Outcome) -> ConsumerHeartbeatReply:
        group = self._consumer_group(request.group_id)
        draft = Draft(group)
        member_id = leave(draft, request, self.around(now_ms))
        log_epoch(group, draft.group, f"{member_id} left")
        if request.member_epoch == LEAVING:
            self.finish_removal(outcome, draft, [member_id], now_ms)
        else:
            outcome.records += draft.encoded()
            self._deadlines.cancel((REVOCATION, request.group_id, member_id))
        return ConsumerHeartbeatReply(ErrorCode.NONE, None, request.member_id, request.member_epoch)

    # --- which group ------------------------------------------------------------------------------------

    def _group(self, request: ConsumerHeartbeat, now_ms: int, outcome: Outcome) -> ConsumerGroup:
        """The member's group; a join creates a missing group and converts one of the classic protocol."""
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) or request.member_epoch != JOINING:
            return self._consumer_group(request.group_id)
        if not isinstance(group, ClassicGroup):
            return ConsumerGroup(request.group_id)
        if not group.is_empty:
            return self._upgrade(group, now_ms, outcome)
        if group.protocol_type is not None:
            outcome.records += group.tombstones()
        return ConsumerGroup(request.group_id)

    def _upgrade(self, group: ClassicGroup, now_ms: int, outcome: Outcome) -> ConsumerGroup:
        draft = upgrade(group, self._facts.topics(), self._facts.settings())
        outcome.records += group.tombstones() + draft.encoded()
        for member in group.members.values():
            outcome.reply(member.awaiting_join, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            outcome.reply(member.awaiting_sync, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS))

        def settle() -> None:
            for member in draft.group.members.values():
                self._deadlines.cancel((SESSION, group.group_id, member.member_id))
                self.start_session(group.group_id, member, now_ms)

        outcome.then = settle
        return draft.group

    def _consumer_group(self, group_id: str) -> ConsumerGroup:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        what = "is not known" if group is None else "does not use the consumer protocol"
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")

    def check_room(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
        """Reject a new member of a full group; present members and replacements of static ones need no room."""
        most = self._facts.settings().group_consumer_max_size
        is_in = member_id in group.members or (instance_id is not None and instance_id in group.static_members)
        if len(group.members) >= most and not is_in:
            raise RefusedError(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"Group {group.group_id} has {most} members, the maximum."
            )

    def around(self, now_ms: int) -> Surroundings:
        return Surroundings(self._facts.topics(), self._facts.settings(), now_ms)

    # --- members that go --------------------------------------------------------------------------------

    def finish_removal(self, outcome: Outcome, draft: Draft, gone: Sequence[str], now_ms: int) -> None:
        """Members were removed from the draft: if only classic ones are left, the group becomes a classic one."""
        if not self.downgrade_if_classic_only(outcome, draft, now_ms):
            outcome.records += draft.encoded()
        settle = outcome.then

        def forget() -> None:
            for member_id in gone:
                self._forget(draft.group.group_id, member_id)
            if settle is not None:
                settle()

        outcome.then = forget

    def downgrade_if_classic_only(self, outcome: Outcome, draft: Draft, now_ms: int) -> bool:
        """Turn the group into a classic one if only members of that protocol are left; returns whether it did."""
        if not can_downgrade(draft.group, self._facts.settings(), self._settings().group_max_size):
            return False
        group_id, members = draft.group.group_id, list(draft.group.members)
        record = downgrade(draft, self._facts.topics(), now_ms)
        outcome.records += [*draft.encoded(), record]

        def settle() -> None:
            for member_id in members:
                self._forget(group_id, member_id)
            group = self._groups[group_id]
            assert isinstance(group, ClassicGroup)
            self._classic.start_sessions(group, now_ms)
            self._classic.prepare(group, now_ms, Outcome(), "only members of the classic protocol are left")

        outcome.then = settle
        return True

    # --- time -------------------------------------------------------------------------------------------

    def _note(self, group_id: str, before: ConsumerMember | None, member: ConsumerMember, now_ms: int) -> None:
        """Move the member's deadlines after a request from it."""
        self.start_session(group_id, member, now_ms)
        key = (REVOCATION, group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.uses_classic_protocol:
            self._deadlines.cancel(key)
        elif before is None or before.pending_revocation != member.pending_revocation:
            self._deadlines.set(key, now_ms + member.metadata.rebalance_timeout_ms)

    def start_session(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        classic = member.metadata.classic_member_metadata
        if classic is not None:
            timeout_ms = classic.session_timeout_ms
        else:
            timeout_ms = self._facts.settings().session_timeout_ms(self._facts.group_settings(group_id))
        self._deadlines.set((CONSUMER_SESSION, group_id, member.member_id), now_ms + timeout_ms)

    def _forget(self, group_id: str, member_id: str) -> None:
        for kind in MEMBER_DEADLINES:
            self._deadlines.cancel((kind, group_id, member_id))

    def start_sessions(self, group: ConsumerGroup, now_ms: int) -> None:
        """After a restart every member has a whole session to send a heartbeat, and the full timeout to revoke."""
        for member in group.members.values():
            self._note(group.group_id, None, member, now_ms)

    def on_deadline(self, kind: str, group: ConsumerGroup, member_ids: Sequence[str], now_ms: int) -> Outcome:
        """Remove a member that was silent for a session, or did not revoke its partitions in time."""
        outcome = Outcome()
        member = group.members.get(member_ids[0]) if kind in MEMBER_DEADLINES else None
        if member is None:
            return outcome  # possibly a deadline from when the group used the classic protocol
        if kind == REVOCATION and member.state is not MemberState.UNREVOKED_PARTITIONS:
            return outcome
        # If the records cannot be appended, the removal is retried.
        self._deadlines.set((kind, group.group_id, member.member_id), now_ms + RETRY_MS)
        draft = Draft(group)
        remove_member(draft, member.member_id, self.around(now_ms))
        trouble = "has expired" if kind == CONSUMER_SESSION else "ended: it did not take the next step in time"
        log_epoch(group, draft.group, f"the session of {member.member_id} {trouble}")
        self.finish_removal(outcome, draft, [member.member_id], now_ms)
        return outcome
