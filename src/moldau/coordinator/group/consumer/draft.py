"""A decision in progress: its records, and a copy of the group with those records applied.

The group itself stays as it is until the records are appended and replayed. Start at `Draft.write`.
"""

from __future__ import annotations

from collections.abc import Iterator

from moldau.coordinator.group.consumer.assignment import Assignment, topic_partitions
from moldau.coordinator.group.consumer.group import ConsumerGroup
from moldau.coordinator.group.consumer.member import ConsumerMember
from moldau.coordinator.runtime.outcome import CoordinatorRecord
from moldau.protocol.coordinator_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    CurrentMemberAssignmentKey,
    RecordKey,
    RecordValue,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetAssignmentMemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataKey,
    TargetAssignmentMetadataValue,
    encode_key,
    encode_value,
)

__all__ = ["Draft"]


class Draft:
    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self.records: list[tuple[RecordKey, RecordValue | None]] = []

    def write(self, key: RecordKey, value: RecordValue | None) -> None:
        if not self.records:
            self.group = self.group.copy()
        self.records.append((key, value))
        self.group.replay(key, value)

    def encoded(self) -> list[CoordinatorRecord]:
        return [
            CoordinatorRecord(encode_key(key), None if value is None else encode_value(value))
            for key, value in self.records
        ]

    # --- what decisions write -----------------------------------------------------------------------

    def put_metadata(self, member_id: str, metadata: ConsumerGroupMemberMetadataValue) -> None:
        member = self.group.members.get(member_id)
        if member is None or member.metadata != metadata:
            self.write(ConsumerGroupMemberMetadataKey(group_id=self.group.group_id, member_id=member_id), metadata)

    def put_current(self, member: ConsumerMember) -> None:
        self.write(
            CurrentMemberAssignmentKey(group_id=self.group.group_id, member_id=member.member_id),
            member.current_value(),
        )

    def put_target(self, member_id: str, target: Assignment) -> None:
        self.write(
            TargetAssignmentMemberKey(group_id=self.group.group_id, member_id=member_id),
            TargetAssignmentMemberValue(topic_partitions=topic_partitions(target)),
        )

    def put_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.write(
            ConsumerGroupMetadataKey(group_id=self.group.group_id),
            ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
        )

    def put_assignment_epoch(self, epoch: int, now_ms: int) -> None:
        self.write(
            TargetAssignmentMetadataKey(group_id=self.group.group_id),
            TargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms),
        )

    def put_regex(self, regex: str, topics: tuple[str, ...], now_ms: int) -> None:
        before = self.group.regexes.get(regex)
        self.write(
            RegularExpressionKey(group_id=self.group.group_id, regular_expression=regex),
            RegularExpressionValue(
                topics=topics, version=0 if before is None else before.version + 1, timestamp=now_ms
            ),
        )

    def delete_regex(self, regex: str) -> None:
        self.write(RegularExpressionKey(group_id=self.group.group_id, regular_expression=regex), None)

    def delete_member(self, member_id: str) -> None:
        for key in _member_keys(self.group.group_id, member_id):
            self.write(key, None)

    def delete_group(self) -> None:
        """Tombstones for everything, so that a group of another protocol can take the name."""
        group_id = self.group.group_id
        for member_id in list(self.group.members):
            self.delete_member(member_id)
        for member_id in list(self.group.targets):
            self.write(TargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
        for regex in list(self.group.regexes):
            self.delete_regex(regex)
        self.write(TargetAssignmentMetadataKey(group_id=group_id), None)
        self.write(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)
        self.write(ConsumerGroupMetadataKey(group_id=group_id), None)


def _member_keys(group_id: str, member_id: str) -> Iterator[RecordKey]:
    yield CurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    yield TargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    yield ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
