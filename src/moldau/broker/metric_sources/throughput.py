"""Bytes and records in and out: `BrokerTopicMetrics`, per topic and in total."""

from __future__ import annotations

from collections.abc import Iterator

from moldau.broker.context import Broker
from moldau.broker.metric_sources.attach import Parts
from moldau.broker.metric_sources.families import meter
from moldau.broker.metrics import Family, Kind, Sample

__all__ = ["families"]

GROUP = "kafka.server:BrokerTopicMetrics"

PER_TOPIC = (
    ("MessagesInPerSec", "messages_in", "Records appended by producers."),
    ("BytesInPerSec", "bytes_in", "Bytes appended by producers."),
    ("BytesOutPerSec", "bytes_out", "Bytes sent to consumers."),
    ("BytesRejectedPerSec", "bytes_rejected", "Bytes of batches refused for their size."),
    ("TotalProduceRequestsPerSec", "produce_requests", "Produces, counted by partition."),
    ("FailedProduceRequestsPerSec", "failed_produce_requests", "Failed produces, counted by partition."),
    ("TotalFetchRequestsPerSec", "fetch_requests", "Fetches, counted by partition."),
    ("FailedFetchRequestsPerSec", "failed_fetch_requests", "Failed fetches, counted by partition."),
    ("ProduceMessageConversionsPerSec", "produce_conversions", "Batches recompressed on their way in."),
)


def families(broker: Broker, parts: Parts) -> Iterator[Family]:
    topics = [(topic.name, topic.stats) for topic in broker.partitions.topics()]
    for name, counter, text in PER_TOPIC:
        counts = [(topic, getattr(stats, counter)) for topic, stats in topics]
        total = getattr(broker.partitions.deleted_topics, counter) + sum(count for _, count in counts)
        yield Family(
            GROUP,
            name,
            Kind.METER,
            text,
            [Sample((), total), *(Sample((("topic", topic),), count) for topic, count in counts)],
        )
    yield Family(
        GROUP,
        "FetchMessageConversionsPerSec",
        Kind.METER,
        "Batches converted for old consumers: never done.",
        [Sample((), 0), *(Sample((("topic", topic),), 0) for topic, _ in topics)],
    )
    stats = broker.stats
    for name, count, text in (
        ("ReplicationBytesInPerSec", 0, "Bytes fetched from leaders."),
        ("ReplicationBytesOutPerSec", 0, "Bytes sent to followers."),
        ("ReassignmentBytesInPerSec", 0, "Bytes fetched for partitions on the move."),
        ("ReassignmentBytesOutPerSec", 0, "Bytes sent for partitions on the move."),
        ("NoKeyCompactedTopicRecordsPerSec", stats.no_key_compacted_records, "Refused: no key on a compacted topic."),
        ("InvalidMagicNumberRecordsPerSec", stats.invalid_magic_records, "Refused: a format that is not read."),
        ("InvalidMessageCrcRecordsPerSec", stats.invalid_crc_records, "Refused: checksum."),
        (
            "InvalidOffsetOrSequenceRecordsPerSec",
            stats.invalid_offset_or_sequence_records,
            "Refused: offsets or sequences out of order.",
        ),
        ("InvalidSchemaIdRecordsPerSec", stats.invalid_schema_records, "Refused: no registered schema id."),
    ):
        yield meter(GROUP, name, count, text)
