"""Groups nobody knows, members that are not who they say, generations and epochs of the past: the exact error."""

from __future__ import annotations

import pytest
from tests.integration.both_brokers import create_topic, port, wire
from tests.integration.group_members import ClassicMember, NewMember, commit, coordinator_is_ready, fetch_offsets

from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = ["port", "wire"]

SETTINGS = {"offsets.topic.num.partitions": "1", "group.max.size": "2"}
TOPIC = "orders"


@pytest.fixture(scope="module", autouse=True)
def _ready(port: int) -> None:
    with WireClient("127.0.0.1", port) as client:
        create_topic(client, TOPIC, 2)
        coordinator_is_ready(client, "any")


# Unknown groups


def test_a_group_nobody_knows_has_no_members(wire: WireClient) -> None:
    stranger = ClassicMember(wire, "unknown")
    stranger.member_id, stranger.generation = "somebody", 3

    assert stranger.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.sync() == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.join() == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", [8, 9])
def test_a_commit_with_a_generation_needs_a_group(wire: WireClient, version: int) -> None:
    who = {"generation_id_or_member_epoch": 1, "member_id": "somebody"}
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION

    assert commit(wire, "unknown", TOPIC, 1, version=version, **who) == expected


def test_a_commit_by_nobody_makes_a_simple_group(wire: WireClient) -> None:
    assert commit(wire, "simple", TOPIC, 7) == ErrorCode.NONE

    (topic,) = fetch_offsets(wire, "simple", TOPIC, [0, 1]).topics
    assert [one.committed_offset for one in topic.partitions] == [7, -1]


def test_offsets_of_a_group_nobody_knows_are_absent(wire: WireClient) -> None:
    found = fetch_offsets(wire, "unknown", TOPIC, [0])

    assert found.error_code == ErrorCode.NONE
    assert found.topics[0].partitions[0].committed_offset == -1


@pytest.mark.parametrize(
    ("version", "error", "state"), [(5, ErrorCode.NONE, "Dead"), (6, ErrorCode.GROUP_ID_NOT_FOUND, "Dead")]
)
def test_a_group_nobody_knows_is_described_as_dead(
    wire: WireClient, version: int, error: ErrorCode, state: str
) -> None:
    request = Message(groups=["unknown"], include_authorized_operations=False)
    (group,) = wire.send(ApiKey.DESCRIBE_GROUPS, request, version).groups

    assert (group.error_code, group.group_state) == (error, state)


def test_a_group_nobody_knows_cannot_be_described_as_consumers(wire: WireClient) -> None:
    request = Message(group_ids=["unknown"], include_authorized_operations=False)
    (group,) = wire.send(ApiKey.CONSUMER_GROUP_DESCRIBE, request).groups

    assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert group.error_message == "Group unknown not found."


def test_a_group_nobody_knows_cannot_be_deleted(wire: WireClient) -> None:
    results = wire.send(ApiKey.DELETE_GROUPS, Message(groups_names=["unknown"])).results

    assert [one.error_code for one in results] == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_offsets_of_a_group_nobody_knows_cannot_be_deleted(wire: WireClient) -> None:
    topics = [Message(name=TOPIC, partitions=[Message(partition_index=0)])]
    reply = wire.send(ApiKey.OFFSET_DELETE, Message(group_id="unknown", topics=topics))

    assert reply.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_needs_a_name(wire: WireClient) -> None:
    assert ClassicMember(wire, "").join() == ErrorCode.INVALID_GROUP_ID


# Members of the classic protocol


def test_a_generation_from_the_past_is_illegal(wire: WireClient) -> None:
    member = ClassicMember(wire, "stale").settled()
    past = member.generation - 1
    who = {"member_id": member.member_id, "generation_id_or_member_epoch": past}

    assert member.heartbeat(generation_id=past) == ErrorCode.ILLEGAL_GENERATION
    assert member.sync(generation_id=past) == ErrorCode.ILLEGAL_GENERATION
    assert commit(wire, "stale", TOPIC, 1, **who) == ErrorCode.ILLEGAL_GENERATION
    assert member.heartbeat(generation_id=past + 2) == ErrorCode.ILLEGAL_GENERATION
    assert member.heartbeat() == ErrorCode.NONE


