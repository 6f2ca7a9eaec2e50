"""Administration of replicas and of the metadata quorum, as calls over `client.wire`.

Any broker answers; what only the active controller decides it forwards. Start at `elect_leaders` and `describe_quorum`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from moldau.client.errors import ClientError
from moldau.client.wire import WireClient
from moldau.client.wire_admin import raise_for
from moldau.core.ids import TopicPartition
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = [
    "ElectionType",
    "Quorum",
    "QuorumReplica",
    "add_voter",
    "alter_reassignments",
    "describe_quorum",
    "elect_leaders",
    "remove_voter",
]

METADATA_TOPIC = "__cluster_metadata"
TIMEOUT_MS = 30_000


class ElectionType(IntEnum):
    """Kafka's numbers of elections."""

    PREFERRED = 0
    UNCLEAN = 1


# Elections and reassignments


def elect_leaders(
    client: WireClient, kind: ElectionType, partitions: Sequence[TopicPartition] | None
) -> dict[TopicPartition, ClientError | None]:
    """Elect leaders of these partitions, `None` for all that need it; each with its error."""
    wanted = (
        None
        if partitions is None
        else [Message(topic=topic, partitions=numbers) for topic, numbers in _by_topic(partitions).items()]
    )
    request = Message(election_type=int(kind), topic_partitions=wanted, timeout_ms=TIMEOUT_MS)
    answer = client.send(ApiKey.ELECT_LEADERS, request)
    raise_for(answer.error_code)
    return {
        TopicPartition(topic.topic, one.partition_id): _failure(one.error_code, one.error_message)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


def alter_reassignments(
    client: WireClient, targets: Mapping[TopicPartition, Sequence[int] | None], *, may_change_factor: bool = True
) -> dict[TopicPartition, ClientError | None]:
    """Begin moving partitions to these brokers; `None` for a partition cancels. Each with its error."""
    topics = [
        Message(
            name=topic,
            partitions=[
                Message(partition_index=number, replicas=None if replicas is None else list(replicas))
                for number in numbers
                for replicas in [targets[TopicPartition(topic, number)]]
            ],
        )
        for topic, numbers in _by_topic(targets).items()
    ]
    request = Message(timeout_ms=TIMEOUT_MS, allow_replication_factor_change=may_change_factor, topics=topics)
    answer = client.send(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request)
    raise_for(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, one.partition_index): _failure(one.error_code, one.error_message)
        for topic in answer.responses
        for one in topic.partitions
    }


def _by_topic(partitions: Sequence[TopicPartition] | Mapping[TopicPartition, Any]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found


def _failure(code: int, message: str | None) -> ClientError | None:
    try:
        raise_for(code, message)
    except ClientError as error:
        return error
    return None


# The metadata quorum


class QuorumReplica(NamedTuple):
    id: int
    directory_id: uuid.UUID | None
    end_offset: int
    last_fetch_ms: int
    """-1 where it is not known."""
    last_caught_up_ms: int


class Quorum(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]
    endpoints: Mapping[int, Sequence[tuple[str, str, int]]]
    """Listener, host and port of each node, where they are known."""


def describe_quorum(client: WireClient) -> Quorum:
    topics = [Message(topic_name=METADATA_TOPIC, partitions=[Message(partition_index=0)])]
    answer = client.send(ApiKey.DESCRIBE_QUORUM, Message(topics=topics))
    raise_for(answer.error_code, answer.error_message)
    one = answer.topics[0].partitions[0]
    raise_for(one.error_code, one.error_message)
    return Quorum(
        one.leader_id,
        one.leader_epoch,
        one.high_watermark,
        [_replica(each) for each in one.current_voters],
        [_replica(each) for each in one.observers],
        {node.node_id: [(at.name, at.host, at.port) for at in node.listeners] for node in answer.nodes},
    )


def _replica(one: Message) -> QuorumReplica:
    return QuorumReplica(
        one.replica_id,
        one.replica_directory_id,
        one.log_end_offset,
        one.last_fetch_timestamp,
        one.last_caught_up_timestamp,
    )


def add_voter(
    client: WireClient, node_id: int, directory_id: uuid.UUID, endpoints: Sequence[tuple[str, str, int]]
) -> None:
    request = Message(
        cluster_id=None,
        timeout_ms=TIMEOUT_MS,
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=[Message(name=name, host=host, port=port) for name, host, port in endpoints],
        ack_when_committed=True,
    )
    answer = client.send(ApiKey.ADD_RAFT_VOTER, request)
    raise_for(answer.error_code, answer.error_message)


def remove_voter(client: WireClient, node_id: int, directory_id: uuid.UUID) -> None:
    request = Message(cluster_id=None, voter_id=node_id, voter_directory_id=directory_id)
    answer = client.send(ApiKey.REMOVE_RAFT_VOTER, request)
    raise_for(answer.error_code, answer.error_message)
