"""Spark writes tables into topics; another client reads what came of it."""

from __future__ import annotations

import pytest
from tests.compat.spark.seen import HEADER_COLUMNS, Seen, rows_of, summary
from tests.compat.spark.source import Kafka, cause_of, error_of
from tests.compat.spark.workload import Record, Topics, consumed

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SIMPLE = "'key-' || id % 100 AS key, 'value-' || id AS value"


def test_keys_choose_the_partition(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.create()
    table = kafka.spark.range(0, 5000, 1, 1).selectExpr(*SIMPLE.split(", "))

    kafka.write(table, topic=topic)

    found = consumed(topics.bootstrap, topic)
    assert sorted(keys_and_values(found)) == sorted((f"key-{i % 100}", f"value-{i}") for i in range(5000))
    assert len({(record.key, record.partition) for record in found}) == 100
    seen(found=[[record.partition, *pair] for record, pair in zip(found, keys_and_values(found), strict=True)][::50])


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_written(kafka: Kafka, topics: Topics, seen: Seen, codec: str) -> None:
    topic = topics.create()
    table = kafka.spark.range(0, 20_000, 1, 1).selectExpr(*SIMPLE.split(", "))

    kafka.write(table, {"kafka.compression.type": codec}, topic=topic)

    found = consumed(topics.bootstrap, topic)
    assert sorted(keys_and_values(found)) == sorted((f"key-{i % 100}", f"value-{i}") for i in range(20_000))
    seen(rows=summary(rows_of(kafka.read(subscribe=topic)), without=["timestamp_ms"]))


def test_a_row_names_its_topic_partition_and_headers(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    one, other = topics.create(), topics.create()
    table = kafka.spark.range(0, 600, 1, 1).selectExpr(
        f"CASE WHEN id % 2 = 0 THEN '{one}' ELSE '{other}' END AS topic",
        "CAST(id % 6 AS INT) AS partition",
        "CASE WHEN id % 3 > 0 THEN 'key-' || id END AS key",
        "CASE WHEN id % 5 > 0 THEN 'value-' || id END AS value",
        "array(struct('id' AS key, CAST(CAST(id AS STRING) AS BINARY) AS value), "
        "struct('nothing' AS key, CAST(NULL AS BINARY) AS value)) AS headers",
    )

    kafka.write(table)

    found = consumed(topics.bootstrap, one)
    assert [(r.partition, r.headers[0]) for r in found] == [
        (p, ("id", str(i).encode())) for p in (0, 2, 4) for i in range(p, 600, 6)
    ]
    assert {r.headers[1] for r in found} == {("nothing", None)}
    rows = rows_of(kafka.read(subscribe=f"{one},{other}", includeHeaders=True), HEADER_COLUMNS)
    seen(rows=summary(rows, without=["timestamp_ms"]))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_producers_without_idempotence_write(kafka: Kafka, topics: Topics, seen: Seen, acks: str) -> None:
    topic = topics.create()
    table = kafka.spark.range(0, 3000, 1, 1).selectExpr(*SIMPLE.split(", "))

    kafka.write(table, {"kafka.acks": acks, "kafka.enable.idempotence": "false"}, topic=topic)

    rows = rows_of(kafka.read(subscribe=topic))
    assert len(rows) == 3000
    seen(rows=summary(rows, without=["timestamp_ms"]))


def test_many_tasks_write_at_once(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.create()
    table = kafka.spark.range(0, 60_000, 1, 12).selectExpr(*SIMPLE.split(", "))

    kafka.write(table, topic=topic)

    rows = kafka.read(subscribe=topic)
    assert rows.selectExpr("value").distinct().count() == 60_000
    counts = {str(row.partition): row["count"] for row in rows.groupBy("partition").count().collect()}
    seen(count=rows.count(), by_partition=counts)


def test_writing_creates_the_topic(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.name()
    table = kafka.spark.range(0, 100, 1, 1).selectExpr(*SIMPLE.split(", "))

    kafka.write(table, topic=topic)

    found = consumed(topics.bootstrap, topic, partitions=2)
    assert len(found) == 100
    seen(partitions=[record.partition for record in found])


def test_a_record_too_large_for_the_topic_is_refused(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.create(max_message_bytes="10000")
    table = kafka.spark.range(0, 1, 1, 1).selectExpr("repeat('x', 20000) AS value")

    with pytest.raises(Exception, match="RecordTooLarge") as refused:
        kafka.write(table, topic=topic)

    seen(cause=cause_of(refused.value), left=consumed(topics.bootstrap, topic))


def test_a_partition_that_is_not_there_is_refused(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.create(partitions=2)
    table = kafka.spark.range(0, 1, 1, 1).selectExpr("'x' AS value", "7 AS partition")

    with pytest.raises(Exception, match="Exception") as refused:
        kafka.write(table, {"kafka.max.block.ms": "2000"}, topic=topic)

    seen(error=error_of(refused.value))


def keys_and_values(found: list[Record]) -> list[tuple[str, str]]:
    return [((record.key or b"").decode(), (record.value or b"").decode()) for record in found]
