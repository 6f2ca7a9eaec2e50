"""What can be asked of a group over `client.wire` and not through librdkafka: offsets that stay, members that go.

Start at `commit_for_good`.
"""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.admin import Admin
from moldau.client.wire import WireClient
from moldau.client.wire_admin import raise_for
from moldau.core.ids import TopicPartition
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["commit_for_good", "remove_static_member"]

FOREVER_MS = 100 * 365 * 24 * 3600 * 1000
VERSION_WITH_RETENTION = 4
"""The last version of OffsetCommit that says how long an offset is kept."""

GROUP_COORDINATOR = 0


def commit_for_good(
    admin: Admin, group_id: str, offsets: Mapping[TopicPartition, int], *, without_member: str | None = None
) -> None:
    """Commit offsets of a group without members so that they never expire.

    Brokers forget the offsets of such a group after a week. An old version of the request says how long to keep an
    offset; brokers of today still take it. `without_member` names a static member that is taken out of the group
    first: those stay when they close. Raises `ClientError` where the broker refuses.
    """
    topics: dict[str, list[Message]] = {}
    for at, offset in offsets.items():
        position = Message(partition_index=at.partition, committed_offset=offset, committed_metadata="")
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
        if without_member is not None:
            _leave(client, group_id, without_member)
        answer = client.send(ApiKey.OFFSET_COMMIT, request, VERSION_WITH_RETENTION)
    for topic in answer.topics:
        for one in topic.partitions:
            raise_for(one.error_code, about=f"{topic.name}-{one.partition_index}")


def remove_static_member(admin: Admin, group_id: str, instance_id: str) -> None:
    """Take out a static member that a process left behind; a living one comes back at once."""
    with admin.wire(_coordinator(admin, group_id)) as client:
        _leave(client, group_id, instance_id)


def _leave(client: WireClient, group_id: str, instance_id: str) -> None:
    member = Message(member_id="", group_instance_id=instance_id, reason="closed")
    client.send(ApiKey.LEAVE_GROUP, Message(group_id=group_id, members=[member]))


def _coordinator(admin: Admin, group_id: str) -> int:
    request = Message(key=group_id, key_type=GROUP_COORDINATOR, coordinator_keys=[group_id])
    with admin.wire() as client:
        answer = client.send(ApiKey.FIND_COORDINATOR, request)
    found = answer.coordinators[0] if answer.coordinators else answer
    raise_for(found.error_code, found.error_message)
    node: int = found.node_id
    return node
