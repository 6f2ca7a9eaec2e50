"""Records of the coordinators' topics: bytes that Apache Kafka 4.3 wrote, and our own coming back."""

from __future__ import annotations

from uuid import UUID

import pytest

from moldau.protocol.coordinator_records import (
    GROUP_KEYS,
    TRANSACTION_KEYS,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CurrentMemberAssignmentKey,
    CurrentMemberAssignmentValue,
    GroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetCommitValueWithExpiry,
    RecordKey,
    RecordValue,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetAssignmentMemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataKey,
    TargetAssignmentMetadataValue,
    TopicPartitions,
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from moldau.protocol.record_schemas import MalformedRecordError

MEMBER_ID = "rdkafka-6a37f9a2-eaea-41df-9601-937c02aef2ea"
TOPIC_ID = UUID("495192f1-fdcd-4b87-a4fb-d2eecf4d6fdf")

STABLE_GROUP = (
    "0002000772656164657273",
    "00030008636f6e73756d657200000003000572616e6765"
    "002c72646b61666b612d36613337663961322d656165612d343164662d393630312d393337633032616566326561"
    "000001a1e09fe5c500000001"
    "002c72646b61666b612d36613337663961322d656165612d343164662d393630312d393337633032616566326561"
    "ffff000772646b61666b61000a2f3132372e302e302e31000493e00000afc8"
    "000000170003000000010001740000000000000000ffffffff0000"
    "00000015000000000001000174000000010000000000000000",
)
"""Key and value of a group with one member, as Apache Kafka wrote them."""
EMPTY_GROUP = (
    "0002000772656164657273",
    "00030008636f6e73756d657200000004ffffffff000001a1e09fe64900000000",
)
OFFSET_WITH_TOPIC_ID = (
    "000100077265616465727300017400000000",
    "000400000000000000140000000001000001a1e09fe642010010495192f1fdcd4b87a4fbd2eecf4d6fdf",
)


def decoded(record: tuple[str, str]) -> tuple[RecordKey, RecordValue]:
    key = decode_key(bytes.fromhex(record[0]), GROUP_KEYS)
    assert key is not None
    return key, decode_value(key, bytes.fromhex(record[1]))


def test_a_group_that_kafka_wrote_is_read_and_written_back_the_same() -> None:
    key, value = decoded(STABLE_GROUP)
    assert key == GroupMetadataKey(group="readers")
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.protocol, value.leader) == (3, "range", MEMBER_ID)
    (member,) = value.members
    assert (member.client_id, member.client_host, member.session_timeout) == ("rdkafka", "/127.0.0.1", 45_000)
    assert (encode_key(key).hex(), encode_value(value).hex()) == STABLE_GROUP


def test_an_empty_group_that_kafka_wrote_is_read_and_written_back_the_same() -> None:
    key, value = decoded(EMPTY_GROUP)
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.protocol, value.leader, value.members) == (4, None, None, ())
    assert (encode_key(key).hex(), encode_value(value).hex()) == EMPTY_GROUP


def test_an_offset_with_the_id_of_its_topic_is_read() -> None:
    assert decoded(OFFSET_WITH_TOPIC_ID) == (
        OffsetCommitKey(group="readers", topic="t", partition=0),
        OffsetCommitValue(
            offset=20, leader_epoch=0, metadata="", commit_timestamp=1_794_769_937_986, topic_id=TOPIC_ID
        ),
    )


def test_offsets_are_written_in_version_3() -> None:
    value = OffsetCommitValue(offset=10, leader_epoch=0, metadata="", commit_timestamp=1_794_769_928_522)
    assert encode_value(value).hex() == "0003000000000000000a000000000000000001a1e09fc14a"


TOPICS = (TopicPartitions(topic_id=TOPIC_ID, partitions=(0, 2)),)
SAMPLES: list[tuple[RecordKey, RecordValue]] = [
    (
        OffsetCommitKey(group="g", topic="t", partition=3),
        OffsetCommitValueWithExpiry(offset=1, metadata="m", commit_timestamp=2, expire_timestamp=3),
    ),
    (
        GroupMetadataKey(group="g"),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader="m",
            current_state_timestamp=5,
            members=(
                GroupMember(
                    member_id="m",
                    group_instance_id="i",
                    client_id="c",
                    client_host="/h",
                    rebalance_timeout=1,
                    session_timeout=2,
                    subscription=b"s",
                    assignment=b"a",
                ),
            ),
        ),
    ),
    (ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=4, metadata_hash=-7)),
    (
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id="r",
            client_id="c",
            client_host="/h",
            subscribed_topic_names=("a", "b"),
            subscribed_topic_regex="a.*",
            rebalance_timeout_ms=9,
            server_assignor="range",
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=3, supported_protocols=(ClassicProtocol(name="range", metadata=b"x"),)
            ),
        ),
    ),
    (
        TargetAssignmentMetadataKey(group_id="g"),
        TargetAssignmentMetadataValue(assignment_epoch=4, assignment_timestamp=11),
    ),
    (TargetAssignmentMemberKey(group_id="g", member_id="m"), TargetAssignmentMemberValue(topic_partitions=TOPICS)),
    (
        CurrentMemberAssignmentKey(group_id="g", member_id="m"),
        CurrentMemberAssignmentValue(
            member_epoch=4,
            previous_member_epoch=3,
            state=1,
            assigned_partitions=TOPICS,
            partitions_pending_revocation=(),
        ),
    ),
    (
        RegularExpressionKey(group_id="g", regular_expression="a.*"),
        RegularExpressionValue(topics=("a",), version=3, timestamp=4),
    ),
    (
        TransactionLogKey(transactional_id="x"),
        TransactionLogValue(
            producer_id=1,
            previous_producer_id=0,
            next_producer_id=-1,
            producer_epoch=2,
            next_producer_epoch=-1,
            transaction_timeout_ms=3,
            transaction_status=1,
            transaction_partitions=(TransactionPartitions(topic="t", partition_ids=(0, 1)),),
            last_update_timestamp_ms=5,
            start_timestamp_ms=4,
            client_transaction_version=2,
        ),
    ),
]


@pytest.mark.parametrize(("key", "value"), SAMPLES, ids=lambda one: type(one).__name__)
def test_records_come_back_as_they_were_written(key: RecordKey, value: RecordValue) -> None:
    known = TRANSACTION_KEYS if isinstance(key, TransactionLogKey) else GROUP_KEYS
    again = decode_key(encode_key(key), known)
    assert again == key
    assert decode_value(key, encode_value(value)) == value


@pytest.mark.parametrize(("key", "value"), SAMPLES, ids=lambda one: type(one).__name__)
def test_a_value_cut_short_is_malformed(key: RecordKey, value: RecordValue) -> None:
    data = encode_value(value)
    for end in range(len(data)):
        with pytest.raises(MalformedRecordError):
            decode_value(key, data[:end])


def test_keys_of_the_future_are_passed_over_and_values_of_the_future_are_not_guessed_at() -> None:
    assert decode_key(b"\x00\x63future", GROUP_KEYS) is None
    with pytest.raises(MalformedRecordError, match="no schema for version 9"):
        decode_value(GroupMetadataKey(group="g"), b"\x00\x09")
    with pytest.raises(MalformedRecordError):
        decode_key(b"\x00", GROUP_KEYS)
