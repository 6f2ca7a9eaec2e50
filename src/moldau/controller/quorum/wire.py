"""Kafka's messages of the quorum and those of `raft.messages`, translated both ways.

Every request concerns one partition, `__cluster_metadata-0`. Start at `request_to_wire` and `request_from_wire`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any, Final

from moldau.controller.errors import RefusedError
from moldau.controller.quorum.records import batches_in
from moldau.controller.topic_names import METADATA_TOPIC
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.raft.log_history import EpochEnd, SnapshotId
from moldau.raft.messages import (
    NOBODY,
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    EpochReply,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    LeaderHint,
    RemoveVoterRequest,
    Reply,
    Request,
    UpdateVoterRequest,
    VersionsReply,
    VersionsRequest,
    VoteReply,
    VoteRequest,
    VoterReply,
)
from moldau.raft.voters import Endpoint, ReplicaKey, Voter

__all__ = [
    "METADATA_TOPIC_ID",
    "reply_from_wire",
    "reply_to_wire",
    "request_from_wire",
    "request_to_wire",
]

METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
KRAFT_VERSION: Final = "kraft.version"
FETCH_BYTES: Final = 8 * 1024 * 1024


# --- requests that leave ----------------------------------------------------------------------------


def request_to_wire(request: Request) -> tuple[ApiKey, Message]:
    match request:
        case VoteRequest():
            return ApiKey.VOTE, _vote_to_wire(request)
        case BeginEpochRequest(cluster_id, leader_id, epoch, endpoints, voter):
            partition = Message(
                partition_index=0,
                leader_id=leader_id,
                leader_epoch=epoch,
                voter_directory_id=None if voter is None else voter.directory_id,
            )
            message = _of_partition(partition, cluster_id=cluster_id, leader_endpoints=_listeners(endpoints))
            message.voter_id = NOBODY if voter is None else voter.id
            return ApiKey.BEGIN_QUORUM_EPOCH, message
        case EndEpochRequest(cluster_id, leader_id, epoch, successors, endpoints):
            candidates = [Message(candidate_id=one.id, candidate_directory_id=one.directory_id) for one in successors]
            partition = Message(
                partition_index=0,
                leader_id=leader_id,
                leader_epoch=epoch,
                preferred_candidates=candidates,
                preferred_successors=[one.id for one in successors],
            )
            message = _of_partition(partition, cluster_id=cluster_id, leader_endpoints=_listeners(endpoints))
            return ApiKey.END_QUORUM_EPOCH, message
        case FetchRequest():
            return ApiKey.FETCH, _fetch_to_wire(request)
        case FetchSnapshotRequest():
            return ApiKey.FETCH_SNAPSHOT, _fetch_snapshot_to_wire(request)
        case UpdateVoterRequest(cluster_id, epoch, voter):
            return ApiKey.UPDATE_RAFT_VOTER, Message(
                cluster_id=cluster_id,
                current_leader_epoch=epoch,
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                listeners=_listeners(voter.endpoints),
                k_raft_version_feature=Message(
                    min_supported_version=voter.min_kraft_version, max_supported_version=voter.max_kraft_version
                ),
            )
        case VersionsRequest():
            return ApiKey.API_VERSIONS, Message(client_software_name="moldau", client_software_version="1")
    raise AssertionError(f"{type(request).__name__} is sent by clients only")


def _of_partition(partition: Message, **fields: Any) -> Message:
    return Message(topics=[Message(topic_name=METADATA_TOPIC, partitions=[partition])], **fields)


def _listeners(endpoints: Iterable[Endpoint]) -> list[Message]:
    return [Message(name=one.listener, host=one.host, port=one.port) for one in endpoints]


def _vote_to_wire(request: VoteRequest) -> Message:
    partition = Message(
        partition_index=0,
        replica_epoch=request.epoch,
        replica_id=request.candidate.id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=None if request.voter is None else request.voter.directory_id,
        last_offset_epoch=request.last_epoch,
        last_offset=request.end_offset,
        pre_vote=request.is_pre_vote,
    )
    message = _of_partition(partition, cluster_id=request.cluster_id)
    message.voter_id = NOBODY if request.voter is None else request.voter.id
    return message


def _fetch_to_wire(request: FetchRequest) -> Message:
    partition = Message(
        partition=0,
        current_leader_epoch=request.epoch,
        fetch_offset=request.fetch_offset,
        last_fetched_epoch=request.last_fetched_epoch,
        log_start_offset=-1,
        partition_max_bytes=FETCH_BYTES,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    return Message(
        cluster_id=request.cluster_id,
        replica_state=Message(replica_id=request.replica.id, replica_epoch=-1),
        max_wait_ms=request.max_wait_ms,
        max_bytes=FETCH_BYTES,
        topics=[Message(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def _fetch_snapshot_to_wire(request: FetchSnapshotRequest) -> Message:
    partition = Message(
        partition=0,
        current_leader_epoch=request.epoch,
        snapshot_id=Message(end_offset=request.snapshot.end_offset, epoch=request.snapshot.epoch),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    return Message(
        cluster_id=request.cluster_id,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=[Message(name=METADATA_TOPIC, partitions=[partition])],
    )


# --- requests that arrive ---------------------------------------------------------------------------


def request_from_wire(api_key: int, message: Message) -> Request:
    """Raises `RefusedError` for anything but one request about the one partition."""
    match api_key:
        case ApiKey.VOTE:
            one = _the_partition(message.topics, "topic_name", "partition_index")
            voter = None if message.voter_id < 0 else ReplicaKey(message.voter_id, one.voter_directory_id)
            candidate = ReplicaKey(one.replica_id, one.replica_directory_id)
            return VoteRequest(
                message.cluster_id,
                candidate,
                one.replica_epoch,
                one.last_offset_epoch,
                one.last_offset,
                one.pre_vote,
                voter,
            )
        case ApiKey.BEGIN_QUORUM_EPOCH:
            one = _the_partition(message.topics, "topic_name", "partition_index")
            voter = None if message.voter_id < 0 else ReplicaKey(message.voter_id, one.voter_directory_id)
            endpoints = _endpoints(message.leader_endpoints)
            return BeginEpochRequest(message.cluster_id, one.leader_id, one.leader_epoch, endpoints, voter)
        case ApiKey.END_QUORUM_EPOCH:
            one = _the_partition(message.topics, "topic_name", "partition_index")
            keys = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in one.preferred_candidates]
            keys = keys or [ReplicaKey(each) for each in one.preferred_successors]
            endpoints = _endpoints(message.leader_endpoints)
            return EndEpochRequest(message.cluster_id, one.leader_id, one.leader_epoch, tuple(keys), endpoints)
        case ApiKey.FETCH:
            return _fetch_from_wire(message)
        case ApiKey.FETCH_SNAPSHOT:
            one = _the_partition(message.topics, "name", "partition")
            snapshot = SnapshotId(one.snapshot_id.end_offset, one.snapshot_id.epoch)
            replica = ReplicaKey(message.replica_id, one.replica_directory_id)
            return FetchSnapshotRequest(
                message.cluster_id, replica, one.current_leader_epoch, snapshot, one.position, message.max_bytes
            )
        case ApiKey.ADD_RAFT_VOTER:
            key = ReplicaKey(message.voter_id, message.voter_directory_id)
            listeners = _endpoints(message.listeners)
            return AddVoterRequest(
                message.cluster_id, key, listeners, message.timeout_ms, getattr(message, "ack_when_committed", True)
            )
        case ApiKey.REMOVE_RAFT_VOTER:
            return RemoveVoterRequest(message.cluster_id, ReplicaKey(message.voter_id, message.voter_directory_id))
    feature = message.k_raft_version_feature
    voter_entry = Voter(
        ReplicaKey(message.voter_id, message.voter_directory_id),
        _endpoints(message.listeners),
        feature.min_supported_version,
        feature.max_supported_version,
    )
    return UpdateVoterRequest(message.cluster_id, message.current_leader_epoch, voter_entry)


def _the_partition(topics: list[Message], name: str, number: str) -> Message:
    if len(topics) == 1 and getattr(topics[0], name) == METADATA_TOPIC and len(topics[0].partitions) == 1:
        partition: Message = topics[0].partitions[0]
        if getattr(partition, number) == 0:
            return partition
    raise RefusedError(ErrorCode.INVALID_REQUEST, f"the quorum has one partition, {METADATA_TOPIC}-0")


def _fetch_from_wire(message: Message) -> FetchRequest:
    topics = message.topics
    is_known = len(topics) == 1 and getattr(topics[0], "topic_id", METADATA_TOPIC_ID) == METADATA_TOPIC_ID
    if not is_known or len(topics[0].partitions) != 1 or topics[0].partitions[0].partition != 0:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"the quorum has one partition, {METADATA_TOPIC}-0")
    one = topics[0].partitions[0]
    replica_id = message.replica_state.replica_id
    return FetchRequest(
        message.cluster_id,
        ReplicaKey(replica_id, one.replica_directory_id),
        one.current_leader_epoch,
        one.fetch_offset,
        one.last_fetched_epoch,
        message.max_wait_ms,
        one.high_watermark,
    )


def _endpoints(listeners: Iterable[Message]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(one.name, one.host, one.port) for one in listeners)


# --- replies that leave -----------------------------------------------------------------------------


def reply_to_wire(reply: Reply, records: bytes = b"") -> Message:
    """A reply's message; `records` are those of a fetch."""
    hint = reply.leader
    if reply.error is ErrorCode.INCONSISTENT_CLUSTER_ID:
        return Message(error_code=reply.error, error_message=None, topics=[], responses=[], node_endpoints=[])
    nodes = [Message(node_id=hint.leader_id, host=one.host, port=one.port, rack=None) for one in hint.endpoints[:1]]
    leader = Message(leader_id=hint.leader_id, leader_epoch=hint.epoch)
    if isinstance(reply, FetchReply):
        return _fetch_reply_to_wire(reply, leader, nodes, records)
    if isinstance(reply, FetchSnapshotReply):
        partition = Message(
            index=0,
            error_code=reply.error,
            snapshot_id=Message(end_offset=reply.snapshot.end_offset, epoch=reply.snapshot.epoch),
            current_leader=leader,
            size=reply.size,
            position=reply.position,
            unaligned_records=reply.data,
        )
        topics = [Message(name=METADATA_TOPIC, partitions=[partition])]
        return Message(error_code=ErrorCode.NONE, topics=topics, node_endpoints=nodes)
    if isinstance(reply, VoterReply):
        at = hint.endpoints[0] if hint.endpoints else Endpoint("", "", 0)
        current = Message(leader_id=hint.leader_id, leader_epoch=hint.epoch, host=at.host, port=at.port)
        return Message(error_code=reply.error, error_message=reply.message, current_leader=current)
    partition = Message(partition_index=0, error_code=reply.error, **vars(leader))
    partition.vote_granted = isinstance(reply, VoteReply) and reply.is_granted
    topics = [Message(topic_name=METADATA_TOPIC, partitions=[partition])]
    return Message(error_code=ErrorCode.NONE, topics=topics, node_endpoints=nodes)


