"""Groups and their offsets, as blocking calls that return values or raise.

Offsets and deletion go through librdkafka; listing and describing go over `client.wire`, since librdkafka knows
neither the states nor the epochs of the consumer protocol (KIP-848). The functions below `Groups` use `client.wire`
for what librdkafka cannot do: commit offsets that never expire, read the offsets of many groups at once, remove
members. Start at `Groups`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from moldau.client.admin import Admin, Node
from moldau.client.errors import ClientError, client_error
from moldau.client.wire import WireClient
from moldau.client.wire_admin import CoordinatorKey, find_coordinator, raise_for
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.api import ApiKey
from moldau.protocol.consumer_protocol import decode_assignment
from moldau.protocol.messages import Message
from moldau.protocol.record_schemas import MalformedRecordError

__all__ = [
    "RESET",
    "CommittedOffset",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "Groups",
    "commit_for_good",
    "committed_by_group",
    "is_reset",
    "remove_members",
    "remove_static_member",
]


RETRY_S = 0.1
GROUP_COORDINATOR = 0
_BUSY = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_NOT_OF_THAT_TYPE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class GroupListing:
    group_id: str
    type: str
    """`Classic`, `Consumer`, `Share` or `Streams`; empty for brokers too old to report it."""
    state: str
    protocol: str
    """The members' protocol type, such as `consumer` or `connect`; empty for a group that only keeps offsets."""

    @property
    def is_consumer_group(self) -> bool:
        return self.type == "Consumer" or (self.type in ("Classic", "") and self.protocol in ("consumer", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    assignment: tuple[TopicPartition, ...] = ()
    target: tuple[TopicPartition, ...] = ()
    epoch: int | None = None
    is_upgraded: bool | None = None
    """Whether a member of a consumer-protocol group uses that protocol, rather than still the classic one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    group_id: str
    state: str
    coordinator: Node
    assignor: str
    members: tuple[GroupMember, ...] = ()
    epoch: int | None = None
    target_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    offset: int
    leader_epoch: int | None = None


class Groups:
    """The groups of one cluster. Calls wait for coordinators that are loading, up to the admin's timeout."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    # Groups

    def listings(self) -> list[GroupListing]:
        """All groups of all brokers, in the brokers' order."""
        found: dict[str, GroupListing] = {}
        for node in self._admin.describe_cluster().nodes:
            with self._admin.wire(node.id) as client:
                found |= {listing.group_id: listing for listing in self._patiently(partial(_list, client))}
        return list(found.values())

    def listings_with_offsets(self) -> list[tuple[GroupListing, dict[TopicPartition, int] | None]]:
        """All groups, each with its committed offsets; `None` where its coordinator does not return them.

        A few requests to each broker, however many groups there are: a broker lists those that it coordinates.
        """
        found: dict[str, tuple[GroupListing, dict[TopicPartition, int] | None]] = {}
        for node in self._admin.describe_cluster().nodes:
            with self._admin.wire(node.id) as client:
                listings = self._patiently(partial(_list, client))
                committed = committed_by_group(client, [listing.group_id for listing in listings])
            found |= {listing.group_id: (listing, committed.get(listing.group_id)) for listing in listings}
        return list(found.values())

    def describe(self, group_id: str) -> GroupDescription | None:
        """A group as its coordinator sees it, or `None` where there is none."""
        try:
            return self._patiently(lambda: self._describe(group_id))
        except ClientError as error:
            if error.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
                return None
            raise

    def delete(self, group_ids: Sequence[str]) -> dict[str, ClientError | None]:
        """Delete groups with their offsets; each one's error, or `None` on success."""
        futures = self._admin.client.delete_consumer_groups(list(group_ids), request_timeout=self._admin.timeout_s)
        return {group_id: self._outcome(future) for group_id, future in futures.items()}

    # Offsets

    def committed(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """The group's committed offsets; empty for a group that does not exist."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        futures = self._admin.client.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group_id)], request_timeout=self._admin.timeout_s
        )
        try:
            found = self._admin.wait_for(futures[group_id])
        except ClientError as error:
            if error.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
                return {}
            raise
        committed = {}
        for partition in found.topic_partitions or ():
            if partition.error is not None:
                raise client_error(partition.error, about=f"{partition.topic}-{partition.partition}")
            if partition.offset >= 0:
                key = TopicPartition(partition.topic, partition.partition)
                epoch = partition.leader_epoch
                committed[key] = CommittedOffset(partition.offset, epoch if epoch is not None and epoch >= 0 else None)
        return committed

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit for a group without members; the first partition that fails raises."""
        from confluent_kafka import ConsumerGroupTopicPartitions
        from confluent_kafka import TopicPartition as Position

        if not offsets:
            return
        positions = [Position(partition.topic, partition.partition, offset) for partition, offset in offsets.items()]
        futures = self._admin.client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group_id, positions)], request_timeout=self._admin.timeout_s
        )
        for partition in self._admin.wait_for(futures[group_id]).topic_partitions or ():
            if partition.error is not None:
                raise client_error(partition.error, about=f"{partition.topic}-{partition.partition}")

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ClientError | None]:
        """Forget offsets; each partition's error, or `None`. Raises where the whole request is rejected."""
        return self._patiently(lambda: self._delete_offsets(group_id, list(partitions)))

    # Internals

    def _describe(self, group_id: str) -> GroupDescription:
        coordinator = self._coordinator(group_id)
        with self._admin.wire(coordinator.id) as client:
            if ApiKey.CONSUMER_GROUP_DESCRIBE in client.api_versions():
                try:
                    return _describe_consumer(client, group_id, coordinator)
                except ClientError as error:
                    if error.error_code not in _NOT_OF_THAT_TYPE:
                        raise
            return _describe_classic(client, group_id, coordinator)

    def _delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ClientError | None]:
        topics: dict[str, list[Message]] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, []).append(Message(partition_index=partition.partition))
        request = Message(
            group_id=group_id, topics=[Message(name=name, partitions=indexes) for name, indexes in topics.items()]
        )
        with self._admin.wire(self._coordinator(group_id).id) as client:
            answer = client.send(ApiKey.OFFSET_DELETE, request)
        raise_for(answer.error_code)
        return {
            TopicPartition(topic.name, partition.partition_index): _error(partition.error_code)
            for topic in answer.topics
            for partition in topic.partitions
        }

    def _coordinator(self, group_id: str) -> Node:
        with self._admin.wire() as client:
            request = Message(key=group_id, key_type=GROUP_COORDINATOR, coordinator_keys=[group_id])
            answer = client.send(ApiKey.FIND_COORDINATOR, request)
        found = answer.coordinators[0] if answer.coordinators else answer
        raise_for(found.error_code, found.error_message)
        return Node(found.node_id, found.host, found.port)

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        deadline = time.monotonic() + self._admin.timeout_s
        while True:
            try:
                return ask()
            except ClientError as error:
                if error.error_code not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)

    def _outcome(self, future: Any) -> ClientError | None:
        try:
            self._admin.wait_for(future)
        except ClientError as error:
            return error
        return None


