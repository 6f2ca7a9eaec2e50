"""Pipelines whose source or sink is not Kafka, on real Spark: exactly once, with restarts in the middle.

What ksql and Connect build on: identity, clients and options are given, and nothing of `moldau.streams` is imported
but the DSL that makes the topology.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.unit.pipeline.runtime.identities import identity_in

from moldau.client.groups import Groups
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.errors import StateLostError
from moldau.pipeline.runtime.identity import PipelineIdentity, PipelineOptions
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.delivery import InterruptedDeliveryError
from moldau.pipeline.runtime.kafka.progress_topic import read_progress
from moldau.pipeline.runtime.kafka.sinks import ExactlyOnceSink
from moldau.pipeline.runtime.kafka.wiring import kafka_pipeline
from moldau.pipeline.runtime.pipeline import Pipeline
from moldau.pipeline.runtime.progress import Progress
from moldau.pipeline.runtime.sink import Batch, Results
from moldau.pipeline.runtime.source import FrameSource
from moldau.pipeline.runtime.states import State
from moldau.streams import Consumed, Grouped, LongSerde, Produced, StreamsBuilder, StringSerde, Topology
from moldau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT, LONG = StringSerde(), LongSerde()
WAIT_S = 60
EXACTLY_ONCE = PipelineOptions(is_exactly_once=True, task_settings={"statestore.cache.max.bytes": 0})


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def clients(broker: Broker) -> KafkaClients:
    return KafkaClients(bootstrap_servers=broker.bootstrap_servers)


def running(pipeline: Pipeline) -> Pipeline:
    pipeline.start()
    pipeline.states.wait_for(lambda state: state is State.RUNNING or state.is_final, WAIT_S)
    if pipeline.failure is not None:
        raise pipeline.failure
    return pipeline


def counting(source: str, target: str) -> Topology:
    builder = StreamsBuilder()
    lines = builder.stream(source, Consumed.with_(TEXT, TEXT))
    lines.group_by_key(Grouped.with_(TEXT, TEXT)).count().to_stream().to(target, Produced.with_(TEXT, LONG))
    return builder.build()


def copying(source: str, target: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source, Consumed.with_(TEXT, TEXT)).map_values(str.upper).to(target, Produced.with_(TEXT, TEXT))
    return builder.build()


class Lines:
    """Lines of files in a folder, each a record whose key is its first word."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._written = 0

    def add(self, *lines: str) -> None:
        self._written += 1
        part = self._folder / f".{self._written}"
        part.write_text("".join(f"{line}\n" for line in lines))
        part.rename(self._folder / f"{self._written}.txt")

    def source(self) -> FrameSource:
        return FrameSource({"lines": self._frame})

    def _frame(self, spark: SparkSession) -> DataFrame:
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(self._folder))
        return lines.selectExpr(
            "CAST(split(value, ' ')[0] AS binary) AS key",
            "CAST(value AS binary) AS value",
            "CAST(NULL AS array<struct<key:string,value:binary>>) AS headers",
            "'lines' AS topic",
            "0 AS partition",
            "CAST(0 AS bigint) AS offset",
            "current_timestamp() AS timestamp",
        )


