"""The quorum's messages survive the way through Kafka's, in every version that has all their fields."""

from __future__ import annotations

import uuid

import pytest

from moldau.controller.errors import RefusedError
from moldau.controller.quorum.wire import (
    METADATA_TOPIC_ID,
    batches_in,
    reply_from_wire,
    reply_to_wire,
    request_from_wire,
    request_to_wire,
)
from moldau.core.errors import ErrorCode
from moldau.protocol.api import APIS, ApiKey
from moldau.protocol.messages import Message, decode_request, decode_response, encode_request, encode_response
from moldau.protocol.records import Record, encode_batch
from moldau.raft.log_history import EpochEnd, SnapshotId
from moldau.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    EpochReply,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    LeaderHint,
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

KEY, OTHER = ReplicaKey(1, uuid.UUID(int=5)), ReplicaKey(2, uuid.UUID(int=6))
AT = (Endpoint("CONTROLLER", "h", 9093),)
HINT = LeaderHint(7, 2, (Endpoint("", "h", 9093),))
SNAPSHOT = SnapshotId(40, 6)
VOTE = VoteRequest("c", KEY, 7, 6, 41, True, OTHER)
FETCH = FetchRequest("c", KEY, 7, 41, 6, 500, 40)
FETCH_SNAPSHOT = FetchSnapshotRequest("c", KEY, 7, SNAPSHOT, 10, 100)
UPDATE = UpdateVoterRequest("c", 7, Voter(KEY, AT, 0, 1))
REQUESTS: list[Request] = [
    VOTE,
    VOTE._replace(voter=None, is_pre_vote=False),
    BeginEpochRequest("c", 2, 7, AT, OTHER),
    EndEpochRequest("c", 2, 7, (OTHER, KEY), AT),
    FETCH,
    FETCH_SNAPSHOT,
    UPDATE,
]
REPLIES: list[tuple[Request, Reply]] = [
    (VOTE, VoteReply(ErrorCode.NONE, HINT, True)),
    (VOTE, VoteReply(ErrorCode.FENCED_LEADER_EPOCH, LeaderHint(9))),
    (REQUESTS[2], EpochReply(ErrorCode.INVALID_REQUEST, HINT)),
    (REQUESTS[3], EpochReply(ErrorCode.NONE, HINT)),
    (FETCH, FetchReply(ErrorCode.NONE, HINT, 40)),
    (FETCH, FetchReply(ErrorCode.NONE, HINT, 40, diverging=EpochEnd(5, 30))),
    (FETCH, FetchReply(ErrorCode.NONE, HINT, 40, snapshot=SNAPSHOT)),
    (FETCH_SNAPSHOT, FetchSnapshotReply(ErrorCode.NONE, HINT, SNAPSHOT, 9, 2, b"abc")),
    (FETCH_SNAPSHOT, FetchSnapshotReply(ErrorCode.SNAPSHOT_NOT_FOUND, HINT, SNAPSHOT)),
    (UPDATE, VoterReply(ErrorCode.NONE, HINT)),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_a_request_arrives_as_it_was_sent(request_: Request) -> None:
    api_key, message = request_to_wire(request_)
    version = APIS[api_key].last
    read = decode_request(api_key, version, encode_request(api_key, version, message))
    assert request_from_wire(api_key, read) == request_


@pytest.mark.parametrize(("request_", "reply"), REPLIES, ids=lambda one: type(one).__name__)
def test_a_reply_arrives_as_it_was_sent(request_: Request, reply: Reply) -> None:
    api_key, _ = request_to_wire(request_)
    version = APIS[api_key].last
    read = decode_response(api_key, version, encode_response(api_key, version, reply_to_wire(reply)))
    assert reply_from_wire(request_, read) == reply


def test_older_versions_say_less_and_mean_the_same() -> None:
    for request_ in REQUESTS[:4]:
        api_key, message = request_to_wire(request_)
        read = request_from_wire(api_key, decode_request(api_key, 0, encode_request(api_key, 0, message)))
        assert type(read) is type(request_)
    ending = decode_request(
        ApiKey.END_QUORUM_EPOCH, 0, encode_request(ApiKey.END_QUORUM_EPOCH, 0, request_to_wire(REQUESTS[3])[1])
    )
    read = request_from_wire(ApiKey.END_QUORUM_EPOCH, ending)
    assert isinstance(read, EndEpochRequest)
    assert [one.id for one in read.successors] == [2, 1]


def test_a_reply_to_another_cluster_is_no_reply() -> None:
    message = reply_to_wire(VoteReply(ErrorCode.INCONSISTENT_CLUSTER_ID, LeaderHint(1)))
    read = decode_response(ApiKey.VOTE, 2, encode_response(ApiKey.VOTE, 2, message))
    assert reply_from_wire(VOTE, read) is None


def test_the_supported_kraft_version_is_read_from_the_features() -> None:
    message = Message(
        error_code=0, api_keys=[], supported_features=[Message(name="kraft.version", min_version=0, max_version=1)]
    )
    reply = reply_from_wire(VersionsRequest(KEY), message)
    assert reply == VersionsReply(ErrorCode.NONE, LeaderHint(-1), 0, 1)


@pytest.mark.parametrize(
    "topics",
    [
        [],
        [Message(topic_name="orders", partitions=[Message(partition_index=0)])],
        [Message(topic_name="__cluster_metadata", partitions=[])],
        [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=1)])],
    ],
)
def test_a_request_about_another_partition_is_refused(topics: list[Message]) -> None:
    with pytest.raises(RefusedError, match="one partition"):
        request_from_wire(ApiKey.VOTE, Message(cluster_id="c", voter_id=-1, topics=topics))


def test_a_fetch_of_another_topic_is_refused() -> None:
    _, message = request_to_wire(FETCH)
    message.topics[0].topic_id = uuid.UUID(int=9)
    with pytest.raises(RefusedError):
        request_from_wire(ApiKey.FETCH, message)
    assert message.topics[0].topic_id != METADATA_TOPIC_ID


def test_batches_end_at_the_first_damaged_one() -> None:
    whole = [
        encode_batch([Record(0, 0, None, b"v")], base_timestamp=1, base_offset=offset, partition_leader_epoch=3)
        for offset in range(3)
    ]
    read = batches_in(b"".join(whole))
    assert [(one.base_offset, one.last_offset, one.epoch, one.payload) for one in read] == [
        (offset, offset, 3, batch) for offset, batch in enumerate(whole)
    ]
    damaged = bytearray(b"".join(whole))
    damaged[len(whole[0]) + 62] ^= 1
    assert [one.base_offset for one in batches_in(bytes(damaged))] == [0]
    assert [one.base_offset for one in batches_in(b"".join(whole)[:-1])] == [0, 1]
    assert batches_in(b"\0" * 100) == ()
