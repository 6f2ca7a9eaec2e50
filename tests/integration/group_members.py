"""Members of groups spoken byte by byte: what a client library does for a member, one request at a time."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["ClassicMember", "NewMember", "commit", "coordinator_is_ready", "fetch_offsets"]

RETRIED = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


def coordinator_is_ready(wire: WireClient, group: str) -> None:
    """Ask for the group's coordinator until there is one and it has read its log; asking creates its topic."""
    while True:
        reply = wire.send(ApiKey.FIND_COORDINATOR, Message(key_type=0, coordinator_keys=[group]))
        if reply.coordinators[0].error_code == ErrorCode.NONE:
            break
        assert reply.coordinators[0].error_code in RETRIED, reply
    while fetch_offsets(wire, group, "any", [0]).error_code in RETRIED:
        continue


class ClassicMember:
    """A member of the classic protocol, with one protocol called `range`."""

    def __init__(self, wire: WireClient, group: str, *, instance: str | None = None, session_ms: int = 10_000) -> None:
        self.wire = wire
        self.group = group
        self.instance = instance
        self.session_ms = session_ms
        self.member_id = ""
        self.generation = -1
        self.is_leader = False

    def join_request(self, **changes: Any) -> Message:
        return Message(
            **{
                "group_id": self.group,
                "session_timeout_ms": self.session_ms,
                "rebalance_timeout_ms": 10_000,
                "member_id": self.member_id,
                "group_instance_id": self.instance,
                "protocol_type": "consumer",
                "protocols": [Message(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
                **changes,
            }
        )

    def join(self) -> int:
        """Join, and remember what was answered; returns the error code. The first time takes two requests."""
        while True:
            reply = self.wire.send(ApiKey.JOIN_GROUP, self.join_request())
            if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = reply.member_id
            elif reply.error_code not in RETRIED:
                break
        self.member_id, self.generation = reply.member_id, reply.generation_id
        self.is_leader = reply.leader == reply.member_id
        return int(reply.error_code)

    def sync(self, **changes: Any) -> int:
        assignments = [Message(member_id=self.member_id, assignment=b"mine")] if self.is_leader else []
        fields = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": assignments,
            **changes,
        }
        return int(self.wire.send(ApiKey.SYNC_GROUP, Message(**fields)).error_code)

    def heartbeat(self, **changes: Any) -> int:
        fields = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            **changes,
        }
        return int(self.wire.send(ApiKey.HEARTBEAT, Message(**fields)).error_code)

    def leave(self, **changes: Any) -> int:
        """The error of the one member named."""
        who = Message(**{"member_id": self.member_id, "group_instance_id": self.instance, "reason": None, **changes})
        reply = self.wire.send(ApiKey.LEAVE_GROUP, Message(group_id=self.group, members=[who]))
        return int(reply.error_code or reply.members[0].error_code)

    def settled(self) -> ClassicMember:
        """Alone in its group, with an assignment."""
        assert (self.join(), self.sync()) == (ErrorCode.NONE, ErrorCode.NONE)
        return self


class NewMember:
    """A member of the consumer protocol."""

    def __init__(self, wire: WireClient, group: str, topics: list[str], *, instance: str | None = None) -> None:
        self.wire = wire
        self.group = group
        self.topics = topics
        self.instance = instance
        self.member_id = str(uuid4())
        self.epoch = 0
        self.owned: dict[UUID, list[int]] = {}

    def heartbeat(self, **changes: Any) -> int:
        """A full heartbeat; what is assigned counts as owned from the next one on. Returns the error code."""
        owned = [Message(topic_id=topic, partitions=numbers) for topic, numbers in self.owned.items()]
        fields = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
            "rack_id": None,
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": owned,
            **changes,
        }
        while True:
            reply = self.wire.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, Message(**fields))
            if reply.error_code not in RETRIED:
                break
        if reply.error_code == ErrorCode.NONE:
            self.epoch = reply.member_epoch
            if reply.assignment is not None:
                self.owned = {one.topic_id: list(one.partitions) for one in reply.assignment.topic_partitions}
        return int(reply.error_code)


def commit(wire: WireClient, group: str, topic: str, offset: int, *, version: int = 9, **changes: Any) -> int:
    """Commit one offset of partition 0, by nobody in particular unless `changes` say who."""
    partition = Message(
        partition_index=changes.pop("partition", 0),
        committed_offset=offset,
        committed_leader_epoch=-1,
        committed_metadata=changes.pop("metadata", ""),
    )
    fields = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [Message(name=topic, partitions=[partition])],
        **changes,
    }
    reply = wire.send(ApiKey.OFFSET_COMMIT, Message(**fields), version)
    return int(reply.topics[0].partitions[0].error_code)


def fetch_offsets(wire: WireClient, group: str, topic: str, partitions: list[int], **changes: Any) -> Message:
    """The group's part of an OffsetFetch answer."""
    asked = {
        "group_id": group,
        "member_id": None,
        "member_epoch": -1,
        "topics": [Message(name=topic, partition_indexes=partitions)],
        **changes,
    }
    reply = wire.send(ApiKey.OFFSET_FETCH, Message(groups=[Message(**asked)], require_stable=True), 9)
    (group_reply,) = reply.groups
    assert isinstance(group_reply, Message)
    return group_reply