def records_of(broker: Broker, topic: str, count: int) -> list[tuple[str, bytes]]:
    """Wait for so many committed records, make sure that there are no more, and return them in order."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < deadline:
        found += [one for one in consumer.consume(100, timeout=0.1) if one.error() is None]
    found += [one for one in consumer.consume(100, timeout=0.5) if one.error() is None]
    consumer.close()
    assert len(found) == count, [(one.key(), one.value()) for one in found]
    return [(one.key().decode(), one.value()) for one in found]


def count_records(broker: Broker, topic: str, count: int) -> list[tuple[str, int]]:
    return [(key, int.from_bytes(value, "big")) for key, value in records_of(broker, topic, count)]


class DiesAfterCommit(ExactlyOnceSink):
    """Commits a batch and fails before Spark hears of it, as a driver that is killed at the worst moment."""

    def deliver(self, results: Results, batch: Batch) -> int:
        super().deliver(results, batch)
        raise InterruptedDeliveryError("killed")


def test_files_become_records_exactly_once_across_restarts(
    broker: Broker, clients: KafkaClients, spark: SparkSession, tmp_path: Path
) -> None:
    identity, lines = identity_in(tmp_path, "files"), Lines(tmp_path / "lines")
    topology, engine = counting("lines", "counts"), Engine(spark=spark)

    def pipeline() -> Pipeline:
        return kafka_pipeline(topology, identity, clients, EXACTLY_ONCE, engine, source=lines.source())

    lines.add("a 1", "b 1")
    lines.add("a 2")
    first = running(pipeline())
    assert count_records(broker, "counts", 3) == [("a", 1), ("b", 1), ("a", 2)]
    assert first.stop(WAIT_S)

    # A batch that is committed, and that Spark does not know to be done.
    lines.add("a 3")
    source = lines.source()
    dying = kafka_pipeline(
        topology,
        identity,
        clients,
        EXACTLY_ONCE,
        engine,
        source=source,
        new_sink=lambda: DiesAfterCommit(identity, clients, source.position),
    )
    dying.start()
    assert dying.states.wait_for(lambda state: state is State.ERROR, WAIT_S)
    assert count_records(broker, "counts", 4)[-1] == ("a", 3)

    # It comes again, changes the state again, and is not written again.
    second = running(pipeline())
    lines.add("a 4", "b 2")
    assert count_records(broker, "counts", 6)[-2:] == [("a", 4), ("b", 2)]
    assert second.stop(WAIT_S)

    progress = read_progress(identity, clients)
    assert progress is not None
    assert json.loads(progress.entry.splitlines()[-1]) == {"logOffset": 3}
    admin = clients.new_admin()
    assert Groups(admin).describe(identity.group_id) is None
    assert {"counts", identity.progress_topic} <= admin.partition_counts().keys()


def test_a_lost_checkpoint_of_files_is_refused(
    broker: Broker, clients: KafkaClients, spark: SparkSession, tmp_path: Path
) -> None:
    """Even without state: only the checkpoint knows which files were read."""
    lines, engine = Lines(tmp_path / "lines"), Engine(spark=spark)

    def pipeline(folder: str) -> Pipeline:
        identity = identity_in(tmp_path / folder, "copied-files")
        return kafka_pipeline(
            copying("lines", "copies"), identity, clients, EXACTLY_ONCE, engine, source=lines.source()
        )

    lines.add("a 1")
    first = running(pipeline("one"))
    assert records_of(broker, "copies", 1) == [("a", b"A 1")]
    assert first.stop(WAIT_S)

    with pytest.raises(StateLostError, match="reset copied-files"):
        running(pipeline("another"))


class DatabaseSink:
    """Rows in SQLite, with the progress in the same transaction."""

    keeps_progress = True
    commits_offsets = False

    def __init__(self, file: Path, fails_after_commit: Callable[[], bool]) -> None:
        self._database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._database.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT, value TEXT)")
        self._database.execute("CREATE TABLE IF NOT EXISTS progress (record BLOB)")
        self._fails_after_commit = fails_after_commit
        self._progress: Progress | None = None

    def open(self) -> Progress | None:
        row = self._database.execute("SELECT record FROM progress").fetchone()
        self._progress = None if row is None else Progress.decode(row[0])
        return self._progress

    def deliver(self, results: Results, batch: Batch) -> int:
        if self._progress is not None and self._progress.covers(batch.checkpoint, batch.number, batch.entry):
            return 0
        rows = [(row["key"], row["value"]) for rows in results for row in rows.to_pylist()]
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT INTO rows VALUES (CAST(? AS TEXT), CAST(? AS TEXT))", rows)
            self._database.execute("DELETE FROM progress")
            self._database.execute("INSERT INTO progress VALUES (?)", (batch.progress.encode(),))
        self._progress = batch.progress
        if self._fails_after_commit():
            raise InterruptedDeliveryError("killed")
        return len(rows)

    def refresh(self) -> None: ...

    def interrupt(self) -> None: ...

    def close(self) -> None:
        self._database.close()


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    made = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    yield made
    made.flush(WAIT_S)


def test_records_become_rows_of_a_database_exactly_once(
    broker: Broker, clients: KafkaClients, spark: SparkSession, producer: Producer, tmp_path: Path
) -> None:
    admin = clients.new_admin()
    admin.create_topic("orders", partitions=1)
    identity, file, killing = identity_in(tmp_path, "database"), tmp_path / "rows.sqlite", [False]

    def pipeline(identity: PipelineIdentity = identity) -> Pipeline:
        return kafka_pipeline(
            copying("orders", "rows"),
            identity,
            clients,
            EXACTLY_ONCE,
            Engine(spark=spark),
            new_sink=lambda: DatabaseSink(file, lambda: killing[0]),
        )

    def send(*values: str) -> None:
        for value in values:
            producer.produce("orders", value, "k")
        assert producer.flush(WAIT_S) == 0

    def rows() -> list[str]:
        database = sqlite3.connect(file)
        try:
            return [row[0] for row in database.execute("SELECT value FROM rows ORDER BY rowid")]
        except sqlite3.OperationalError:  # not made yet
            return []
        finally:
            database.close()

    send("a", "b")
    first = running(pipeline())
    until(lambda: rows() == ["A", "B"])
    killing[0] = True
    send("c")
    assert first.states.wait_for(lambda state: state is State.ERROR, WAIT_S)
    assert str(first.failure) == "killed"
    assert rows() == ["A", "B", "C"]

    killing[0] = False
    second = running(pipeline())
    send("d")
    until(lambda: len(rows()) > 3)
    assert second.stop(WAIT_S)

    assert rows() == ["A", "B", "C", "D"]
    committed = Groups(admin).committed(identity.group_id)
    assert {at.topic: found.offset for at, found in committed.items()} == {"orders": 4}
    assert not {"rows", identity.progress_topic} & admin.partition_counts().keys()
