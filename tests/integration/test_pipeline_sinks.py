"""Batches into topics through both sinks: once, again, by two at a time, and by one that was fenced."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests import open_clients

from moldau.cli.main import main
from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.groups import Groups, commit_for_good, remove_static_member
from moldau.client.partitioners import hashed_partition
from moldau.core import ids
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.checkpoint import kafka_offsets, source_lines
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import CheckpointMismatchError, MissingTopicError, StreamsError, TakenOverError
from moldau.pipeline.runtime.identity import PipelineIdentity
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.cluster import Cluster
from moldau.pipeline.runtime.kafka.delivery import InterruptedDeliveryError
from moldau.pipeline.runtime.kafka.group_presence import GroupPresence, committed_offsets
from moldau.pipeline.runtime.kafka.progress_topic import TOPIC_CONFIGS, read_progress
from moldau.pipeline.runtime.kafka.sinks import AtLeastOnceSink, ExactlyOnceSink
from moldau.pipeline.runtime.sink import Batch, Results
from moldau.pipeline.runtime.source import Position
from moldau.pipeline.spark.plan import OutputPoint
from moldau.streams.application import clients_of, identity_of, reset_application, streams_pipeline
from moldau.streams.settings import StreamsSettings
from moldau.testing import Broker

PARTITIONS = 3
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
WAIT_S = 30


@dataclass
class Application:
    """An application's settings and topics."""

    settings: StreamsSettings
    admin: Admin
    input: str
    output: str

    @property
    def id(self) -> str:
        return self.settings.application_id

    @property
    def identity(self) -> PipelineIdentity:
        return identity_of(self.settings)

    @property
    def clients(self) -> KafkaClients:
        return clients_of(self.settings)

    def new_sink(self) -> ExactlyOnceSink:
        return ExactlyOnceSink(self.identity, self.clients, position)

    def new_presence(self, on_taken_over: Callable[[], object]) -> GroupPresence:
        return GroupPresence(self.identity, self.clients, [self.input], None, lambda: on_taken_over() and None)

    def batch(self, number: int, end: int, checkpoint: str = "checkpoint") -> Batch:
        entry = f'v1\n{{}}\n{{"{self.input}":{{"0":{end}}}}}'
        return Batch(checkpoint, number, entry, position(entry))

    def rows(self, *values: str, **columns: Any) -> Results:
        count = len(values)
        known: dict[str, Any] = {
            "output": pa.array([0] * count, pa.int32()),
            "topic": pa.array([None] * count, pa.string()),
            "key": pa.array([value[:1].encode() for value in values], pa.binary()),
            "value": pa.array([value.encode() for value in values], pa.binary()),
            "timestamp": pa.array(range(1, count + 1), pa.int64()),
            "headers": pa.array([None] * count, HEADERS),
            "partition": pa.array([None] * count, pa.int32()),
        }
        point = OutputPoint(0, "sink", self.output, None)
        return Results([pa.record_batch({**known, **columns})], [point])

    def committed_end(self) -> int | None:
        place = ids.TopicPartition(self.input, 0)
        return committed_offsets(self.id, self.clients, [place]).get(place)

    def records(self) -> list[Any]:
        """What a reader of committed records sees, by partition and offset."""
        return read(self.settings.bootstrap_servers, self.output)

    def values(self) -> list[str]:
        return sorted(record.value().decode() for record in self.records())


def position(entry: str) -> Position:
    return Position(kafka_offsets(source_lines(entry)))


def streams_cluster(config: dict[str, str], topology: Topology) -> Cluster:
    """The cluster of an application that writes to its sinks' topics and its dead letters."""
    settings = StreamsSettings.of(config)
    written = [*(sink.topic for sink in topology.sinks if sink.topic), *filter(None, [settings.dead_letter_topic])]
    progress = identity_of(settings).progress_topic if settings.is_exactly_once else None
    return Cluster(clients_of(settings), topology, written=written, progress_topic=progress)


def read(bootstrap: str, topic: str) -> list[Any]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found, ended = [], 0
    while ended < PARTITIONS:
        message = consumer.poll(WAIT_S)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            ended += 1
    consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


