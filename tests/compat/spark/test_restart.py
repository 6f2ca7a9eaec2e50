"""Queries outlive the broker: a checkpoint continues after a restart, and a running query waits for it."""

from __future__ import annotations

from tests.compat.spark.cluster import Cluster
from tests.compat.spark.seen import Seen, rows_of, summary
from tests.compat.spark.source import Kafka, end_of, until
from tests.compat.spark.workload import Topics, consumed, produce, records


def test_a_checkpoint_continues_after_a_restart(kafka: Kafka, topics: Topics, seen: Seen, cluster: Cluster) -> None:
    topic = topics.filled(records(1200), codec="lz4")
    stream = kafka.read_stream(subscribe=topic, maxOffsetsPerTrigger=500)
    _, before = kafka.run(stream)

    cluster.restart()
    produce(topics.bootstrap, topic, records(800, first=1200))
    rows, after = kafka.run(stream)

    assert len(rows) == 2000
    seen(rows=summary(rows), before=before, after=after)


def test_a_running_query_outlives_restarts(kafka: Kafka, topics: Topics, seen: Seen, cluster: Cluster) -> None:
    source, target = topics.filled(records(600)), topics.create()
    stream = kafka.read_stream(subscribe=source).selectExpr(f"'{target}' AS topic", "partition", "key", "value")
    query = kafka.to_kafka(stream)
    until(query, lambda: end_of(query) == 600)

    for number in (1, 2):
        cluster.restart()
        produce(topics.bootstrap, source, records(600, first=600 * number))
        until(query, lambda end=600 * (number + 1): end_of(query) == end)

    assert [r[2:4] for r in consumed(topics.bootstrap, target)] == [r[2:4] for r in consumed(topics.bootstrap, source)]
    seen(rows=summary(rows_of(kafka.read(subscribe=target)), without=["timestamp_ms"]))


def test_a_table_is_the_same_after_a_restart(kafka: Kafka, topics: Topics, seen: Seen, cluster: Cluster) -> None:
    topic = topics.filled(records(3000), codec="zstd")
    topics.delete_records(topic, {2: 100})
    before = rows_of(kafka.read(subscribe=topic))

    cluster.restart()

    assert rows_of(kafka.read(subscribe=topic)) == before
    seen(rows=summary(before))