def _fetch_reply_to_wire(reply: FetchReply, leader: Message, nodes: list[Message], records: bytes) -> Message:
    partition = Message(
        partition_index=0,
        error_code=reply.error,
        high_watermark=reply.high_watermark,
        last_stable_offset=reply.high_watermark,
        log_start_offset=-1,
        current_leader=leader,
        aborted_transactions=[],
        records=records,
    )
    if reply.diverging is not None:
        partition.diverging_epoch = Message(epoch=reply.diverging.epoch, end_offset=reply.diverging.end_offset)
    if reply.snapshot is not None:
        partition.snapshot_id = Message(end_offset=reply.snapshot.end_offset, epoch=reply.snapshot.epoch)
    responses = [Message(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])]
    return Message(error_code=ErrorCode.NONE, responses=responses, node_endpoints=nodes)


# --- replies that arrive ----------------------------------------------------------------------------


def reply_from_wire(request: Request, message: Message) -> Reply | None:
    """The reply to a request of ours; `None` if it makes no sense."""
    if isinstance(request, VersionsRequest):
        found = [one for one in message.supported_features if one.name == KRAFT_VERSION]
        least, most = (found[0].min_version, found[0].max_version) if found else (0, 0)
        return VersionsReply(ErrorCode(message.error_code), LeaderHint(-1), least, most)
    if isinstance(request, UpdateVoterRequest):
        leader = message.current_leader
        at = (Endpoint("", leader.host, leader.port),) if leader.host else ()
        hint = LeaderHint(leader.leader_epoch, leader.leader_id, at)
        return VoterReply(ErrorCode(message.error_code), hint)
    topics = message.responses if isinstance(request, FetchRequest) else message.topics
    if message.error_code != ErrorCode.NONE or len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    return _partition_reply(request, topics[0].partitions[0], message)