@pytest.fixture
def application(moldau_broker: Broker, request: pytest.FixtureRequest) -> Application:
    name = request.node.name.removeprefix("test_")[:60]
    config = {"application.id": name, "bootstrap.servers": moldau_broker.bootstrap_servers}
    settings = StreamsSettings.of({**config, "processing.guarantee": "exactly_once_v2"})
    made = Application(settings, Admin(moldau_broker.bootstrap_servers), f"{name}-in", f"{name}-out")
    made.admin.create_topic(made.input, partitions=1)
    made.admin.create_topic(made.output, partitions=PARTITIONS)
    made.admin.create_topic(f"{name}-progress", partitions=1, configs=TOPIC_CONFIGS)
    return made


@pytest.fixture
def sink(application: Application) -> Iterator[ExactlyOnceSink]:
    opened = application.new_sink()
    assert opened.open() is None
    yield opened
    opened.close()


@pytest.fixture
def presence(application: Application) -> Iterator[GroupPresence]:
    member = application.new_presence(lambda: None)
    member.start()
    yield member
    member.close()


def until(reached: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_batch_and_its_offsets_appear_together(application: Application, sink: ExactlyOnceSink) -> None:
    assert sink.deliver(application.rows("a1", "b1"), application.batch(0, 10)) == 2

    assert application.values() == ["a1", "b1"]
    assert application.committed_end() == 10


def test_rows_arrive_as_they_left(application: Application, sink: ExactlyOnceSink) -> None:
    headers = pa.array([[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, None], HEADERS)
    keys = pa.array([b"some key", None, b""], pa.binary())
    values = pa.array([b"v", b"no key", None], pa.binary())
    rows = application.rows("a", "b", "c", headers=headers, key=keys, value=values)

    sink.deliver(rows, application.batch(0, 3))

    by_time = {record.timestamp()[1]: record for record in application.records()}
    assert by_time[1].headers() == [("h", b"1"), ("h", None)]
    assert (by_time[1].partition(), by_time[1].value()) == (hashed_partition(b"some key", PARTITIONS), b"v")
    assert (by_time[2].key(), by_time[2].value()) == (None, b"no key")
    assert (by_time[3].key(), by_time[3].value()) == (b"", None)
    assert by_time[3].partition() == hashed_partition(b"", PARTITIONS)


def test_a_row_with_a_partition_keeps_it(application: Application, sink: ExactlyOnceSink) -> None:
    partitions = pa.array([2, 0], pa.int32())

    sink.deliver(application.rows("a", "a", partition=partitions), application.batch(0, 2))

    assert [(record.partition(), record.timestamp()[1]) for record in application.records()] == [(0, 2), (2, 1)]


def test_keys_keep_their_order(application: Application, sink: ExactlyOnceSink) -> None:
    rows = application.rows(*(f"{key}{number}" for number in range(300) for key in "abc"))

    sink.deliver(rows, application.batch(0, 900))

    for key in "abc":
        found = [record.value().decode() for record in application.records() if record.key() == key.encode()]
        assert found == [f"{key}{number}" for number in range(300)]


def test_a_batch_that_comes_again_is_left_out(application: Application, sink: ExactlyOnceSink) -> None:
    sink.deliver(application.rows("a1"), application.batch(0, 1))
    again = application.new_sink()
    progress = again.open()

    assert progress is not None
    assert progress.batch == 0
    assert again.deliver(application.rows("a1"), application.batch(0, 1)) == 0
    assert again.deliver(application.rows("a2"), application.batch(1, 2)) == 1
    again.close()

    assert application.values() == ["a1", "a2"]


def test_it_is_known_after_the_groups_offsets_are_gone(application: Application, sink: ExactlyOnceSink) -> None:
    """As after a week in which nobody committed."""
    sink.deliver(application.rows("a1"), application.batch(0, 1))
    assert Groups(application.admin).delete([application.id]) == {application.id: None}
    again = application.new_sink()
    again.open()

    assert application.committed_end() is None
    assert again.deliver(application.rows("a1"), application.batch(0, 1)) == 0
    again.refresh()
    again.close()

    assert application.values() == ["a1"]
    assert application.committed_end() == 1


def test_what_a_killed_instance_left_open_is_never_seen(application: Application) -> None:
    killed = Producer({"bootstrap.servers": application.settings.bootstrap_servers, "transactional.id": application.id})
    killed.init_transactions(WAIT_S)
    killed.begin_transaction()
    killed.produce(application.output, b"half")
    assert killed.flush(WAIT_S) == 0

    successor = application.new_sink()
    assert successor.open() is None
    successor.deliver(application.rows("whole"), application.batch(0, 1))
    successor.close()

    assert application.values() == ["whole"]


def test_a_fenced_instance_ends(application: Application, sink: ExactlyOnceSink) -> None:
    successor = application.new_sink()
    successor.open()

    with pytest.raises(TakenOverError, match="another instance of application"):
        sink.deliver(application.rows("a1"), application.batch(0, 1))

    successor.close()
    assert application.values() == []


def test_a_batch_that_was_planned_otherwise_is_refused(application: Application, sink: ExactlyOnceSink) -> None:
    sink.deliver(application.rows("a1"), application.batch(0, 1))

    with pytest.raises(CheckpointMismatchError, match="with other offsets"):
        sink.deliver(application.rows("a1", "a2"), application.batch(0, 2))


def test_a_batch_without_rows_moves_the_offsets(application: Application, sink: ExactlyOnceSink) -> None:
    sink.deliver(application.rows(), application.batch(0, 5))

    assert application.committed_end() == 5
    assert read_progress(application.identity, application.clients) == sink.progress


def test_the_last_of_many_progress_records_is_found(application: Application, sink: ExactlyOnceSink) -> None:
    for number in range(150):
        sink.deliver(application.rows(), application.batch(number, number + 1))

    progress = read_progress(application.identity, application.clients)

    assert progress is not None
    assert progress.batch == 149


def test_a_progress_topic_that_cannot_be_seen_is_not_taken_for_a_beginning(moldau_broker: Broker) -> None:
    settings = StreamsSettings.of({"application.id": "hidden", "bootstrap.servers": moldau_broker.bootstrap_servers})

    with pytest.raises(MissingTopicError, match=r"topic hidden-progress, .*, is not visible"):
        read_progress(identity_of(settings), clients_of(settings), patience_s=0.2)


def test_an_application_that_has_committed_nothing_has_no_progress(application: Application) -> None:
    assert read_progress(application.identity, application.clients) is None


def test_a_delivery_without_a_cluster_is_given_up_when_told() -> None:
    with Broker() as broker:
        config = {"application.id": "gone", "bootstrap.servers": broker.bootstrap_servers}
        settings = StreamsSettings.of({**config, "processing.guarantee": "exactly_once_v2"})
        alone = Application(settings, Admin(broker.bootstrap_servers), "gone-in", "gone-out")
        for topic in ("gone-in", "gone-out", "gone-progress"):
            alone.admin.create_topic(topic, partitions=1)
        sink = alone.new_sink()
        sink.open()
        sink.deliver(alone.rows("a1"), alone.batch(0, 1))
        broker.stop()
        ending = threading.Timer(0.5, sink.interrupt)
        ending.start()

        with pytest.raises(InterruptedDeliveryError):
            sink.deliver(alone.rows("a2"), alone.batch(1, 2))
        sink.close()
        ending.join()


def test_at_least_once_writes_and_commits(application: Application, presence: GroupPresence) -> None:
    sink = AtLeastOnceSink(application.clients)
    sink.open()
    for _ in range(2):
        batch = application.batch(0, 4)
        sink.deliver(application.rows("a1", "b1"), batch)
        presence.commit_soon(batch.position.offsets)
    sink.close()

    until(lambda: application.committed_end() == 4)
    assert application.values() == ["a1", "a1", "b1", "b1"]


def test_a_running_application_is_a_group_with_a_member(application: Application, presence: GroupPresence) -> None:
    until(lambda: _state(application) == "Stable")

    group = Groups(application.admin).describe(application.id)

    assert group is not None
    assert [member.instance_id for member in group.members] == [application.id]
    assert group.members[0].assignment == (ids.TopicPartition(application.input, 0),)


def test_exactly_once_commits_beside_the_member(
    application: Application, presence: GroupPresence, sink: ExactlyOnceSink
) -> None:
    until(lambda: _state(application) == "Stable")

    sink.deliver(application.rows("a1"), application.batch(0, 7))

    assert application.committed_end() == 7


def test_a_second_instance_drives_the_first_one_out(application: Application) -> None:
    driven_out: list[str] = []
    first = application.new_presence(lambda: driven_out.append("first"))
    second = application.new_presence(lambda: driven_out.append("second"))
    first.start()
    until(lambda: _state(application) == "Stable")
    second.start()

    until(lambda: driven_out)
    first.close()
    second.close()

    assert driven_out == ["first"]


def test_offsets_of_a_stopped_application_stay(application: Application) -> None:
    presence = application.new_presence(lambda: None)
    presence.start()
    presence.commit_soon({ids.TopicPartition(application.input, 0): 3})
    until(lambda: application.committed_end() == 3)
    presence.close()

    remove_static_member(application.admin, application.id, application.id, presence.member_id)
    commit_for_good(application.admin, application.id, {ids.TopicPartition(application.input, 0): 4})

    assert _state(application) == "Empty"
    assert application.committed_end() == 4


def test_only_its_own_place_in_the_group_is_given_up(application: Application, presence: GroupPresence) -> None:
    until(lambda: _state(application) == "Stable")

    with pytest.raises(ClientError, match="FENCED_INSTANCE_ID"):
        remove_static_member(application.admin, application.id, application.id, "somebody else")

    assert _state(application) == "Stable"


def test_an_application_that_may_be_running_is_not_reset(
    application: Application, presence: GroupPresence, tmp_path: Path
) -> None:
    until(lambda: _state(application) == "Stable")
    settings = replace(application.settings, state_dir=str(tmp_path))

    with pytest.raises(StreamsError, match="is running somewhere, or was killed less than a minute ago"):
        reset_application(settings)
    presence.close()
    (tmp_path / application.id / "checkpoint").mkdir()

    assert reset_application(settings, force=True) == [
        f"group {application.id}",
        f"topic {application.id}-progress",
        f"state in {tmp_path}/{application.id}",
    ]
    assert reset_application(settings) == []


def test_a_reset_that_finds_nothing_says_so(
    moldau_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["streams", "reset", "-a", "nobody", "-b", moldau_broker.bootstrap_servers, "-p", f"state.dir={tmp_path}"]

    assert main(words) == 0
    assert "Nothing to forget: nobody has no group and no progress" in capsys.readouterr().out


def test_topics_that_meet_with_different_counts_are_refused_before_anything_is_made(moldau_broker: Broker) -> None:
    from moldau.streams import CopartitioningError, StreamsBuilder

    admin = Admin(moldau_broker.bootstrap_servers)
    admin.create_topic("meeting-one", partitions=1)
    admin.create_topic("meeting-two", partitions=2)
    builder = StreamsBuilder()
    builder.stream("meeting-one").join(builder.table("meeting-two"), lambda one, two: one).to("meeting-out")
    config = {"application.id": "meeting", "bootstrap.servers": moldau_broker.bootstrap_servers}

    with pytest.raises(CopartitioningError, match="meeting-one has 1, meeting-two has 2; repartition one side"):
        streams_cluster(config, builder.build()).prepare()
    assert "meeting-out" not in admin.partition_counts()


def test_a_topic_that_cannot_be_is_told_without_bad_advice(moldau_broker: Broker) -> None:
    from moldau.streams import StreamsBuilder

    Admin(moldau_broker.bootstrap_servers).create_topic("fine", partitions=1)
    builder = StreamsBuilder()
    builder.stream("fine").to("not fine")
    config = {"application.id": "badly-named", "bootstrap.servers": moldau_broker.bootstrap_servers}

    with pytest.raises(StreamsError, match=r"'not fine' has characters other than .* needs another name for it"):
        streams_cluster(config, builder.build()).prepare()


def test_topics_that_are_written_are_made(moldau_broker: Broker) -> None:
    from moldau.streams import Consumed, StreamsBuilder, StringSerde

    admin = Admin(moldau_broker.bootstrap_servers)
    admin.create_topic("made-in", partitions=1)
    builder = StreamsBuilder()
    builder.stream("made-in", Consumed.with_(StringSerde(), StringSerde())).to("made-out")
    config = {
        "application.id": "made",
        "bootstrap.servers": moldau_broker.bootstrap_servers,
        "processing.guarantee": "exactly_once_v2",
        "errors.dead.letter.queue.topic.name": "made-dead",
    }

    counts = streams_cluster(config, builder.build()).prepare()

    assert {"made-in", "made-out", "made-dead", "made-progress"} <= counts.keys()
    assert counts["made-progress"] == 1


@pytest.fixture
def opened_clients() -> Callable[[], int]:
    """How many clients are open more than at the test's begin; cycles are no excuse, they are collected too late."""
    gc.collect()
    before = open_clients.count()
    return lambda: open_clients.count() - before


def test_a_fenced_sink_closes_its_clients(application: Application, opened_clients: Callable[[], int]) -> None:
    fenced, successor = application.new_sink(), application.new_sink()
    fenced.open()
    successor.open()
    with pytest.raises(TakenOverError):
        fenced.deliver(application.rows("a1"), application.batch(0, 1))

    fenced.close()
    successor.close()

    until(lambda: opened_clients() == 0)


@pytest.mark.parametrize("is_exactly_once", [True, False])
def test_a_sink_with_records_that_no_broker_takes_closes_its_clients(
    is_exactly_once: bool, opened_clients: Callable[[], int]
) -> None:
    with Broker() as broker:
        config = {"application.id": "gone", "bootstrap.servers": broker.bootstrap_servers}
        alone = Application(StreamsSettings.of(config), Admin(broker.bootstrap_servers), "gone-in", "gone-out")
        for topic in ("gone-in", "gone-out", "gone-progress"):
            alone.admin.create_topic(topic, partitions=1)
        sink = alone.new_sink() if is_exactly_once else AtLeastOnceSink(alone.clients)
        sink.open()
        sink.deliver(alone.rows("a1"), alone.batch(0, 1))
        broker.stop()
        ending = threading.Timer(0.5, sink.interrupt)
        ending.start()
        with pytest.raises(InterruptedDeliveryError):
            sink.deliver(alone.rows("a2"), alone.batch(1, 2))
        ending.join()

        sink.close()
        sink.close()
        del alone

        until(lambda: opened_clients() == 0)


class NoSpark:
    """An engine on a machine without Java."""

    settings: Mapping[str, str] = {}

    def session(self) -> Any:
        raise StreamsError("no Java")

    def has_lost_spark_for_good(self) -> bool:
        return False

    def release_slots(self, pipeline: str) -> None:
        """It has none."""


def test_a_pipeline_that_fails_closes_its_clients(
    application: Application, tmp_path: Path, opened_clients: Callable[[], int]
) -> None:
    from moldau.streams import Consumed, StreamsBuilder, StringSerde

    builder = StreamsBuilder()
    builder.stream(application.input, Consumed.with_(StringSerde(), StringSerde())).to(application.output)
    settings, engine = replace(application.settings, state_dir=str(tmp_path)), cast(Engine, NoSpark())
    pipeline = streams_pipeline(builder.build(), settings, engine)
    pipeline.start()

    assert pipeline.states.wait_for(lambda state: state.is_final, WAIT_S)
    assert str(pipeline.failure) == "no Java"
    until(lambda: opened_clients() == 0)


def _state(application: Application) -> str | None:
    group = Groups(application.admin).describe(application.id)
    return None if group is None else group.state
