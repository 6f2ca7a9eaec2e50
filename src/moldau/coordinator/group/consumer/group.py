"""A group of the consumer protocol: exactly the state that its records describe.

Changed by `replay` alone, live and at recovery. Requests are decided in `coordinator.group.consumer.heartbeat`;
deadlines are soft state of `coordinator.group.consumer.membership`. Start at `ConsumerGroup.replay`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from moldau.coordinator.group.consumer.assignment import NOTHING, Assignment, assignment_of
from moldau.coordinator.group.consumer.member import NOT_TOLD, ConsumerMember
from moldau.coordinator.group.group import Group, RefusedError
from moldau.coordinator.runtime.outcome import CoordinatorRecord
from moldau.core.errors import ErrorCode
from moldau.protocol.coordinator_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CurrentMemberAssignmentKey,
    CurrentMemberAssignmentValue,
    RecordKey,
    RecordValue,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetAssignmentMemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataKey,
    TargetAssignmentMetadataValue,
)

__all__ = ["CONSUMER_GROUP_KEYS", "ConsumerGroup", "ConsumerGroupKey", "ConsumerGroupState"]

CONSUMER_GROUP_KEYS = (
    ConsumerGroupMetadataKey,
    ConsumerGroupMemberMetadataKey,
    TargetAssignmentMetadataKey,
    TargetAssignmentMemberKey,
    CurrentMemberAssignmentKey,
    RegularExpressionKey,
)
"""The keys whose values make a group one of the consumer protocol."""

ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupMemberMetadataKey
    | TargetAssignmentMetadataKey
    | TargetAssignmentMemberKey
    | CurrentMemberAssignmentKey
    | RegularExpressionKey
)

FIRST_WITH_MEMBER_EPOCHS = 9
"""The first version of OffsetCommit that supports member epochs."""


class ConsumerGroupState(StrEnum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """The group has changed and its target has not been recomputed yet."""
    RECONCILING = "Reconciling"
    """Some member is not at the target yet."""
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class Looked:
    """When a group's topics were last checked; soft state, so a restart checks again."""

    topics: object = None
    patterns: object = None
    patterns_ms: int = 0