def _list(client: WireClient) -> list[GroupListing]:
    answer = client.send(ApiKey.LIST_GROUPS, Message(states_filter=[], types_filter=[]))
    raise_for(answer.error_code)
    return [
        GroupListing(
            group.group_id, (group.group_type or "").capitalize(), group.group_state or "", group.protocol_type
        )
        for group in answer.groups
    ]


def _describe_classic(client: WireClient, group_id: str, coordinator: Node) -> GroupDescription:
    answer = client.send(ApiKey.DESCRIBE_GROUPS, Message(groups=[group_id], include_authorized_operations=False))
    group = answer.groups[0]
    raise_for(group.error_code, group.error_message)
    # Brokers before Kafka 4.0 call a group that does not exist dead.
    if group.group_state == "Dead":
        raise ClientError(f"Group {group_id} not found.", ErrorCode.GROUP_ID_NOT_FOUND)
    members = tuple(
        GroupMember(
            member_id=member.member_id,
            client_id=member.client_id,
            host=member.client_host,
            instance_id=member.group_instance_id,
            assignment=_assigned_partitions(group.protocol_type, member.member_assignment),
        )
        for member in group.members
    )
    return GroupDescription(
        group_id=group_id,
        state=group.group_state,
        coordinator=coordinator,
        assignor=group.protocol_data or "",
        members=members,
    )


