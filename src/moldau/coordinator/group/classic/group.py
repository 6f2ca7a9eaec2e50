"""A group of the classic protocol: its members, their generation, and the record that a restart restores it from.

State and queries; requests and deadlines change it in `coordinator.group.classic.membership`. Members in mid-join,
generations not yet assigned and pending replies are soft state: only `take`, which replays a record, changes the
assigned state. Start at `ClassicGroup`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from moldau.coordinator.group.classic.consumer_protocol import subscribed_topics
from moldau.coordinator.group.classic.requests import JoinedMember, MemberProtocol
from moldau.coordinator.group.group import Group, RefusedError
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Ticket
from moldau.core.errors import ErrorCode
from moldau.protocol.coordinator_records import (
    GroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    encode_key,
    encode_value,
)

__all__ = ["CONSUMER", "ClassicGroup", "ClassicMember", "ClassicState", "voted_protocol"]

CONSUMER = "consumer"
"""The protocol type of consumers, whose metadata the coordinator can decode."""


class ClassicState(StrEnum):
    """With the names that DescribeGroups and ListGroups return."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]
    """In the member's order of preference."""
    assignment: bytes = b""
    is_new: bool = False
    """Whether it has not received its id yet and so cannot send heartbeats."""
    awaiting_join: Ticket | None = None
    awaiting_sync: Ticket | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a reply, so that no heartbeat can be expected."""
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata_for(self, protocol: str | None) -> bytes:
        return next((one.metadata for one in self.protocols if one.name == protocol), b"")


def voted_protocol(members: Iterable[ClassicMember], leader: ClassicMember | None) -> str | None:
    """The protocol that most members prefer among those that all support; ties follow the leader's order."""
    voters = list(members)
    supported = Counter(one.name for member in voters for one in member.protocols)
    candidates = {name for name, count in supported.items() if count >= len(voters)}
    votes = Counter(next(one.name for one in member.protocols if one.name in candidates) for member in voters)
    if not votes:
        return None
    order = [one.name for one in (leader or voters[0]).protocols]
    return max(votes, key=lambda name: (votes[name], -order.index(name)))


