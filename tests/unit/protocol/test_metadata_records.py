"""Metadata records: the bytes Apache Kafka wrote are read, and written again to the last bit."""

from __future__ import annotations

import dataclasses
from uuid import UUID

import pytest

from moldau.protocol.metadata_records import (
    BeginTransactionRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaEntity,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MalformedRecordError,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_metadata_record,
    encode_metadata_record,
)

TOPIC = UUID("0744f91e-62de-4924-88d6-3f357b1cb789")
DIRECTORY = UUID("36725e89-28b9-82a5-4695-d1bdae62a9ec")

BY_APACHE_KAFKA: list[tuple[int, MetadataRecord, str]] = [
    (0, BeginTransactionRecord(name="Bootstrap records"), "01170001001212426f6f747374726170207265636f726473"),
    (0, EndTransactionRecord(), "01180000"),
    (0, NoOpRecord(), "01140000"),
    (
        0,
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        "010c00116d657461646174612e76657273696f6e001e00",
    ),
    (
        0,
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        "0104000401146d696e2e696e73796e632e7265706c69636173023100",
    ),
    (0, TopicRecord(name="t1", topic_id=TOPIC), "0102000374310744f91e62de492488d63f357b1cb78900"),
    (
        2,
        PartitionRecord(
            partition_id=0,
            topic_id=TOPIC,
            replicas=(1,),
            isr=(1,),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=(DIRECTORY,),
        ),
        "010302000000000744f91e62de492488d63f357b1cb78902000000010200000001010100000001000000000000000002"
        "36725e8928b982a54695d1bdae62a9ec00",
    ),
    (0, ClearElrRecord(topic_name="t1"), "011c0003743100"),
    (
        0,
        RemoveTopicRecord(topic_id=UUID("572a7853-f67f-4316-8e4e-b379575c00e4")),
        "010900572a7853f67f43168e4eb379575c00e400",
    ),
    (
        0,
        ProducerIdsRecord(broker_id=1, broker_epoch=11, next_producer_id=1000),
        "010f0000000001000000000000000b00000000000003e800",
    ),
    (
        0,
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, fenced=-1),
        "01110000000001000000000000000b010001ff",
    ),
    (
        3,
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, cordoned_log_dirs=()),
        "01110300000001000000000000000b01030101",
    ),
    (
        0,
        ClientQuotaRecord(
            entity=(ClientQuotaEntity(entity_type="user", entity_name="alice"),),
            key="consumer_byte_rate",
            value=2048.0,
        ),
        "010e0002057573657206616c6963650013636f6e73756d65725f627974655f7261746540a00000000000000000",
    ),
]

BROKER = RegisterBrokerRecord(
    broker_id=1,
    incarnation_id=UUID(int=9),
    broker_epoch=4,
    end_points=(BrokerEndpoint(name="PLAINTEXT", host="localhost", port=50_000, security_protocol=0),),
    features=(BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=25),),
    rack=None,
    log_dirs=(DIRECTORY, None),
)


@pytest.mark.parametrize(("version", "record", "wire"), BY_APACHE_KAFKA)
def test_what_apache_kafka_wrote_is_read_and_written_alike(version: int, record: MetadataRecord, wire: str) -> None:
    assert decode_metadata_record(bytes.fromhex(wire)) == record
    assert encode_metadata_record(record, version).hex() == wire


def test_records_are_written_in_the_versions_of_kafka_4_0() -> None:
    assert encode_metadata_record(BROKER)[:3] == bytes([1, 0, 3])
    partition = PartitionRecord(
        partition_id=0, topic_id=TOPIC, replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
    )
    assert encode_metadata_record(partition)[:3] == bytes([1, 3, 2])
    assert encode_metadata_record(PartitionChangeRecord(partition_id=0, topic_id=TOPIC))[:3] == bytes([1, 5, 2])
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2)
    assert encode_metadata_record(change)[:3] == bytes([1, 17, 2])


def test_a_registration_survives_every_version_that_can_hold_it() -> None:
    for version in (3, 4):
        assert decode_metadata_record(encode_metadata_record(BROKER, version)) == BROKER
    older = decode_metadata_record(encode_metadata_record(BROKER, 0))
    assert older == dataclasses.replace(BROKER, log_dirs=())


def test_a_change_says_only_what_changes() -> None:
    nothing = PartitionChangeRecord(partition_id=3, topic_id=TOPIC)
    assert encode_metadata_record(nothing) == bytes([1, 5, 2, 0, 0, 0, 3]) + TOPIC.bytes + b"\x00"
    change = PartitionChangeRecord(partition_id=3, topic_id=TOPIC, isr=(), leader=-1, directories=(None,))
    read = decode_metadata_record(encode_metadata_record(change))
    assert read == change
    assert isinstance(read, PartitionChangeRecord)
    assert (read.replicas, read.isr, read.leader) == (None, (), -1)
    assert nothing.leader == PartitionChangeRecord.LEADER_UNCHANGED


def test_records_can_be_keys() -> None:
    assert len({BROKER, dataclasses.replace(BROKER), NoOpRecord()}) == 2


@pytest.mark.parametrize(
    "wire",
    [b"", b"\x01", b"\x01\x02", b"\x02\x02\x00", b"\x01\x63\x00", b"\x01\x02\x01", b"\x01\x14\x00\x00\x00"],
    ids=["empty", "no type", "no version", "another frame", "another type", "another version", "bytes too many"],
)
def test_records_nobody_knows_are_malformed(wire: bytes) -> None:
    with pytest.raises(MalformedRecordError):
        decode_metadata_record(wire)


def test_a_record_cut_at_any_byte_is_malformed() -> None:
    for wire in [encode_metadata_record(BROKER), *(bytes.fromhex(wire) for _, _, wire in BY_APACHE_KAFKA)]:
        for end in range(len(wire)):
            with pytest.raises(MalformedRecordError):
                decode_metadata_record(wire[:end])