def _assigned_partitions(protocol: str, assignment: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of a consumer; empty during a rebalance, or for members that are not consumers."""
    if protocol != "consumer" or not assignment:
        return ()
    try:
        _, content = decode_assignment(bytes(assignment))
    except MalformedRecordError:
        return ()
    return _sorted_partitions((entry.topic, entry.partitions) for entry in content.assigned_partitions)


def _describe_consumer(client: WireClient, group_id: str, coordinator: Node) -> GroupDescription:
    request = Message(group_ids=[group_id], include_authorized_operations=False)
    group = client.send(ApiKey.CONSUMER_GROUP_DESCRIBE, request).groups[0]
    raise_for(group.error_code, group.error_message)
    members = tuple(
        GroupMember(
            member_id=member.member_id,
            client_id=member.client_id,
            host=member.client_host,
            instance_id=member.instance_id,
            assignment=_by_name(member.assignment),
            target=_by_name(member.target_assignment),
            epoch=member.member_epoch,
            is_upgraded={0: False, 1: True}.get(member.member_type),
        )
        for member in group.members
    )
    return GroupDescription(
        group_id=group_id,
        state=group.group_state,
        coordinator=coordinator,
        assignor=group.assignor_name,
        members=members,
        epoch=group.group_epoch,
        target_epoch=group.assignment_epoch,
    )


def _by_name(assignment: Any) -> tuple[TopicPartition, ...]:
    return _sorted_partitions((entry.topic_name, entry.partitions) for entry in assignment.topic_partitions)


def _sorted_partitions(topics: Iterable[tuple[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(topic, number) for topic, numbers in topics for number in numbers))


def _error(code: int) -> ClientError | None:
    try:
        raise_for(code)
    except ClientError as error:
        return error
    return None


FOREVER_MS = 100 * 365 * 24 * 3600 * 1000
VERSION_WITH_RETENTION = 4
"""The last version of OffsetCommit with a retention time."""

VERSION_FOR_ONE_GROUP = 7
"""The last version of OffsetFetch for a single group."""

VERSION_FOR_MANY_GROUPS = 9
"""The last version of OffsetFetch that uses topic names; from 8 on, a request may name many groups."""

GROUPS_PER_REQUEST = 100
RESET = "reset"
"""The metadata of offsets that were set by a reset and not committed since."""


def commit_for_good(admin: Admin, group_id: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
    """Commit offsets of a group without members so that they never expire.

    Brokers expire the offsets of such a group after a week (`offsets.retention.minutes`). An old version of the request
    carries its own retention time, which brokers still accept. Raises `ClientError` where the broker rejects it.
    """
    topics: dict[str, list[Message]] = {}
    for at, offset in offsets.items():
        position = Message(partition_index=at.partition, committed_offset=offset, committed_metadata=metadata)
        topics.setdefault(at.topic, []).append(position)
    request = Message(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=FOREVER_MS,
        topics=[Message(name=name, partitions=positions) for name, positions in topics.items()],
    )
    with admin.wire(_coordinator(admin, group_id)) as client:
        answer = client.send(ApiKey.OFFSET_COMMIT, request, VERSION_WITH_RETENTION)
    for topic in answer.topics:
        for one in topic.partitions:
            raise_for(one.error_code, about=f"{topic.name}-{one.partition_index}")


def committed_by_group(client: WireClient, group_ids: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """The committed offsets of groups with one coordinator, many in one request; groups that fail are left out."""
    version = min(VERSION_FOR_MANY_GROUPS, client.version_for(ApiKey.OFFSET_FETCH))
    if version <= VERSION_FOR_ONE_GROUP:
        answers = {group_id: _fetch_for_one_group(client, group_id, version) for group_id in group_ids}
        return {group_id: _positions(answer) for group_id, answer in answers.items() if not answer.error_code}
    found: dict[str, dict[TopicPartition, int]] = {}
    for some in (group_ids[at : at + GROUPS_PER_REQUEST] for at in range(0, len(group_ids), GROUPS_PER_REQUEST)):
        wanted = [Message(group_id=group_id, member_id=None, member_epoch=-1, topics=None) for group_id in some]
        answer = client.send(ApiKey.OFFSET_FETCH, Message(groups=wanted, require_stable=False), version)
        found |= {group.group_id: _positions(group) for group in answer.groups if not group.error_code}
    return found


def _fetch_for_one_group(client: WireClient, group_id: str, version: int) -> Message:
    return client.send(ApiKey.OFFSET_FETCH, Message(group_id=group_id, topics=None, require_stable=False), version)


def _positions(answer: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, one.partition_index): one.committed_offset
        for topic in answer.topics
        for one in topic.partitions
        if one.committed_offset >= 0 and not one.error_code
    }


def is_reset(admin: Admin, group_id: str, partitions: Iterable[TopicPartition]) -> bool:
    """Whether a group has committed offsets, and all of them were set by a reset."""
    topics: dict[str, list[int]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    request = Message(
        group_id=group_id,
        topics=[Message(name=name, partition_indexes=numbers) for name, numbers in topics.items()],
        require_stable=False,
    )
    if not topics:
        return False
    with admin.wire(_coordinator(admin, group_id)) as client:
        answer = client.send(ApiKey.OFFSET_FETCH, request, VERSION_FOR_ONE_GROUP)
    raise_for(answer.error_code)
    notes = [one.metadata for topic in answer.topics for one in topic.partitions if one.committed_offset >= 0]
    return bool(notes) and all(note == RESET for note in notes)


def remove_static_member(admin: Admin, group_id: str, instance_id: str, member_id: str = "") -> None:
    """Remove a static member from its group, since static members do not leave when they close.

    With a `member_id`, only that member: raises `ClientError` where another process has taken over the instance id.
    Without one, whichever member has the instance id; if it is alive, it rejoins. A missing member is no error.
    """
    member = Message(member_id=member_id, group_instance_id=instance_id, reason="closed")
    with admin.wire(_coordinator(admin, group_id)) as client:
        answer = client.send(ApiKey.LEAVE_GROUP, Message(group_id=group_id, members=[member]))
    for code in (answer.error_code, *(one.error_code for one in answer.members)):
        if code != ErrorCode.UNKNOWN_MEMBER_ID:
            raise_for(code, about=f"member {instance_id} of group {group_id}")


def remove_members(admin: Admin, group_id: str, members: Iterable[tuple[str, str | None]]) -> None:
    """Remove members from their group, each by its member id or, for static members, by its instance id.

    A member that is alive rejoins. A missing member is no error.
    """
    leaving = [
        Message(member_id="" if instance_id else member_id, group_instance_id=instance_id, reason="removed")
        for member_id, instance_id in members
    ]
    with admin.wire(_coordinator(admin, group_id)) as client:
        answer = client.send(ApiKey.LEAVE_GROUP, Message(group_id=group_id, members=leaving))
    for code in (answer.error_code, *(one.error_code for one in answer.members)):
        if code != ErrorCode.UNKNOWN_MEMBER_ID:
            raise_for(code, about=f"members of group {group_id}")


def _coordinator(admin: Admin, group_id: str) -> int:
    with admin.wire() as client:
        return find_coordinator(client, group_id, CoordinatorKey.GROUP)
