"""A member of a group of the consumer protocol: its metadata, its assignment and its progress towards the target.

Immutable; a group replaces members when their records are replayed. Start at `ConsumerMember`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from moldau.coordinator.group.consumer.assignment import NOTHING, Assignment, assignment_of, topic_partitions, union
from moldau.protocol.coordinator_records import ConsumerGroupMemberMetadataValue, CurrentMemberAssignmentValue
from moldau.protocol.record_schemas import MalformedRecordError

__all__ = ["JOINING", "LEAVING", "LEAVING_FOR_A_WHILE", "NOT_TOLD", "ConsumerMember", "MemberState"]

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
"""A static member's announcement that its instance id will be back; stored as its epoch until then."""

NOT_TOLD: Final = ConsumerGroupMemberMetadataValue(
    instance_id=None,
    rack_id=None,
    client_id="",
    client_host="",
    subscribed_topic_names=(),
    subscribed_topic_regex=None,
    rebalance_timeout_ms=-1,
    server_assignor=None,
    classic_member_metadata=None,
)


class MemberState(IntEnum):
    """By the numbers of the record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """Waits until the member confirms that it has revoked its `revoking` partitions."""
    UNRELEASED_PARTITIONS = 2
    """Waits for partitions that other members still hold."""


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    metadata: ConsumerGroupMemberMetadataValue = NOT_TOLD
    member_epoch: int = JOINING
    """The group epoch that it has reached."""
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=lambda: NOTHING)
    """What it may use."""
    pending_revocation: Assignment = field(default_factory=lambda: NOTHING)
    """What it has to revoke and has not confirmed yet."""

    @property
    def held(self) -> Assignment:
        """The partitions that no other member may get meanwhile."""
        return union(self.assigned, self.pending_revocation) if self.pending_revocation else self.assigned

    @property
    def uses_classic_protocol(self) -> bool:
        return self.metadata.classic_member_metadata is not None

    @property
    def is_away(self) -> bool:
        return self.member_epoch == LEAVING_FOR_A_WHILE

    def is_at(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def at_epoch(self, epoch: int) -> ConsumerMember:
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)

    def with_current(self, value: CurrentMemberAssignmentValue) -> ConsumerMember:
        if value.state not in tuple(MemberState):
            raise MalformedRecordError(f"a member cannot be in state {value.state}")
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=assignment_of((one.topic_id, one.partitions) for one in value.assigned_partitions),
            pending_revocation=assignment_of(
                (one.topic_id, one.partitions) for one in value.partitions_pending_revocation
            ),
        )

    def current_value(self) -> CurrentMemberAssignmentValue:
        return CurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            assigned_partitions=topic_partitions(self.assigned),
            partitions_pending_revocation=topic_partitions(self.pending_revocation),
        )