def _partition_reply(request: Request, one: Message, message: Message) -> Reply | None:
    error = ErrorCode(one.error_code)
    if isinstance(request, VoteRequest):
        return VoteReply(error, _hint(one, message), one.vote_granted)
    if isinstance(request, BeginEpochRequest | EndEpochRequest):
        return EpochReply(error, _hint(one, message))
    if isinstance(request, FetchSnapshotRequest):
        snapshot = SnapshotId(one.snapshot_id.end_offset, one.snapshot_id.epoch)
        data = bytes(one.unaligned_records or b"")
        return FetchSnapshotReply(error, _hint(one.current_leader, message), snapshot, one.size, one.position, data)
    diverging, snapshot_id = one.diverging_epoch, one.snapshot_id
    return FetchReply(
        error,
        _hint(one.current_leader, message),
        one.high_watermark,
        None if diverging.epoch < 0 else EpochEnd(diverging.epoch, diverging.end_offset),
        None if snapshot_id.end_offset < 0 else SnapshotId(snapshot_id.end_offset, snapshot_id.epoch),
        batches_in(bytes(one.records or b"")),
    )


def _hint(leader: Message, message: Message) -> LeaderHint:
    nodes = [one for one in message.node_endpoints if one.node_id == leader.leader_id]
    endpoints = tuple(Endpoint("", one.host, one.port) for one in nodes)
    return LeaderHint(leader.leader_epoch, leader.leader_id, endpoints)
