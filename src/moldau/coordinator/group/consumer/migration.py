"""A group changes protocol while members are in it: classic to consumer when the first member of the new protocol
joins, and back when the last one has gone.

Pure conversions into records; members keep their partitions and continue by the rules of the group's new protocol.
Members that still use the other protocol are answered by `coordinator.group.consumer.classic_members`. Start at
`upgrade` and `downgrade`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from moldau.coordinator.group.classic.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from moldau.coordinator.group.classic.group import CONSUMER, ClassicGroup, ClassicMember
from moldau.coordinator.group.consumer.assignment import NOTHING, Assignment, assignment_of, union, without
from moldau.coordinator.group.consumer.draft import Draft
from moldau.coordinator.group.consumer.group import ConsumerGroup
from moldau.coordinator.group.consumer.member import ConsumerMember, MemberState
from moldau.coordinator.group.consumer.settings import ConsumerSettings
from moldau.coordinator.group.consumer.topics import Topics
from moldau.coordinator.group.group import RefusedError
from moldau.coordinator.runtime.outcome import CoordinatorRecord
from moldau.core.errors import ErrorCode
from moldau.protocol.coordinator_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    GroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    encode_key,
    encode_value,
)

__all__ = [
    "assigned_bytes",
    "assignment_by_name",
    "can_downgrade",
    "classic_metadata",
    "common_protocols",
    "downgrade",
    "subscription_of",
    "upgrade",
]


def assignment_by_name(owned: Iterable[tuple[str, Sequence[int]]], topics: Topics) -> Assignment:
    """By topic name; deleted topics are left out."""
    return assignment_of(
        (facts.topic_id, partitions) for name, partitions in owned if (facts := topics.facts(name)) is not None
    )


def subscription_of(protocols: Sequence[ClassicProtocol]) -> Subscription:
    """A member's subscription; it is the same in each of its protocols."""
    found = decode_subscription(protocols[0].metadata) if protocols else None
    if found is None:
        raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The member's subscription cannot be read.")
    return found


def classic_metadata(
    *,
    instance_id: str | None,
    client_id: str,
    client_host: str,
    session_timeout_ms: int,
    rebalance_timeout_ms: int,
    protocols: tuple[ClassicProtocol, ...],
) -> ConsumerGroupMemberMetadataValue:
    """The metadata of a member of a consumer group that uses the classic protocol."""
    subscription = subscription_of(protocols)
    return ConsumerGroupMemberMetadataValue(
        instance_id=instance_id,
        rack_id=subscription.rack_id,
        client_id=client_id,
        client_host=client_host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=rebalance_timeout_ms,
        server_assignor=None,
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=session_timeout_ms, supported_protocols=protocols
        ),
    )


def common_protocols(members: Iterable[ConsumerMember]) -> list[str]:
    """Protocols that all members of the classic protocol offer, in the order of the first member."""
    offered = [
        [one.name for one in classic.supported_protocols]
        for member in members
        if (classic := member.metadata.classic_member_metadata) is not None
    ]
    return [name for name in offered[0] if all(name in names for names in offered)] if offered else []


# --- up -----------------------------------------------------------------------------------------------


def upgrade(group: ClassicGroup, topics: Topics, settings: ConsumerSettings) -> Draft:
    """The records that turn it into a group of the consumer protocol; its epoch is the former generation.

    Raises `RefusedError` if that is not allowed or its members are not consumers.
    """
    if not settings.allows_upgrade or group.protocol_type != CONSUMER:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} stays with the classic protocol.")
    if len(group.members) >= settings.group_consumer_max_size:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is too large to change protocol.")
    try:
        members = _without_doubles([_upgrade_member(member, group, topics) for member in group.members.values()])
    except RefusedError as refused:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND, refused.message) from None
    draft = Draft(ConsumerGroup(group.group_id))
    for member in members:
        draft.put_metadata(member.member_id, member.metadata)
    draft.put_epoch(group.generation_id, 0)
    for member in members:
        draft.put_target(member.member_id, member.assigned)
    draft.put_assignment_epoch(group.generation_id, group.state_changed_ms)
    for member in members:
        draft.put_current(member)
    return draft


