"""Spark reads topics as tables: from where to where, which topics, in how many pieces."""

from __future__ import annotations

from time import monotonic, sleep

import pytest
from tests.compat.spark.seen import HEADER_COLUMNS, Seen, rows_of, summary
from tests.compat.spark.source import Kafka, error_of
from tests.compat.spark.workload import BASE_MS, STEP_MS, Record, Topics, consumed, produce, records

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_a_topic_is_read_from_end_to_end(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    sent = records(5000)
    topic = topics.filled(sent)

    rows = rows_of(kafka.read(subscribe=topic, startingOffsets="earliest", endingOffsets="latest"))

    assert [(r.partition, r.timestamp_ms, r.key, r.value) for r in rows] == [r[:4] for r in by_partition(sent)]
    seen(rows=summary(rows))


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read(kafka: Kafka, topics: Topics, seen: Seen, codec: str) -> None:
    sent = records(6000, headers=True)
    topic = topics.filled(sent, codec=codec)

    rows = rows_of(kafka.read(subscribe=topic, includeHeaders=True), HEADER_COLUMNS)

    assert [(r.partition, r.timestamp_ms, r.key, r.value) for r in rows] == [r[:4] for r in by_partition(sent)]
    seen(rows=summary(rows))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_what_the_broker_recompressed_is_read(kafka: Kafka, topics: Topics, seen: Seen, codec: str) -> None:
    sent = records(3000, headers=True)
    topic = topics.filled(sent, codec="gzip" if codec != "gzip" else "none", compression_type=codec)

    rows = rows_of(kafka.read(subscribe=topic, includeHeaders=True), HEADER_COLUMNS)

    assert [(r.partition, r.timestamp_ms, r.key, r.value) for r in rows] == [r[:4] for r in by_partition(sent)]
    seen(rows=summary(rows))


def test_headers_come_along(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    sent = records(200, headers=True)
    topic = topics.filled(sent)

    rows = rows_of(kafka.read(subscribe=topic, includeHeaders=True), HEADER_COLUMNS)

    found = [tuple((header.key, header.value) for header in row.headers or ()) for row in rows]
    assert found == [record.headers for record in by_partition(sent)]
    seen(rows=summary(rows))


def test_offsets_are_chosen_partition_by_partition(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(600))
    first = {topic: {"0": 10, "1": -2, "2": 99, "3": 0, "4": 50, "5": 100}}
    end = {topic: {"0": 20, "1": 5, "2": 100, "3": -1, "4": 50, "5": -1}}

    rows = rows_of(kafka.read(subscribe=topic, startingOffsets=first, endingOffsets=end))

    assert [sum(row.partition == p for row in rows) for p in range(6)] == [10, 5, 1, 100, 0, 0]
    seen(rows=summary(rows))


def test_a_range_of_time_is_read(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    sent = records(3000)
    topic = topics.filled(sent)
    first, end = BASE_MS + 700 * STEP_MS - 3, BASE_MS + 1900 * STEP_MS

    rows = rows_of(kafka.read(subscribe=topic, startingTimestamp=first, endingTimestamp=end))

    assert sorted(row.timestamp_ms for row in rows) == [r.timestamp_ms for r in sent[700:1900]]
    seen(rows=summary(rows))


def test_times_are_chosen_partition_by_partition(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(3000))
    first = {topic: {str(p): BASE_MS + p * 1000 for p in range(6)}}
    end = {topic: {str(p): BASE_MS + 20_000 + p for p in range(6)}}

    rows = rows_of(kafka.read(subscribe=topic, startingOffsetsByTimestamp=first, endingOffsetsByTimestamp=end))

    assert min(row.timestamp_ms for row in rows if row.partition == 5) == BASE_MS + 5030
    assert max(row.timestamp_ms for row in rows) == BASE_MS + 20_000
    seen(rows=summary(rows))


def test_a_time_after_the_last_record_has_no_offset(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(60))
    later = {"subscribe": topic, "startingTimestamp": BASE_MS + 3_600_000}

    with pytest.raises(Exception, match="No offset matched") as refused:
        kafka.read(**later).count()
    from_the_end = kafka.read(**later, startingOffsetsByTimestampStrategy="latest").count()

    assert from_the_end == 0
    seen(error=error_of(refused.value), from_the_end=from_the_end)


def test_several_topics_are_one_table(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    one = topics.filled(records(300), partitions=6)
    other = topics.filled(records(200, partitions=1), partitions=1)
    topics.filled(records(10, partitions=2), partitions=2)

    rows = rows_of(kafka.read(subscribe=f"{one},{other}"))

    assert {row.topic for row in rows} == {one, other}
    assert len(rows) == 500
    seen(rows=summary(rows))


def test_topics_are_found_by_pattern(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    for number in range(3):
        topics.filled(records(100 + number, partitions=2), partitions=2)

    rows = rows_of(kafka.read(subscribePattern=f"{topics.prefix}-[13]"))

    assert {row.topic for row in rows} == {f"{topics.prefix}-1", f"{topics.prefix}-3"}
    seen(rows=summary(rows))


def test_partitions_are_assigned_by_hand(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(600))

    rows = rows_of(kafka.read(assign={topic: [1, 4]}))

    assert {row.partition for row in rows} == {1, 4}
    seen(rows=summary(rows))


def test_a_topic_is_split_into_more_tasks_than_partitions(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    sent = records(3000)

    frame = kafka.read(subscribe=topics.filled(sent), minPartitions=16)
    tasks = frame.selectExpr("spark_partition_id() AS task").distinct().count()
    rows = rows_of(frame)

    assert tasks >= 16
    assert len(rows) == len(sent)
    seen(tasks=tasks, rows=summary(rows))


def test_an_empty_topic_is_an_empty_table(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    frame = kafka.read(subscribe=topics.create())

    seen(count=frame.count(), columns=dict(frame.dtypes))
    assert frame.count() == 0


def test_a_topic_that_is_not_there_is_refused(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    with pytest.raises(Exception, match="Exception") as refused:
        kafka.read(subscribe=topics.name()).count()

    seen(error=error_of(refused.value))


def test_the_brokers_own_time_is_marked_as_such(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(100), message_timestamp_type="LogAppendTime")

    rows = rows_of(kafka.read(subscribe=topic))

    assert {row.timestampType for row in rows} == {1}
    assert min(row.timestamp_ms for row in rows) > BASE_MS + 3_600_000
    seen(rows=summary(rows, without=["timestamp_ms"]))


def test_records_larger_than_a_fetch_are_read(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    sent = [Record(i % 2, BASE_MS + i, b"k", bytes([i]) * 900_000) for i in range(12)]
    topic = topics.filled(sent, partitions=2)
    small = {"kafka.max.partition.fetch.bytes": "65536", "kafka.fetch.max.bytes": "100000"}

    rows = rows_of(kafka.read(small, subscribe=topic))

    assert [row.value for row in rows] == [record.value for record in by_partition(sent)]
    seen(rows=summary(rows))


def test_only_what_is_committed_is_read_where_asked(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(1200))

    rows = rows_of(kafka.read({"kafka.isolation.level": "read_committed"}, subscribe=topic))

    assert len(rows) == 1200
    seen(rows=summary(rows))


def test_the_gaps_that_compaction_leaves_are_no_loss(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    settings = {"cleanup_policy": "compact", "segment_ms": "1000", "min_cleanable_dirty_ratio": "0"}
    topic = topics.create(partitions=1, **settings)
    produce(topics.bootstrap, topic, keyed(range(1000)))
    produce(topics.bootstrap, topic, keyed(range(10_000, 10_050)))
    deadline = monotonic() + 60
    while len(consumed(topics.bootstrap, topic, partitions=1)) > 100 and monotonic() < deadline:
        sleep(0.2)

    rows = rows_of(kafka.read(subscribe=topic))

    assert [row.offset for row in rows] == [*range(950, 1000), *range(1000, 1050)]
    seen(rows=summary(rows))


def keyed(numbers: range) -> list[Record]:
    """Fifty keys over and over; the timestamps of the second helping begin a new segment."""
    return [Record(0, BASE_MS + STEP_MS * i, f"key-{i % 50}".encode(), f"value-{i}".encode()) for i in numbers]


def by_partition(sent: list[Record]) -> list[Record]:
    return sorted(sent, key=lambda record: (record.partition, record.timestamp_ms))
