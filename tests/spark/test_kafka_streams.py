"""Applications on Spark from start to end: results, restarts, stores, and everything that can be wrong."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.cli.streams.application_reset import main as reset
from moldau.client.admin import Admin
from moldau.client.groups import Groups
from moldau.core.errors import MoldauError
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import (
    AlreadyRunningError,
    CheckpointMismatchError,
    MissingTopicError,
    StateLostError,
    StreamsError,
)
from moldau.pipeline.runtime.states import State
from moldau.streams import (
    Consumed,
    CopartitioningError,
    Grouped,
    JoinWindows,
    LongSerde,
    Materialized,
    Produced,
    StreamJoined,
    StreamsBuilder,
    StringSerde,
    Topology,
)
from moldau.streams.kafka_streams import KafkaStreams, Response
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT, LONG = StringSerde(), LongSerde()
WAIT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"num.partitions": "2"}) as started:
        yield started


@dataclass
class World:
    """A broker, an engine and what a test runs on them."""

    broker: Broker
    engine: Engine
    folder: Path
    name: str
    running: list[KafkaStreams] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.admin = Admin(self.broker.bootstrap_servers)
        self.producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers, "linger.ms": 0})

    def topic(self, name: str, partitions: int = 2) -> str:
        full = f"{self.name}-{name}"
        self.admin.create_topic(full, partitions=partitions)
        return full

    def send(self, topic: str, *records: tuple[str | None, str | bytes | None]) -> None:
        now_ms = int(time.time() * 1000)
        for number, (key, value) in enumerate(records):
            self.producer.produce(topic, value, key, timestamp=now_ms + number)
        assert self.producer.flush(WAIT_S) == 0

    def config(self, **changes: Any) -> dict[str, Any]:
        own = {
            "application.id": self.name,
            "bootstrap.servers": self.broker.bootstrap_servers,
            "state.dir": str(self.folder),
            "processing.guarantee": "exactly_once_v2",
            "statestore.cache.max.bytes": 0,
        }
        return own | {key.replace("_", "."): value for key, value in changes.items()}

    def streams(self, topology: Topology, **changes: Any) -> KafkaStreams:
        made = KafkaStreams(topology, self.config(**changes), engine=self.engine)
        self.running.append(made)
        return made

    def read(self, topic: str, count: int) -> list[tuple[str | None, bytes | None]]:
        """Wait for so many committed records, make sure that there are no more, and return them in order."""
        settings = {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "reader"}
        consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
        partitions = len(self.admin.describe_topics([topic])[0].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        found: list[tuple[str | None, bytes | None]] = []
        deadline = time.monotonic() + WAIT_S
        while len(found) < count and time.monotonic() < deadline:
            found += [_pair(one) for one in consumer.consume(100, timeout=0.1) if one.error() is None]
        found += [_pair(one) for one in consumer.consume(100, timeout=0.5) if one.error() is None]
        consumer.close()
        assert len(found) == count, found
        return found

    def close(self) -> None:
        for streams in self.running:
            streams.close()


def _pair(message: Any) -> tuple[str | None, bytes | None]:
    key = message.key()
    return None if key is None else key.decode(), message.value()


@pytest.fixture
def world(broker: Broker, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(broker, Engine(spark=spark), tmp_path, request.node.name.removeprefix("test_").partition("[")[0])
    yield made
    made.close()


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def counting(source: str, target: str, store: str = "counts") -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed.with_(TEXT, TEXT))
        .group_by_key(Grouped.with_(TEXT, TEXT))
        .count(Materialized.as_(store))
        .to_stream()
        .to(target, Produced.with_(TEXT, LONG))
    )
    return builder.build()


def copying(source: str, target: str, change: Callable[[str], str] = str.upper) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source, Consumed.with_(TEXT, TEXT)).map_values(change).to(target, Produced.with_(TEXT, TEXT))
    return builder.build()


def counts(pairs: list[tuple[str | None, bytes | None]]) -> Mapping[str | None, list[int]]:
    found: dict[str | None, list[int]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(int.from_bytes(value or b"", "big"))
    return found


def test_a_count_goes_on_where_it_was_closed(world: World) -> None:
    source, target = world.topic("in"), world.topic("out")
    world.send(source, ("a", "1"), ("b", "1"), ("a", "2"))
    heard: list[State] = []
    first = world.streams(counting(source, target))
    first.set_state_listener(lambda new, old: heard.append(new))
    first.start()
    assert counts(world.read(target, 3)) == {"a": [1, 2], "b": [1]}
    assert first.close()

    world.send(source, ("a", "3"))
    with world.streams(counting(source, target)) as second:
        second.start()
        assert counts(world.read(target, 4)) == {"a": [1, 2, 3], "b": [1]}
        until(lambda: second.store("counts").get("a") == 3)

    assert heard == [State.REBALANCING, State.RUNNING, State.PENDING_SHUTDOWN, State.NOT_RUNNING]
    assert second.state is State.NOT_RUNNING
    offsets = Groups(world.admin).committed(world.name)
    assert sum(committed.offset for committed in offsets.values()) == 4


def test_stores_answer_while_it_runs(world: World) -> None:
    source, target = world.topic("in"), world.topic("out")
    world.send(source, *((f"k{number:02}", "x") for number in range(20)))
    streams = world.streams(counting(source, target), application_server="127.0.0.1:0")
    streams.start()
    until(lambda: streams.metrics().records_in == 20)
    view = streams.store("counts")

    until(lambda: view.approximate_num_entries() == 20)
    assert list(view.range("k03", "k05")) == [("k03", 1), ("k04", 1), ("k05", 1)]
    began = time.perf_counter()
    for number in range(100):
        assert view.get(f"k{number % 20:02}") == 1
    assert (time.perf_counter() - began) / 100 < 0.005
    with urllib.request.urlopen(f"http://127.0.0.1:{streams.server_port}/stores/counts/k07", timeout=10) as answer:
        assert json.load(answer)["value"] == 1
    numbers = streams.metrics()
    assert (numbers.records_out, numbers.lag) == (20, 0)
    assert numbers.state_records >= 20 or numbers.batch_ms == 0
    assert "counts" in streams.explain() or streams.explain()


def test_it_is_seen_as_a_group_with_lag(world: World) -> None:
    source, target = world.topic("in"), world.topic("out")
    world.send(source, ("a", "1"))
    streams = world.streams(copying(source, target), processing_guarantee="at_least_once")
    streams.start()
    groups = Groups(world.admin)

    assert world.read(target, 1) == [("a", b"1")]
    until(lambda: sum(one.offset for one in groups.committed(world.name).values()) == 1)
    description = groups.describe(world.name)
    assert description is not None
    assert description.state == "Stable"


def test_a_topic_that_does_not_exist_is_named_with_its_line(world: World) -> None:
    streams = world.streams(copying("no-such-topic", "out"))

    with pytest.raises(MissingTopicError, match=r"no-such-topic \(read at test_kafka_streams\.py:\d+\)"):
        streams.start()


def test_joined_topics_with_different_partition_counts_are_refused(world: World) -> None:
    left, right, target = world.topic("left", 2), world.topic("right", 3), world.topic("out")
    builder = StreamsBuilder()
    one, other = (builder.stream(topic, Consumed.with_(TEXT, TEXT)) for topic in (left, right))
    windows = JoinWindows.of_time_difference_and_grace(1000, 0)
    one.join(other, lambda a, b: a + b, windows, joined=StreamJoined.with_(TEXT, TEXT, TEXT)).to(target)

    with pytest.raises(CopartitioningError, match=r"left has 2.*right has 3"):
        world.streams(builder.build(), default_key_serde=TEXT, default_value_serde=TEXT).start()


def test_a_checkpoint_of_another_topology_is_refused(world: World) -> None:
    source, target = world.topic("in"), world.topic("out")
    world.send(source, ("a", "1"))
    with world.streams(counting(source, target)) as first:
        first.start()
        world.read(target, 1)

    with pytest.raises(CheckpointMismatchError, match="was made for another topology"):
        world.streams(counting(source, target, "other-counts")).start()


def test_lost_state_is_refused_until_it_is_cleaned_up(world: World) -> None:
    source, target = world.topic("in"), world.topic("out")
    world.send(source, ("a", "1"))
    with world.streams(counting(source, target)) as first:
        first.start()
        world.read(target, 1)
    elsewhere = str(world.folder / "elsewhere")

    lost = world.streams(counting(source, target), state_dir=elsewhere)
    with pytest.raises(StateLostError, match="the state behind them is not in"):
        lost.start()
    lost.clean_up()
    with world.streams(counting(source, target), state_dir=elsewhere) as anew:
        anew.start()
        assert counts(world.read(target, 2)) == {"a": [1, 1]}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_reset_application_begins_where_it_was_put(world: World, guarantee: str) -> None:
    name = f"{world.name}-{guarantee}"
    changes = {"application_id": name, "processing_guarantee": guarantee}
    source, target = world.topic(f"in-{guarantee}"), world.topic(f"out-{guarantee}")
    world.send(source, ("a", "1"), ("a", "2"))
    with world.streams(counting(source, target), **changes) as first:
        first.start()
        world.read(target, 2)

    servers = ["--bootstrap-server", world.broker.bootstrap_servers]
    assert reset(["--application-id", name, "--input-topics", source, "--to-latest", *servers]) == 0
    world.send(source, ("a", "3"))
    again = world.streams(counting(source, target), **changes)
    again.clean_up()
    again.start()

    assert counts(world.read(target, 3)) == {"a": [1, 2, 1]}


def test_a_second_process_on_the_same_state_is_refused(world: World) -> None:
    source, target = world.topic("in"), world.topic("out")
    world.streams(copying(source, target)).start()

    with pytest.raises(AlreadyRunningError, match="runs already"):
        world.streams(copying(source, target)).start()


def test_a_function_that_raises_ends_it_with_its_line(world: World) -> None:
    source, target = world.topic("in"), world.topic("out")
    world.send(source, *(("a", str(number)) for number in range(20)), ("a", "not a number"))
    streams = world.streams(copying(source, target, lambda value: str(int(value) + 1)))
    streams.start()

    with pytest.raises(MoldauError, match=r"test_kafka_streams\.py:\d+.*not a number"):
        streams.wait(WAIT_S)
    assert streams.state is State.ERROR


def test_a_handler_may_ask_for_another_try(world: World) -> None:
    source, target, flag = world.topic("in"), world.topic("out"), world.folder / "mended"
    location = str(flag)
    heard: list[str] = []

    def mend(error: MoldauError) -> Response:
        heard.append(str(error))
        flag.touch()
        return Response.REPLACE_THREAD

    def fragile(value: str) -> str:
        if not Path(location).exists():
            raise ValueError("not yet")
        return value

    world.send(source, ("a", "1"), ("a", "2"))
    streams = world.streams(copying(source, target, fragile))
    streams.set_uncaught_exception_handler(mend)
    streams.start()

    assert world.read(target, 2) == [("a", b"1"), ("a", b"2")]
    assert len(heard) == 1
    assert "not yet" in heard[0]
    assert streams.metrics().restarts == 1


def test_a_poison_record_goes_to_the_dead_letters(world: World) -> None:
    source, target, dead = world.topic("in", 1), world.topic("out"), f"{world.name}-dead"
    world.send(source, ("a", "good"), ("a", b"\xff\xfe"), ("a", "better"))
    streams = world.streams(
        copying(source, target),
        default_deserialization_exception_handler="log-and-continue",
        errors_dead_letter_queue_topic_name=dead,
    )
    streams.start()

    assert [value for _, value in world.read(target, 2)] == [b"GOOD", b"BETTER"]
    assert world.read(dead, 1) == [("a", b"\xff\xfe")]


def test_real_time_mode_names_the_operator_that_does_not_allow_it(world: World) -> None:
    source, target = world.topic("in"), world.topic("out")
    streams = world.streams(copying(source, target), moldau_latency="realtime", processing_guarantee="at_least_once")

    with pytest.raises(StreamsError, match=r"moldau\.latency=realtime is not possible: .*MAPVALUES"):
        streams.start()


def test_the_broker_goes_away_and_comes_back(world: World, tmp_path: Path) -> None:
    with Broker({"num.partitions": "1"}) as broker:
        inner = World(broker, world.engine, tmp_path / "inner", "away")
        source, target = inner.topic("in", 1), inner.topic("out", 1)
        streams = inner.streams(copying(source, target))
        streams.start()
        inner.send(source, ("a", "before"))
        assert inner.read(target, 1) == [("a", b"BEFORE")]

        broker.restart()
        inner.send(source, ("a", "after"))

        assert inner.read(target, 2)[-1] == ("a", b"AFTER")
        inner.close()


def test_many_applications_share_one_driver(world: World) -> None:
    pairs = [(world.topic(f"in{number}", 1), world.topic(f"out{number}", 1)) for number in range(3)]
    applications = [
        world.streams(copying(source, target), application_id=f"{world.name}-{number}")
        for number, (source, target) in enumerate(pairs)
    ]
    for application in applications:
        application.start()
    for source, _ in pairs:
        world.send(source, ("a", "x"))

    assert [world.read(target, 1) for _, target in pairs] == [[("a", b"X")]] * 3
