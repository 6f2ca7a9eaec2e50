"""What can be asked of a group over `client.wire` and not through librdkafka: offsets that stay, members that go.

Start at `commit_for_good`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moldau.client.admin import Admin
from moldau.client.wire import WireClient
from moldau.client.wire_admin import CoordinatorKey, find_coordinator, raise_for
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["RESET", "commit_for_good", "committed_by_group", "is_reset", "remove_members", "remove_static_member"]

FOREVER_MS = 100 * 365 * 24 * 3600 * 1000
VERSION_WITH_RETENTION = 4
"""The last version of OffsetCommit that says how long an offset is kept."""

VERSION_FOR_ONE_GROUP = 7
"""The last version of OffsetFetch that asks for one group."""

VERSION_FOR_MANY_GROUPS = 9
"""The last version of OffsetFetch that names topics; those from 8 on ask for many groups at once."""

GROUPS_PER_REQUEST = 100
RESET = "reset"
"""The metadata of offsets that a reset has set, and no run has replaced since."""


def commit_for_good(admin: Admin, group_id: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
    """Commit offsets of a group without members so that they never expire.

    Brokers forget the offsets of such a group after a week. An old version of the request says how long to keep an
    offset; brokers of today still take it. Raises `ClientError` where the broker refuses.
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
    """What groups have committed, asked of their coordinator, many in one request; without those that it refuses."""
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
    """Whether offsets of a group are as a reset has left them: at least one, and all that there are."""
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
    """Take a static member out of its group, which it does not leave by itself when it closes.

    With a `member_id` only that one: raises `ClientError` where another process has its place by now. Without, whoever
    has the place; one that lives comes back at once. A member that is gone already is no error.
    """
    member = Message(member_id=member_id, group_instance_id=instance_id, reason="closed")
    with admin.wire(_coordinator(admin, group_id)) as client:
        answer = client.send(ApiKey.LEAVE_GROUP, Message(group_id=group_id, members=[member]))
    for code in (answer.error_code, *(one.error_code for one in answer.members)):
        if code != ErrorCode.UNKNOWN_MEMBER_ID:
            raise_for(code, about=f"member {instance_id} of group {group_id}")


def remove_members(admin: Admin, group_id: str, members: Iterable[tuple[str, str | None]]) -> None:
    """Take members out of their group, each by its id or, where it has one, by the name of its instance.

    One that lives comes back at once. A member that is gone already is no error.
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