class ClassicGroup(Group):
    kind = "classic"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.state = ClassicState.EMPTY
        self.generation_id = 0
        self.protocol_type: str | None = None
        """`None` until a member has joined: such a group only stores offsets."""
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.state_changed_ms = -1
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending_members: set[str] = set()
        """Ids handed out to members that have not rejoined with them yet (KIP-394); a join phase waits for them."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup yet."""
        self.is_initial = False
        """Whether this join phase began with an empty group, so that it waits for the initial delay."""
        self.has_newcomers = False
        """Whether a member joined since the initial delay was last extended."""
        self.delay_ms = 0
        self.delay_left_ms = 0
        self._supporters: Counter[str] = Counter()

    # --- questions --------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type_name(self) -> str:
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        return not self.pending_members and all(one.awaiting_join is not None for one in self.members.values())

    @property
    def awaiting_join_count(self) -> int:
        return sum(1 for one in self.members.values() if one.awaiting_join is not None)

    def supports(self, protocol_type: str, protocols: Iterable[MemberProtocol]) -> bool:
        """Whether all members would still share at least one protocol with a member that offers these."""
        if not self.members:
            return bool(protocol_type) and any(True for _ in protocols)
        is_same_type = protocol_type == self.protocol_type
        return is_same_type and any(self._supporters[one.name] == len(self.members) for one in protocols)

    def checked_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """The member with this id and instance id; raises `RefusedError` if there is none."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is not None and current != member_id:
                raise RefusedError(ErrorCode.FENCED_INSTANCE_ID)
            if current is None:
                raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.members.get(member_id)
        if member is None:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def member_metadata(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(one.member_id, one.group_instance_id, one.metadata_for(self.protocol_name))
            for one in self.members.values()
        )

    def check_commit(
        self, member_id: str, group_instance_id: str | None, epoch: int, *, is_transactional: bool, api_version: int
    ) -> None:
        if epoch < 0 and self.is_empty:
            return
        if epoch >= 0 or member_id or group_instance_id is not None:
            self.checked_member(member_id, group_instance_id)
            if epoch != self.generation_id:
                raise RefusedError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        if self.state is ClassicState.COMPLETING and not is_transactional:
            raise RefusedError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Anyone may fetch offsets of a classic group."""

    def check_offset_delete(self) -> None:
        if not self.is_empty and self.protocol_type != CONSUMER:
            raise RefusedError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.is_empty or self.protocol_type != CONSUMER:
            return False
        topics = self._subscribed_topics()
        return topics is None or topic in topics

    def idle_since_ms(self, topic: str, committed_ms: int) -> int | None:
        if self.protocol_type is None:
            return committed_ms
        if self.is_empty:
            return self.state_changed_ms if self.state_changed_ms >= 0 else committed_ms
        if self.state is not ClassicState.STABLE or self.protocol_type != CONSUMER or self.is_subscribed_to(topic):
            return None
        return committed_ms

    def _subscribed_topics(self) -> frozenset[str] | None:
        """The topics of all members together, `None` if some subscription cannot be decoded."""
        found: set[str] = set()
        for member in self.members.values():
            topics = subscribed_topics(member.metadata_for(self.protocol_name) or member.protocols[0].metadata)
            if topics is None:
                return None
            found |= topics
        return frozenset(found)

    # --- soft changes -----------------------------------------------------------------------------------

    def add(self, member: ClassicMember) -> None:
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._supporters.update({one.name for one in member.protocols})
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member: ClassicMember) -> None:
        del self.members[member.member_id]
        if member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        self._supporters.subtract({one.name for one in member.protocols})
        self.pending_sync.discard(member.member_id)
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, old: ClassicMember, new: ClassicMember) -> None:
        """A static member is back under another id: it takes over the old one's place, also as the leader."""
        was_leader = self.leader == old.member_id
        self.remove(old)
        self.add(new)
        if was_leader:
            self.leader = new.member_id

    def update(self, member: ClassicMember, protocols: tuple[MemberProtocol, ...]) -> None:
        self._supporters.subtract({one.name for one in member.protocols})
        member.protocols = protocols
        self._supporters.update({one.name for one in protocols})

    def elect_leader(self) -> bool:
        """Make sure that the leader is a member that rejoined; false if none did."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.awaiting_join is not None:
            return True
        joined = next((one for one in self.members.values() if one.awaiting_join is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    # --- durable state -----------------------------------------------------------------------------------

    def record(
        self,
        members: Mapping[str, ClassicMember],
        assignments: Mapping[str, bytes],
        *,
        generation_id: int,
        protocol_name: str | None,
        leader: str | None,
        now_ms: int,
    ) -> CoordinatorRecord:
        """The record that restores a generation with these members."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type_name,
            generation=generation_id,
            protocol=protocol_name,
            leader=leader,
            current_state_timestamp=now_ms,
            members=tuple(
                GroupMember(
                    member_id=one.member_id,
                    group_instance_id=one.group_instance_id,
                    client_id=one.client_id,
                    client_host=one.client_host,
                    rebalance_timeout=one.rebalance_timeout_ms,
                    session_timeout=one.session_timeout_ms,
                    subscription=one.metadata_for(protocol_name),
                    assignment=assignments.get(one.member_id, b""),
                )
                for one in members.values()
            ),
        )
        return CoordinatorRecord(encode_key(GroupMetadataKey(group=self.group_id)), encode_value(value))

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(encode_key(GroupMetadataKey(group=self.group_id)), None)]

    def take(self, value: GroupMetadataValue) -> None:
        """Take over the state of a record. Known members keep what the record does not contain."""
        known = self.members
        self.protocol_type = value.protocol_type or None
        self.generation_id = value.generation
        self.protocol_name = value.protocol
        self.state_changed_ms = value.current_state_timestamp
        self.state = ClassicState.STABLE if value.members else ClassicState.EMPTY
        self.members, self.static_members, self._supporters, self.leader = {}, {}, Counter(), None
        for told in value.members:
            member = known.get(told.member_id) or _restore_member(told, value.protocol)
            member.assignment = told.assignment
            self.add(member)
        self.leader = value.leader
        self.pending_sync &= self.members.keys()


def _restore_member(told: GroupMember, protocol: str | None) -> ClassicMember:
    return ClassicMember(
        member_id=told.member_id,
        group_instance_id=told.group_instance_id,
        client_id=told.client_id,
        client_host=told.client_host,
        session_timeout_ms=told.session_timeout,
        rebalance_timeout_ms=told.rebalance_timeout or told.session_timeout,
        protocols=(MemberProtocol(protocol or "", told.subscription),),
        assignment=told.assignment,
    )