def test_a_member_id_that_is_not_of_this_group_is_unknown(wire: WireClient) -> None:
    member = ClassicMember(wire, "mine").settled()
    stranger = ClassicMember(wire, "theirs").settled()
    who = {"member_id": stranger.member_id, "generation_id_or_member_epoch": member.generation}

    assert member.heartbeat(member_id=stranger.member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.sync(member_id=stranger.member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.leave(member_id=stranger.member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(wire, "mine", TOPIC, 1, **who) == ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_commits_past_the_members(wire: WireClient) -> None:
    ClassicMember(wire, "occupied").settled()

    assert commit(wire, "occupied", TOPIC, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_is_fenced_by_its_successor(wire: WireClient) -> None:
    old = ClassicMember(wire, "static", instance="one").settled()
    new = ClassicMember(wire, "static", instance="one").settled()
    who = {"generation_id_or_member_epoch": old.generation, "group_instance_id": "one"}

    assert new.generation == old.generation
    assert old.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert old.join() == ErrorCode.FENCED_INSTANCE_ID
    assert old.sync(member_id="another") == ErrorCode.FENCED_INSTANCE_ID
    assert old.leave(member_id="another") == ErrorCode.FENCED_INSTANCE_ID
    assert commit(wire, "static", TOPIC, 1, member_id="another", **who) == ErrorCode.FENCED_INSTANCE_ID


def test_a_member_without_protocols_in_common_is_inconsistent(wire: WireClient) -> None:
    ClassicMember(wire, "inconsistent").settled()
    other = ClassicMember(wire, "inconsistent", instance="other")
    foreign = other.join_request(protocols=[Message(name="roundrobin", metadata=b"")])
    connect = other.join_request(protocol_type="connect")

    assert wire.send(ApiKey.JOIN_GROUP, foreign).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert wire.send(ApiKey.JOIN_GROUP, connect).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_that_is_too_short_or_too_long_is_refused(wire: WireClient, session_ms: int) -> None:
    assert ClassicMember(wire, "session", session_ms=session_ms).join() == ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_group_with_members_cannot_be_deleted(wire: WireClient) -> None:
    ClassicMember(wire, "in-use").settled()
    (result,) = wire.send(ApiKey.DELETE_GROUPS, Message(groups_names=["in-use"])).results

    assert result.error_code == ErrorCode.NON_EMPTY_GROUP


def test_who_has_left_is_unknown(wire: WireClient) -> None:
    member = ClassicMember(wire, "left").settled()

    assert member.leave() == ErrorCode.NONE
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    who = {"member_id": member.member_id, "generation_id_or_member_epoch": member.generation}
    assert commit(wire, "left", TOPIC, 1, **who) == ErrorCode.UNKNOWN_MEMBER_ID


# What is committed


def test_a_classic_member_may_commit_what_it_does_not_own(wire: WireClient) -> None:
    """The coordinator of a classic group does not read assignments: only the clients know who owns what."""
    member = ClassicMember(wire, "generous").settled()
    who = {"member_id": member.member_id, "generation_id_or_member_epoch": member.generation}

    assert commit(wire, "generous", TOPIC, 5, partition=1, **who) == ErrorCode.NONE


def test_a_partition_that_does_not_exist_has_no_offsets(wire: WireClient) -> None:
    assert commit(wire, "simple", TOPIC, 1, partition=2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(wire, "simple", "no-such-topic", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_metadata_of_an_offset_has_its_limit(wire: WireClient) -> None:
    assert commit(wire, "simple", TOPIC, 1, metadata="x" * 4096) == ErrorCode.NONE
    assert commit(wire, "simple", TOPIC, 1, metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE


# Members of the consumer protocol


def test_an_epoch_from_the_past_is_fenced(wire: WireClient) -> None:
    first = NewMember(wire, "epochs", [TOPIC])
    assert first.heartbeat() == ErrorCode.NONE
    second = NewMember(wire, "epochs", [TOPIC])
    while not (first.owned and second.owned and first.epoch == second.epoch):
        assert (first.heartbeat(), second.heartbeat()) == (ErrorCode.NONE, ErrorCode.NONE)

    assert first.heartbeat(member_epoch=first.epoch + 5) == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.heartbeat(member_epoch=1, topic_partitions=None) == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.heartbeat(member_epoch=-3) == ErrorCode.INVALID_REQUEST


def test_a_commit_with_an_epoch_from_the_past_is_stale(wire: WireClient) -> None:
    member = NewMember(wire, "stale-epoch", [TOPIC])
    assert member.heartbeat() == ErrorCode.NONE
    who = {"member_id": member.member_id, "generation_id_or_member_epoch": member.epoch - 1}

    assert commit(wire, member.group, TOPIC, 1, **who) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(wire, member.group, TOPIC, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(wire, member.group, TOPIC, 1, **{**who, "member_id": "another"}) == ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_are_fetched_by_members_of_the_present(wire: WireClient) -> None:
    member = NewMember(wire, "fetching", [TOPIC])
    assert member.heartbeat() == ErrorCode.NONE
    who = {"member_id": member.member_id, "member_epoch": member.epoch}

    assert fetch_offsets(wire, "fetching", TOPIC, [0], **who).error_code == ErrorCode.NONE
    stale = fetch_offsets(wire, "fetching", TOPIC, [0], **{**who, "member_epoch": member.epoch + 1})
    assert stale.error_code == ErrorCode.STALE_MEMBER_EPOCH
    stranger = fetch_offsets(wire, "fetching", TOPIC, [0], **{**who, "member_id": "another"})
    assert stranger.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_member_has_no_heartbeat(wire: WireClient) -> None:
    assert NewMember(wire, "nowhere", [TOPIC]).heartbeat(member_epoch=3) == ErrorCode.GROUP_ID_NOT_FOUND
    member = NewMember(wire, "somewhere", [TOPIC])
    assert member.heartbeat() == ErrorCode.NONE
    assert member.heartbeat(member_id="another") == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_is_not_taken_from_a_member_that_lives(wire: WireClient) -> None:
    owner = NewMember(wire, "instances", [TOPIC], instance="one")
    assert owner.heartbeat() == ErrorCode.NONE

    assert NewMember(wire, "instances", [TOPIC], instance="one").heartbeat() == ErrorCode.UNRELEASED_INSTANCE_ID
    thief = NewMember(wire, "instances", [TOPIC], instance="one")
    assert thief.heartbeat(member_epoch=owner.epoch) == ErrorCode.FENCED_INSTANCE_ID


def test_an_assignor_or_a_pattern_the_broker_does_not_know_is_refused(wire: WireClient) -> None:
    member = NewMember(wire, "choosy", [TOPIC])

    assert member.heartbeat(server_assignor="mine") == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert member.heartbeat(subscribed_topic_regex="[") == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_joining_member_must_say_what_it_wants(wire: WireClient) -> None:
    member = NewMember(wire, "silent", [TOPIC])
    names_nothing = member.heartbeat(subscribed_topic_names=None)
    owns = [Message(topic_id=create_topic(wire, "silent"), partitions=[0])]

    assert names_nothing == ErrorCode.INVALID_REQUEST
    assert member.heartbeat(rebalance_timeout_ms=-1) == ErrorCode.INVALID_REQUEST
    assert member.heartbeat(topic_partitions=owns) == ErrorCode.INVALID_REQUEST
    assert member.heartbeat(group_id="") == ErrorCode.INVALID_REQUEST
