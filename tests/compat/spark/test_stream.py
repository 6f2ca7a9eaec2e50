"""Structured Streaming on topics: what is there, what arrives meanwhile, and topics that grow under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from time import sleep

import pytest
from tests.compat.spark.seen import Seen, rows_of, summary
from tests.compat.spark.source import Kafka, batches_of, end_of, finished, until
from tests.compat.spark.workload import Record, Topics, consumed, produce, records


def test_all_that_is_there_comes_in_batches(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(3000))

    rows, batches = kafka.run(kafka.read_stream(subscribe=topic, maxOffsetsPerTrigger=700))

    assert len(rows) == 3000
    assert [batch["rows"] for batch in batches] == [696, 696, 696, 696, 216]
    seen(rows=summary(rows), batches=batches)


def test_a_second_run_takes_only_what_is_new(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(600))
    stream = kafka.read_stream(subscribe=topic, includeHeaders=True)

    first, first_batches = kafka.run(stream)
    _, idle_batches = kafka.run(stream)
    produce(topics.bootstrap, topic, records(300, first=600, headers=True), codec="lz4")
    both, more_batches = kafka.run(stream)

    assert (len(first), idle_batches, len(both)) == (600, [], 900)
    seen(rows=summary(both), batches=[first_batches, more_batches])


def test_a_stream_keeps_up_with_a_producer(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.create()
    query = kafka.to_files(kafka.read_stream(subscribe=topic))

    with producing(topics, topic, 10_000, helpings=20):
        until(query, lambda: end_of(query) == 10_000)

    rows = kafka.files()
    assert len(batches_of(query)) > 3
    assert len(rows) == 10_000
    seen(rows=summary(rows))


def test_a_stream_from_the_end_sees_only_what_comes(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(600))
    query = kafka.to_files(kafka.read_stream(subscribe=topic, startingOffsets="latest"))
    until(query, lambda: query.lastProgress is not None)

    produce(topics.bootstrap, topic, records(60, first=600))
    until(query, lambda: end_of(query) == 660)

    rows = kafka.files()
    assert len(rows) == 60
    seen(rows=summary(rows))


def test_a_stream_begins_at_a_time(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    sent = records(1200)
    topic = topics.filled(sent)

    rows, batches = kafka.run(kafka.read_stream(subscribe=topic, startingTimestamp=sent[700].timestamp_ms))

    assert sorted(row.timestamp_ms for row in rows) == [record.timestamp_ms for record in sent[700:]]
    seen(rows=summary(rows), batches=batches)


def test_a_topic_that_appears_joins_the_pattern(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topics.filled(records(300))
    query = kafka.to_files(kafka.read_stream(subscribePattern=f"{topics.prefix}-.*"))
    until(query, lambda: end_of(query) == 300)

    topics.filled(records(200, partitions=2), partitions=2)
    until(query, lambda: end_of(query) == 500)

    rows = kafka.files()
    assert len(rows) == 500
    seen(rows=summary(rows))


def test_partitions_that_are_added_are_read_from_their_beginning(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(200, partitions=2), partitions=2)
    query = kafka.to_files(kafka.read_stream(subscribe=topic))
    until(query, lambda: end_of(query) == 200)

    topics.add_partitions(topic, 6)
    produce(topics.bootstrap, topic, records(600, first=200))
    until(query, lambda: end_of(query) == 800)

    rows = kafka.files()
    assert {row.partition for row in rows} == set(range(6))
    seen(rows=summary(rows))


def test_batches_are_split_into_more_tasks_than_partitions(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.filled(records(3000))

    rows, batches = kafka.run(kafka.read_stream(subscribe=topic, minPartitions=13, maxOffsetsPerTrigger=1500))

    assert len(rows) == 3000
    seen(rows=summary(rows), batches=batches)


def test_topics_are_copied_into_a_topic(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    source, target = topics.filled(records(2000, headers=True), codec="zstd"), topics.create()
    columns = (f"'{target}' AS topic", "partition", "key", "value", "headers")

    stream = kafka.read_stream(subscribe=source, includeHeaders=True, maxOffsetsPerTrigger=600).selectExpr(*columns)
    query = kafka.to_kafka(stream, availableNow=True)
    finished(query)

    assert [r[2:] for r in consumed(topics.bootstrap, target)] == [r[2:] for r in consumed(topics.bootstrap, source)]
    seen(rows=summary(rows_of(kafka.read(subscribe=target)), without=["timestamp_ms"]), batches=batches_of(query))


def test_a_copy_runs_while_a_producer_writes(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    source, target = topics.create(), topics.create()
    stream = kafka.read_stream(subscribe=source).selectExpr(f"'{target}' AS topic", "partition", "key", "value")
    query = kafka.to_kafka(stream)

    with producing(topics, source, 5000, helpings=10):
        until(query, lambda: end_of(query) == 5000)

    rows = rows_of(kafka.read(subscribe=target))
    assert [r[2:4] for r in consumed(topics.bootstrap, target)] == [r[2:4] for r in consumed(topics.bootstrap, source)]
    seen(rows=summary(rows, without=["timestamp_ms"]))


def test_keys_are_counted(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.create()
    counts = kafka.read_stream(subscribe=topic).selectExpr("CAST(key AS STRING) AS key").groupBy("key").count()
    query = kafka.to_memory(counts, "counts", mode="complete")

    with producing(topics, topic, 4000, helpings=10):
        until(query, lambda: end_of(query) == 4000)

    found = {str(row.key): row["count"] for row in kafka.spark.table("counts").collect()}
    assert sum(found.values()) == 4000
    assert found["None"] == sum(record.key is None for record in records(4000))
    seen(counts=found)


@pytest.mark.parametrize("trigger", ["continuous", "realTime"])
def test_records_pass_without_batches(kafka: Kafka, topics: Topics, seen: Seen, trigger: str) -> None:
    source, target = topics.create(partitions=2), topics.create(partitions=2)
    kafka.spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "2")
    stream = kafka.read_stream(subscribe=source).selectExpr(f"'{target}' AS topic", "partition", "key", "value")
    mode = "update" if trigger == "realTime" else "append"

    query = kafka.to_kafka(stream, mode=mode, **{trigger: "5 seconds"})
    with producing(topics, source, 1000, helpings=5, partitions=2):
        until(query, lambda: len(consumed(topics.bootstrap, target, partitions=2)) == 1000)

    copied = consumed(topics.bootstrap, target, partitions=2)
    assert [r[2:4] for r in copied] == [r[2:4] for r in consumed(topics.bootstrap, source, partitions=2)]
    seen(rows=summary(rows_of(kafka.read(subscribe=target)), without=["timestamp_ms"]))


@contextmanager
def producing(topics: Topics, topic: str, count: int, *, helpings: int, partitions: int = 6) -> Iterator[None]:
    """Produce all along the block, a helping every tenth of a second."""
    size, failures = count // helpings, list[BaseException]()

    def run() -> None:
        try:
            for number in range(helpings):
                helping: list[Record] = records(size, partitions=partitions, first=number * size)
                produce(topics.bootstrap, topic, helping, codec=("none", "lz4", "zstd", "gzip", "snappy")[number % 5])
                sleep(0.1)
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=run, name="producer")
    thread.start()
    yield
    thread.join()
    assert not failures
