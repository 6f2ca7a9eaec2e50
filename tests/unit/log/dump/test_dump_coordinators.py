"""Records of the coordinators' topics as JSON: bytes that Apache Kafka 4.3 wrote, in the words its own tools print."""

from __future__ import annotations

import pytest

from moldau.log.dump.dump_coordinators import offsets_text, transactions_text
from moldau.protocol.coordinator_records import (
    GROUP_KEYS,
    TRANSACTION_KEYS,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from moldau.protocol.records import Record

OFFSET_KEY = "000100066b69703834380002743200000000"
OFFSET = "000400000000000000070000000001000001a1e08c5f80010010d3dc6586c4b04897a1b0fdc62ab4ec4a"
GROUP_KEY = "000200046c697665"
GROUP = (
    "00030008636f6e73756d657200000001000572616e67650003612d31000001a1e08b8d62000000010003612d310006696e73742d31"
    "0003636964000a2f3132372e302e302e31000493e00000afc800000021000300000001000b66697273745f746f7069630000000000000000"
    "ffffffff000000000027000000000001000b66697273745f746f7069630000000300000000000000010000000200000000"
)
MEMBER_KEY = "000500066b697038343800164466436a6467486751374738425a5568467930417751"
MEMBER = "000000000872646b61666b610b2f3132372e302e302e31030c66697273745f746f70696303743201000493e00001000100"
TARGET = (
    "00000346c77985bb32441884cbdb7d101a1ef60400000000000000010000000200d3dc6586c4b04897a1b0fdc62ab4ec4a02000000000000"
)
CURRENT = (
    "00000000000200000000000346c77985bb32441884cbdb7d101a1ef60400000000000000010000000201000d04000000020000000200000002"
    "d3dc6586c4b04897a1b0fdc62ab4ec4a020000000001000502000000020100"
)
TRANSACTION_KEY = "0000000474782d31"
TRANSACTION = "0001000000000000000000000000ea600401000001a1e08b8c7a000001a1e08b8c510100080000000000000000"

MEMBER_OF = '{"groupId":"kip848","memberId":"DfCjdgHgQ7G8BZUhFy0AwQ"}'


def record(key: str | None, value: str | None) -> Record:
    return Record(0, 0, bytes.fromhex(key) if key else None, bytes.fromhex(value) if value else None)


@pytest.mark.parametrize(
    ("key", "value", "shown_key", "shown_value"),
    [
        (
            OFFSET_KEY,
            OFFSET,
            '{"type":"1","data":{"group":"kip848","topic":"t2","partition":0}}',
            '{"version":"4","data":{"offset":7,"leaderEpoch":0,"metadata":"","commitTimestamp":1794768658304,'
            '"topicId":"09xlhsSwSJehsP3GKrTsSg"}}',
        ),
        (
            GROUP_KEY,
            GROUP,
            '{"type":"2","data":{"group":"live"}}',
            '{"version":"3","data":{"protocolType":"consumer","generation":1,"protocol":"range","leader":"a-1",'
            '"currentStateTimestamp":1794768604514,"members":[{"memberId":"a-1","groupInstanceId":"inst-1",'
            '"clientId":"cid","clientHost":"/127.0.0.1","rebalanceTimeout":300000,"sessionTimeout":45000,'
            '"subscription":{"topics":["first_topic"],"userData":"","ownedPartitions":[],"generationId":-1,"rackId":""},'
            '"assignment":{"assignedPartitions":[{"topic":"first_topic","partitions":[0,1,2]}],"userData":""}}]}}',
        ),
        (
            "000300066b6970383438",
            "00000000000300",
            '{"type":"3","data":{"groupId":"kip848"}}',
            '{"version":"0","data":{"epoch":3}}',
        ),
        (
            MEMBER_KEY,
            MEMBER,
            f'{{"type":"5","data":{MEMBER_OF}}}',
            '{"version":"0","data":{"instanceId":null,"rackId":null,"clientId":"rdkafka","clientHost":"/127.0.0.1",'
            '"subscribedTopicNames":["first_topic","t2"],"subscribedTopicRegex":"","rebalanceTimeoutMs":300000,'
            '"serverAssignor":null,"classicMemberMetadata":null}}',
        ),
        (
            "000600066b6970383438",
            "000000000002010008000001a1e08b8e75",
            '{"type":"6","data":{"groupId":"kip848"}}',
            '{"version":"0","data":{"assignmentEpoch":2,"assignmentTimestamp":1794768604789}}',
        ),
        (
            MEMBER_KEY.replace("0005", "0007", 1),
            TARGET,
            f'{{"type":"7","data":{MEMBER_OF}}}',
            '{"version":"0","data":{"topicPartitions":[{"topicId":"Rsd5hbsyRBiEy9t9EBoe9g","partitions":[0,1,2]},'
            '{"topicId":"09xlhsSwSJehsP3GKrTsSg","partitions":[0]}]}}',
        ),
        (
            MEMBER_KEY.replace("0005", "0008", 1),
            CURRENT,
            f'{{"type":"8","data":{MEMBER_OF}}}',
            '{"version":"0","data":{"memberEpoch":2,"previousMemberEpoch":0,"state":0,"assignedPartitions":['
            '{"topicId":"Rsd5hbsyRBiEy9t9EBoe9g","partitions":[0,1,2],"assignmentEpochs":[2,2,2]},'
            '{"topicId":"09xlhsSwSJehsP3GKrTsSg","partitions":[0],"assignmentEpochs":[2]}],'
            '"partitionsPendingRevocation":[]}}',
        ),
    ],
    ids=["offset", "classic group", "group epoch", "member", "target epoch", "target", "current"],
)
def test_groups_are_shown_as_apache_kafka_shows_them(key: str, value: str, shown_key: str, shown_value: str) -> None:
    assert offsets_text(0, record(key, value)) == (shown_key, shown_value)


def test_transactions_are_shown_as_apache_kafka_shows_them() -> None:
    assert transactions_text(0, record(TRANSACTION_KEY, TRANSACTION)) == (
        '{"type":"0","data":{"transactionalId":"tx-1"}}',
        '{"version":"1","data":{"producerId":0,"previousProducerId":0,"producerEpoch":0,"transactionTimeoutMs":60000,'
        '"transactionStatus":4,"transactionPartitions":[],"transactionLastUpdateTimestampMs":1794768604282,'
        '"transactionStartTimestampMs":1794768604241}}',
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [(GROUP_KEY, GROUP), (MEMBER_KEY, MEMBER), (MEMBER_KEY.replace("0005", "0008", 1), CURRENT)],
)
def test_what_apache_kafka_wrote_is_written_the_same_again(key: str, value: str) -> None:
    known = decode_key(bytes.fromhex(key), GROUP_KEYS)
    assert known is not None
    assert encode_key(known).hex() == key
    assert encode_value(decode_value(known, bytes.fromhex(value))).hex() == value


def test_a_transaction_is_written_the_same_again() -> None:
    known = decode_key(bytes.fromhex(TRANSACTION_KEY), TRANSACTION_KEYS)
    assert known is not None
    assert encode_value(decode_value(known, bytes.fromhex(TRANSACTION))).hex() == TRANSACTION


def test_a_record_without_a_value_deletes() -> None:
    assert offsets_text(0, record(GROUP_KEY, None)) == ('{"type":"2","data":{"group":"live"}}', "<DELETE>")


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, OFFSET), ("7fff", "0000"), ("00", None), (OFFSET_KEY, "7fff"), (OFFSET_KEY, OFFSET[:20])],
    ids=["no key", "unknown type", "half a type", "future version", "cut off"],
)
def test_what_cannot_be_read_is_named_and_passed_over(key: str | None, value: str | None) -> None:
    shown_key, shown_value = offsets_text(41, record(key, value))
    assert shown_key is None
    assert shown_value is not None
    assert shown_value.startswith("Error at 41, skipping. ")


def test_members_that_are_no_consumers_keep_their_bytes() -> None:
    """A broker does not know what they say to each other; neither do we."""
    odd = GROUP.replace("636f6e73756d6572", "636f6e6e65637473", 1)
    _, shown = offsets_text(0, record(GROUP_KEY, odd))
    assert '"subscription":"AAMAAAABAAtmaXJzdF90b3BpYw' in (shown or "")
