"""Spark and transactions: it reads what was committed, and a batch goes into a topic exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.compat.spark.seen import Seen, rows_of, summary
from tests.compat.spark.source import Kafka, finished
from tests.compat.spark.workload import BASE_MS, QUIET, STEP_MS, Record, Topics, records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COMMITTED = {"kafka.isolation.level": "read_committed"}
WAIT_S = 30


def test_a_table_has_only_what_was_committed(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    topic = topics.create()
    with transactions_on(topics, topic):
        committed = rows_of(kafka.read(COMMITTED, subscribe=topic))
        all_there = rows_of(kafka.read(subscribe=topic))

    assert sorted(row.timestamp_ms for row in committed) == [
        BASE_MS + STEP_MS * number for number in (*range(300), *range(600, 900))
    ]
    assert len(all_there) == 1000
    seen(committed=summary(committed), all_there=summary(all_there))


@pytest.mark.parametrize("most", [None, 500])
def test_a_stream_has_only_what_was_committed(kafka: Kafka, topics: Topics, seen: Seen, most: int | None) -> None:
    topic = topics.create()
    limit = {} if most is None else {"maxOffsetsPerTrigger": most}
    stream = kafka.read_stream(COMMITTED, subscribe=topic, **limit)

    with transactions_on(topics, topic):
        early, early_batches = kafka.run(stream)
    late, late_batches = kafka.run(stream)

    assert (len(early), len(late)) == (600, 700)
    seen(rows=summary(late), early=early_batches, late=late_batches)


def test_batches_go_into_a_topic_exactly_once(kafka: Kafka, topics: Topics, seen: Seen) -> None:
    """A transaction holds a batch's records and its end offsets, so that a batch that comes again is known."""
    source, target = topics.filled(records(1200)), topics.create()
    sink = ExactlyOnceSink(topics, source, target)
    writer = kafka.read_stream(subscribe=source, maxOffsetsPerTrigger=300).writeStream.foreachBatch(sink)

    for crashes in (True, True, False, False):
        query = kafka.begun(writer, "exactly-once", {"availableNow": True})
        if crashes:
            with pytest.raises(Exception, match="crash"):
                finished(query)
        else:
            finished(query)

    copied = rows_of(kafka.read(COMMITTED, subscribe=target))
    assert sorted(row.value or b"" for row in copied) == sorted(record.value or b"" for record in records(1200))
    assert sink.skipped == 2
    assert sum(sink.committed_offsets()) == 1200
    seen(rows=summary(copied, without=["timestamp_ms"]), skipped=sink.skipped, offsets=sink.committed_offsets())


class ExactlyOnceSink:
    """Copies batches in transactions; twice it crashes right after a commit, before Spark hears of it."""

    def __init__(self, topics: Topics, source: str, target: str) -> None:
        self._source = source
        self._target = target
        self._group = f"{topics.prefix}-group"
        self._bootstrap = topics.bootstrap
        self.crashes = [3, 1]
        """Batches after which to crash, the last one first."""
        self.skipped = 0

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = sorted(frame.collect(), key=lambda row: (row.partition, row.offset))
        ends = {row.partition: row.offset + 1 for row in rows}
        if all(end <= done for end, done in zip(ends.values(), self.committed_offsets(), strict=True)):
            self.skipped += 1
            return
        producer = transactional(self._bootstrap, self._group)
        producer.begin_transaction()
        for row in rows:
            producer.produce(self._target, partition=row.partition, key=row.key, value=row.value)
        positions = [TopicPartition(self._source, partition, end) for partition, end in ends.items()]
        with group_member(self._bootstrap, self._group) as consumer:
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), WAIT_S)
        producer.commit_transaction(WAIT_S)
        if self.crashes and self.crashes[-1] == batch_id:
            self.crashes.pop()
            raise RuntimeError("crash")

    def committed_offsets(self) -> list[int]:
        with group_member(self._bootstrap, self._group) as consumer:
            wanted = [TopicPartition(self._source, partition) for partition in range(6)]
            return [one.offset for one in consumer.committed(wanted, WAIT_S)]


@contextmanager
def transactions_on(topics: Topics, topic: str) -> Iterator[None]:
    """Commit, abort and commit three hundred records each; a hundred more are open while the block runs."""
    producer = transactional(topics.bootstrap, topics.prefix)
    ends = (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    for number, end in enumerate(ends):
        in_transaction(producer, topic, records(300, first=300 * number))
        end(WAIT_S)
    in_transaction(producer, topic, records(100, first=900))
    yield
    producer.commit_transaction(WAIT_S)


def in_transaction(producer: Producer, topic: str, wanted: list[Record]) -> None:
    producer.begin_transaction()
    for record in wanted:
        producer.produce(
            topic, partition=record.partition, timestamp=record.timestamp_ms, key=record.key, value=record.value
        )
    assert producer.flush(WAIT_S) == 0


def transactional(bootstrap: str, transactional_id: str) -> Producer:
    """A producer that has put an end to what another of its name may have left open."""
    producer = Producer({**QUIET, "bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(WAIT_S)
    return producer


@contextmanager
def group_member(bootstrap: str, group: str) -> Iterator[Consumer]:
    consumer = Consumer({**QUIET, "bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        yield consumer
    finally:
        consumer.close()