def _upgrade_member(member: ClassicMember, group: ClassicGroup, topics: Topics) -> ConsumerMember:
    protocols = tuple(ClassicProtocol(name=one.name, metadata=one.metadata) for one in member.protocols)
    metadata = classic_metadata(
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=protocols,
    )
    assigned = decode_assignment(member.assignment)
    if assigned is None:
        raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "A member's assignment cannot be read.")
    held = assignment_by_name(assigned, topics)
    # It may not have received its newest assignment and still use the one before: no other member may get that yet.
    claimed = without(assignment_by_name(subscription_of(protocols).owned, topics), held)
    return ConsumerMember(
        member.member_id,
        metadata,
        group.generation_id,
        group.generation_id,
        MemberState.UNREVOKED_PARTITIONS if claimed else MemberState.STABLE,
        held,
        claimed,
    )


def _without_doubles(members: Sequence[ConsumerMember]) -> list[ConsumerMember]:
    """Assigned partitions take precedence over reported ones, and earlier members over later ones."""
    assigned: Assignment = NOTHING
    unique = []
    for member in members:
        unique.append(replace(member, assigned=without(member.assigned, assigned)))
        assigned = union(assigned, member.assigned)
    claimed: Assignment = NOTHING
    for position, member in enumerate(unique):
        pending = without(without(member.pending_revocation, assigned), claimed)
        claimed = union(claimed, pending)
        state = MemberState.UNREVOKED_PARTITIONS if pending else MemberState.STABLE
        unique[position] = replace(member, state=state, pending_revocation=pending)
    return unique


# --- down ---------------------------------------------------------------------------------------------


def can_downgrade(group: ConsumerGroup, settings: ConsumerSettings, most: int) -> bool:
    """Whether only members of the classic protocol are left and the settings allow a downgrade."""
    return (
        settings.allows_downgrade
        and 0 < len(group.members) <= most
        and all(member.uses_classic_protocol for member in group.members.values())
        and bool(common_protocols(group.members.values()))
    )


def downgrade(draft: Draft, topics: Topics, now_ms: int) -> CoordinatorRecord:
    """Write the consumer group's tombstones; returns the record that creates the classic group."""
    group = draft.group
    protocol = common_protocols(group.members.values())[0]
    value = GroupMetadataValue(
        protocol_type=CONSUMER,
        generation=group.epoch,
        protocol=protocol,
        leader=next(iter(group.members)),
        current_state_timestamp=now_ms,
        members=tuple(_downgrade_member(member, protocol, topics) for member in group.members.values()),
    )
    draft.delete_group()
    return CoordinatorRecord(encode_key(GroupMetadataKey(group=group.group_id)), encode_value(value))


def _downgrade_member(member: ConsumerMember, protocol: str, topics: Topics) -> GroupMember:
    metadata, classic = member.metadata, member.metadata.classic_member_metadata
    assert classic is not None
    return GroupMember(
        member_id=member.member_id,
        group_instance_id=metadata.instance_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        rebalance_timeout=metadata.rebalance_timeout_ms,
        session_timeout=classic.session_timeout_ms,
        subscription=next(one.metadata for one in classic.supported_protocols if one.name == protocol),
        assignment=assigned_bytes(member, topics),
    )


def assigned_bytes(member: ConsumerMember, topics: Topics) -> bytes:
    """A member's assignment as SyncGroup returns it."""
    classic = member.metadata.classic_member_metadata
    version = subscription_of(classic.supported_protocols).version if classic is not None else 0
    named = sorted(
        (name, sorted(partitions))
        for topic_id, partitions in member.assigned.items()
        if (name := topics.name_of(topic_id)) is not None
    )
    return encode_assignment(version, named)