@dataclass
class ConsumerGroup(Group):
    kind = "consumer"

    group_id: str
    epoch: int = 0
    """Rises with every change of members, subscriptions or the topics subscribed to."""
    metadata_hash: int = 0
    """Of the topics subscribed to, as they were at `epoch`."""
    assignment_epoch: int = 0
    """The epoch that `targets` were computed for."""
    assignment_timestamp: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Assignment] = field(default_factory=dict)
    regexes: dict[str, RegularExpressionValue] = field(default_factory=dict)
    """The topics that each subscribed pattern matched when it was last resolved."""
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by instance id."""
    holders: dict[UUID, dict[int, str]] = field(default_factory=dict)
    """Member ids by held partition; a partition to be revoked is held until the member has released it."""
    looked: Looked = field(default_factory=Looked, compare=False)

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_at(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type_name(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target_of(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def is_free(self, member_id: str) -> Callable[[UUID, int], bool]:
        """Whether no member but this one holds a partition."""
        holders = self.holders

        def nobody_else_holds(topic: UUID, partition: int) -> bool:
            return holders.get(topic, {}).get(partition, member_id) == member_id

        return nobody_else_holds

    def subscribed_names(self, member: ConsumerMember) -> set[str]:
        """The topics a member subscribes to, by name or by pattern, whether they exist or not."""
        names = set(member.metadata.subscribed_topic_names)
        resolved = self.regexes.get(member.metadata.subscribed_topic_regex or "")
        if resolved is not None:
            names.update(resolved.topics)
        return names

    def all_subscribed_names(self) -> set[str]:
        return set().union(*(self.subscribed_names(member) for member in self.members.values()))

    def preferred_assignor(self) -> str | None:
        """The assignor requested by most members that request one."""
        votes = Counter(
            asked for member in self.members.values() if (asked := member.metadata.server_assignor) is not None
        )
        return min(votes, key=lambda name: (-votes[name], name)) if votes else None

    # --- what committed offsets depend on -----------------------------------------------------------

    def check_commit(
        self, member_id: str, group_instance_id: str | None, epoch: int, *, is_transactional: bool, api_version: int
    ) -> None:
        if epoch < 0 and (self.is_empty or (is_transactional and not member_id)):
            return
        member = self._checked_member(member_id)
        if epoch == member.member_epoch:
            return
        if member.uses_classic_protocol or (api_version < FIRST_WITH_MEMBER_EPOCHS and not is_transactional):
            raise RefusedError(ErrorCode.ILLEGAL_GENERATION)
        raise RefusedError(ErrorCode.STALE_MEMBER_EPOCH)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        member = self._checked_member(member_id or "")
        if epoch != member.member_epoch:
            raise RefusedError(ErrorCode.STALE_MEMBER_EPOCH)

    def check_offset_delete(self) -> None:
        """Offsets of topics without a subscriber may be deleted at any time."""

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.subscribed_names(member) for member in self.members.values())

    def idle_since_ms(self, topic: str, committed_ms: int) -> int | None:
        return None if self.is_subscribed_to(topic) else committed_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        from moldau.coordinator.group.consumer.draft import Draft

        draft = Draft(self)
        draft.delete_group()
        return draft.encoded()

    def _checked_member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def copy(self) -> ConsumerGroup:
        return replace(
            self,
            members=dict(self.members),
            targets=dict(self.targets),
            regexes=dict(self.regexes),
            static_members=dict(self.static_members),
            holders={topic: dict(holders) for topic, holders in self.holders.items()},
        )

    # --- replay -------------------------------------------------------------------------------------

    def replay(self, key: RecordKey, value: RecordValue | None) -> None:
        """Apply a record of this group. After compaction records may come in any order, so none depends on another."""
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
                self._put_metadata(key.member_id, value)
            case ConsumerGroupMemberMetadataKey(), None:
                self._remove_member(key.member_id)
            case TargetAssignmentMetadataKey(), TargetAssignmentMetadataValue():
                self.assignment_epoch, self.assignment_timestamp = value.assignment_epoch, value.assignment_timestamp
            case TargetAssignmentMemberKey(), TargetAssignmentMemberValue():
                topics = ((one.topic_id, one.partitions) for one in value.topic_partitions)
                self.targets[key.member_id] = assignment_of(topics)
            case TargetAssignmentMemberKey(), None:
                self.targets.pop(key.member_id, None)
            case CurrentMemberAssignmentKey(), CurrentMemberAssignmentValue():
                member = self.members.get(key.member_id) or ConsumerMember(key.member_id)
                self._put_member(member.with_current(value))
            case CurrentMemberAssignmentKey(), None:
                self._put_nothing_assigned(key.member_id)
            case RegularExpressionKey(), RegularExpressionValue():
                self.regexes[key.regular_expression] = value
            case RegularExpressionKey(), None:
                self.regexes.pop(key.regular_expression, None)

    def _put_metadata(self, member_id: str, metadata: ConsumerGroupMemberMetadataValue) -> None:
        member = self.members.get(member_id)
        self.members[member_id] = (
            ConsumerMember(member_id, metadata) if member is None else replace(member, metadata=metadata)
        )
        if metadata.instance_id is not None:
            self.static_members[metadata.instance_id] = member_id

    def _put_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._hold(member.member_id, NOTHING if before is None else before.held, member.held)

    def _put_nothing_assigned(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is None:
            return
        self._put_member(ConsumerMember(member_id, member.metadata))
        if member.metadata is NOT_TOLD:
            del self.members[member_id]  # its metadata was deleted before, or was compacted away

    def _remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._hold(member_id, member.held, NOTHING)
        instance_id = member.metadata.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]

    def _hold(self, member_id: str, before: Assignment, after: Assignment) -> None:
        for topic, numbers in before.items():
            holders = self.holders.get(topic, {})
            for number in numbers - after.get(topic, frozenset()):
                if holders.get(number) == member_id:
                    del holders[number]
            if not holders:
                self.holders.pop(topic, None)
        for topic, numbers in after.items():
            self.holders.setdefault(topic, {}).update(dict.fromkeys(numbers, member_id))
