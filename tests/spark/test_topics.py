"""Compiled pipelines read the topics of a real broker: hosted, native, and in real-time mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.spark.small_pipelines import finished_rows

from moldau.pipeline.spark.compiler import Compiled, RealtimeRefusedError, compile_topology
from moldau.pipeline.spark.job import Job
from moldau.pipeline.spark.queries import start_realtime_query
from moldau.pipeline.spark.sources import KafkaReader
from moldau.streams import (
    Consumed,
    LongSerde,
    Produced,
    PunctuationType,
    Record,
    StreamsBuilder,
    StringSerde,
    Topology,
    key,
    value,
)
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT, LONG = StringSerde(), LongSerde()
TEXTS = Consumed.with_(TEXT, TEXT)
PARTITIONS = 2
WAIT_S = 60


@pytest.fixture(scope="module")
def broker(spark: SparkSession) -> Iterator[Broker]:
    with Broker({"num.partitions": str(PARTITIONS)}) as started:
        yield started


def filled(broker: Broker, *topics: str, records: int = 200) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for topic in topics:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(WAIT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "murmur2_random"})
    for number in range(records):
        producer.produce(
            topics[0], key=b"key-%d" % (number % 10), value=b"%d" % number, headers={"nth": b"%d" % number}
        )
    assert producer.flush(WAIT_S) == 0


def compiled(
    spark: SparkSession,
    broker: Broker,
    topology: Topology,
    *,
    batch: int | None = 75,
    is_realtime: bool = False,
    **settings: str,
) -> Compiled:
    def options(topics: Any, pattern: Any, reset: Any, *, is_global: bool) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "subscribe": ",".join(topics),
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            "kafka.fetch.max.wait.ms": "10",
            **({} if batch is None else {"maxOffsetsPerTrigger": str(batch)}),
        }

    topics = {topic: PARTITIONS for source in topology.sources for topic in source.topics}
    config = {name.replace("_", "."): text for name, text in settings.items()}
    job = Job(application_id="test", partition_counts=topics, settings=config, is_realtime=is_realtime)
    return compile_topology(spark, topology, job, reader=KafkaReader(spark, options))


def all_rows(made: Compiled, folder: Path) -> list[Any]:
    rows: list[Any] = []

    def collect(frame: DataFrame, number: int) -> None:
        rows.extend(finished_rows(made, frame))

    writer = made.frame.writeStream.outputMode(made.output_mode).foreachBatch(collect)
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    return rows


def test_every_change_of_a_count_comes_from_topics_in_several_batches(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    filled(broker, "counted")
    builder = StreamsBuilder()
    builder.stream("counted", TEXTS).group_by_key().count().to_stream().to("out", Produced.with_(TEXT, LONG))
    made = compiled(spark, broker, builder.build(), statestore_cache_max_bytes="0")

    rows = all_rows(made, tmp_path)

    assert not made.is_native
    for name in (b"key-0", b"key-7"):
        assert [int.from_bytes(row.value, "big") for row in rows if row.key == name] == list(range(1, 21))
    assert {row.topic for row in rows} == {"out"}


def test_headers_and_timestamps_travel_on(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    filled(broker, "copied", records=5)
    builder = StreamsBuilder()
    builder.stream("copied", TEXTS).map_values(lambda text: text + "!").to("out", Produced.with_(TEXT, TEXT))

    rows = all_rows(compiled(spark, broker, builder.build()), tmp_path)

    assert {bytes(row.value) for row in rows} == {b"%d!" % number for number in range(5)}
    assert all(row.headers[0]["key"] == "nth" and row.headers[0]["value"] + b"!" == row.value for row in rows)
    assert all(row.timestamp > 1_600_000_000_000 for row in rows)


class Clock:
    """Tells the time of day once a record has come, again and again."""

    def init(self, context: Any) -> None:
        context.schedule(1, PunctuationType.WALL_CLOCK_TIME, lambda now: context.forward(Record("now", str(now), now)))

    def process(self, record: Any) -> None:
        pass

    def close(self) -> None:
        pass


def test_the_time_of_day_comes_without_records(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    filled(broker, "silent", records=0)
    builder = StreamsBuilder()
    builder.stream("silent", TEXTS).process(Clock).to("out", Produced.with_(TEXT, TEXT))
    made = compiled(spark, broker, builder.build())
    times: list[int] = []

    def collect(frame: DataFrame, number: int) -> None:
        times.extend(row.timestamp for row in finished_rows(made, frame))

    query = made.frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(tmp_path)).start()
    deadline = monotonic() + WAIT_S
    try:
        while len(set(times)) < 2:
            assert monotonic() < deadline, f"the clock told {times}: {query.exception()}"
            sleep(0.05)
    finally:
        query.stop()


def test_expressions_go_from_topic_to_topic_in_real_time(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    filled(broker, "fast-in", "fast-out", records=0)
    builder = StreamsBuilder()
    stream = builder.stream("fast-in", TEXTS).filter(value != "no").map_values_with_key(key + "=" + value)
    stream.to("fast-out", Produced.with_(TEXT, TEXT))
    made = compiled(spark, broker, builder.build(), batch=None, is_realtime=True)
    assert made.is_realtime
    spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "2")

    to_broker = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    query = start_realtime_query(made.frame, name="realtime", checkpoint=str(tmp_path), options=to_broker)
    try:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for text in ("yes", "no", "perhaps"):
            producer.produce("fast-in", key=b"k", value=text)
        producer.flush(WAIT_S)
        assert sorted(consumed(broker, "fast-out", 2)) == [b"k=perhaps", b"k=yes"]
    finally:
        query.stop()
        spark.conf.unset("spark.sql.streaming.stateStore.checkpointFormatVersion")


def consumed(broker: Broker, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "test"})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    values: list[bytes] = []
    deadline = monotonic() + WAIT_S
    try:
        while len(values) < count:
            assert monotonic() < deadline, f"only {values} came"
            message = consumer.poll(0.1)
            if message is None:
                sleep(0.01)
            elif message.error() is None:
                values.append(message.value())
    finally:
        consumer.close()
    return values


def test_a_topology_that_needs_python_is_refused_real_time_by_operator_and_line(
    spark: SparkSession, broker: Broker
) -> None:
    builder = StreamsBuilder()
    builder.stream("any", TEXTS).map_values(lambda text: text).to("out", Produced.with_(TEXT, TEXT))
    with pytest.raises(RealtimeRefusedError, match=r"MapValues KSTREAM-MAPVALUES-0000000001 \(test_topics.py:"):
        compiled(spark, broker, builder.build(), is_realtime=True)
