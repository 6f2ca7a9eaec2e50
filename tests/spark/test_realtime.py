"""State in real-time mode: every change as the test driver gives it, stores that follow, and what is refused."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.spark.realtime_topologies import (
    MINUTE_MS,
    OUTPUTS,
    SALES,
    WINDOWED_OUTPUTS,
    totals,
    windowed,
    with_and_without_windows,
)

from moldau.client.admin import Admin
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import CheckpointMismatchError, StreamsError
from moldau.streams import Topology, TopologyTestDriver
from moldau.streams.kafka_streams import KafkaStreams
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_S = 90
START_MS = 1_767_225_600_000

Changes = dict[str, dict[bytes, list[Any]]]
"""The values of each key, by topic."""


def sales(count: int) -> list[tuple[bytes, bytes, int]]:
    return [
        (
            b"client-%d" % (number % 3),
            json.dumps({"shop": f"shop-{number % 2}", "euros": (number * 37) % 101 - 5}).encode(),
            START_MS + number * 7_000,
        )
        for number in range(count)
    ]


def expected(topology: Topology, outputs: tuple[str, ...], records: list[tuple[bytes, bytes, int]]) -> Changes:
    found: Changes = {topic: defaultdict(list) for topic in outputs}
    with TopologyTestDriver(topology, {"statestore.cache.max.bytes": 0}) as driver:
        for record_key, value, timestamp in records:
            driver.pipe(SALES, record_key, value, timestamp)
        for topic in outputs:
            for output in driver.unread_records(topic):
                found[topic][output.key].append(comparable(output.value))
    return found


def comparable(value: bytes) -> Any:
    return json.loads(value) if value.startswith(b"{") else value


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"num.partitions": "1"}) as started:
        yield started


class World:
    """One application in real-time mode; the session of the tests has two slots, so there is one partition of each."""

    def __init__(self, broker: Broker, engine: Engine, folder: Path, outputs: tuple[str, ...]) -> None:
        self.bootstrap = broker.bootstrap_servers
        self.admin = Admin(self.bootstrap)
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        self.engine = engine
        self.folder = folder
        self.outputs = outputs
        for topic in (SALES, *outputs):
            self.admin.create_topic(topic, partitions=1)
        self.running: KafkaStreams | None = None

    def start(self, topology: Topology, **changes: Any) -> KafkaStreams:
        config = {
            "application.id": "tills",
            "bootstrap.servers": self.bootstrap,
            "state.dir": str(self.folder),
            "moldau.latency": "realtime",
            "commit.interval.ms": "5000",
            "spark.sql.shuffle.partitions": "1",
            **{name.replace("_", "."): value for name, value in changes.items()},
        }
        self.running = KafkaStreams(topology, config, engine=self.engine)
        self.running.start()
        return self.running

    def send(self, records: list[tuple[bytes, bytes, int]]) -> None:
        for record_key, value, timestamp in records:
            self.producer.produce(SALES, value, record_key, timestamp=timestamp)
        assert self.producer.flush(WAIT_S) == 0

    def read(self, wanted: Mapping[str, Mapping[bytes, list[Any]]]) -> Changes:
        """As many changes as are wanted of each topic, or what has come of them."""
        left = {topic: sum(map(len, keys.values())) for topic, keys in wanted.items()}
        found: Changes = {topic: defaultdict(list) for topic in wanted}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "reader", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0) for topic in wanted])
        deadline = time.monotonic() + WAIT_S
        while any(count > 0 for count in left.values()) and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=0.2):
                assert message.error() is None
                found[message.topic()][message.key()].append(comparable(message.value()))
                left[message.topic()] -= 1
        consumer.close()
        return found

    def close(self) -> None:
        if self.running is not None:
            self.running.close()
        topics = [topic for topic in self.admin.partition_counts() if not topic.startswith("__")]
        self.admin.delete_topics(topics)


@pytest.fixture
def world(broker: Broker, spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(outputs: tuple[str, ...]) -> World:
        made.append(World(broker, Engine(spark=spark), tmp_path, outputs))
        return made[-1]

    yield make
    for one in made:
        one.close()


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_every_change_of_several_aggregations_and_stores_across_a_restart(world: Callable[..., World]) -> None:
    shop = world(OUTPUTS)
    records = sales(60)
    wanted = expected(totals(), OUTPUTS, records)
    streams = shop.start(totals())
    shop.send(records[:40])
    assert shop.read(expected(totals(), OUTPUTS, records[:40])) == expected(totals(), OUTPUTS, records[:40])
    assert "real-time mode" in streams.explain()
    assert "5 aggregations in one groupBy" in streams.explain()
    until(lambda: streams.store("counts").get("client-0") == 14)
    until(lambda: streams.metrics().records_in == 40)
    streams.close()

    streams = shop.start(totals())
    shop.send(records[40:])

    found = shop.read(wanted)
    assert {topic: {each: values[-1] for each, values in keys.items()} for topic, keys in found.items()} == {
        topic: {each: values[-1] for each, values in keys.items()} for topic, keys in wanted.items()
    }
    until(lambda: streams.store("counts").get("client-0") == 20)
    assert dict(streams.store("means").all())["shop-0"] == wanted["mean"][b"shop-0"][-1]
    last = max(timestamp for each, _, timestamp in records if each == b"client-2")
    until(lambda: streams.store("counts").get_with_timestamp("client-2") == (20, last))


def test_windows_tumble_and_hop(world: Callable[..., World]) -> None:
    shop = world(WINDOWED_OUTPUTS)
    records = sales(50)
    wanted = expected(windowed(), WINDOWED_OUTPUTS, records)
    streams = shop.start(windowed())
    shop.send(records)

    assert shop.read(wanted) == wanted
    first = START_MS - START_MS % MINUTE_MS
    until(lambda: streams.store("minutes").fetch_at("client-0", first) == 3)


def test_keys_without_a_window_are_kept_beside_windows_that_are_forgotten(world: Callable[..., World]) -> None:
    outputs = ("per-minute", "count", "dear")
    shop = world(outputs)
    days_ms = 3 * 24 * 3600 * 1000
    early, later = sales(9), [(each, value, time_ms + days_ms) for each, value, time_ms in sales(18)]
    streams = shop.start(with_and_without_windows())
    shop.send(early + later[:9])
    # A batch has ended, and windows of the first day are behind Spark's watermark.
    until(lambda: streams.metrics().records_in == 18)
    shop.send(later[9:])

    wanted = expected(with_and_without_windows(), outputs, early + later)
    assert shop.read(wanted) == wanted


def test_exactly_once_is_refused_with_the_reason(world: Callable[..., World]) -> None:
    with pytest.raises(StreamsError, match="exactly once needs batches that are committed as a whole"):
        world(OUTPUTS).start(totals(), processing_guarantee="exactly_once_v2")


def test_state_of_micro_batches_is_not_read_in_real_time(world: Callable[..., World]) -> None:
    shop = world(OUTPUTS)
    streams = shop.start(totals(), moldau_latency="batch")
    shop.send(sales(3))
    until(lambda: streams.metrics().records_in == 3)
    streams.close()

    with pytest.raises(CheckpointMismatchError, match=r"made with moldau\.latency=batch"):
        shop.start(totals())


def test_more_tasks_than_there_are_slots_are_refused(world: Callable[..., World]) -> None:
    with pytest.raises(StreamsError, match=r"needs 9 Spark task slots for tills, .* 2 of 2 are free. Set num.stream"):
        world(OUTPUTS).start(totals(), **{"spark_sql_shuffle_partitions": "8"})
