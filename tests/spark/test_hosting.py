"""Tasks inside Spark: restarts, failures, tables that every task knows, the time of day."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.spark.failures import PipelineFailedError
from moldau.pipeline.spark.spark_run import SparkRun
from moldau.streams import Consumed, Grouped, LongSerde, Materialized, Produced, Stores, StreamsBuilder, StringSerde

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT, LONG = StringSerde(), LongSerde()
TEXTS = Consumed.with_(TEXT, TEXT)
EVERY_CHANGE = TaskSettings.of({"statestore.cache.max.bytes": "0"})


def number(data: bytes | None) -> int:
    return int.from_bytes(data or b"", "big")


@pytest.fixture
def run(spark: SparkSession) -> Iterator[Any]:
    started: list[SparkRun] = []

    def start(builder: StreamsBuilder, settings: TaskSettings = EVERY_CHANGE, **options: Any) -> SparkRun:
        started.append(SparkRun(builder.build(), settings, spark=spark, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_words_are_counted_over_partitions_batches_and_a_restart(run: Any) -> None:
    builder = StreamsBuilder()
    lines = builder.stream("lines", TEXTS)
    words = lines.flat_map_values(str.split).group_by(lambda _, word: word, Grouped.with_(TEXT, TEXT))
    words.count(Materialized.as_("counts")).to_stream().to("out", Produced.with_(TEXT, LONG))
    lines.map_values(str.upper).to("loud", Produced.with_(TEXT, TEXT))
    running = run(builder, partitions=3)

    for line in ("to be or", "not to be"):
        running.pipe("lines", line.encode(), line.encode(), 1)
    running.restart()
    running.pipe("lines", b"k", b"be", 2)

    outputs = running.drain()
    assert [number(one.value) for one in outputs if one.key == b"be"] == [1, 2, 3]
    assert {one.value for one in outputs if one.topic == "loud"} == {b"TO BE OR", b"NOT TO BE", b"BE"}
    stored = {word: row.value for store in running.stores("counts") for word, row in store.all()}
    assert stored == {"to": 2, "be": 3, "or": 1, "not": 1}


def test_a_lambda_that_raises_ends_the_query_with_one_sentence(run: Any) -> None:
    def halved(text: str) -> str:
        return str(100 // int(text))

    builder = StreamsBuilder()
    builder.stream("in", TEXTS).map_values(halved).to("out", Produced.with_(TEXT, TEXT))
    running = run(builder)
    for nth, text in enumerate(("1", "2", "0")):
        running.pipe("in", b"k", text.encode(), nth)

    with pytest.raises(PipelineFailedError) as failed:
        running.drain()
    message = str(failed.value)
    assert "topic in, partition 0, offset 2" in message
    assert "test_hosting.py" in message
    assert "ZeroDivisionError" in message
    assert "\n" not in message
    assert "Traceback" not in message


def test_a_start_that_fails_leaves_no_files(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unwilling:
        def init(self, context: Any) -> None:
            raise ValueError("not today")

        def process(self, record: Any) -> None:
            pass

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    builder = StreamsBuilder()
    builder.stream("in", TEXTS).process(Unwilling).to("out", Produced.with_(TEXT, TEXT))

    with pytest.raises(PipelineFailedError, match="not today") as failed:
        run(builder)
    # What was raised holds the frames it came through, so that nothing of them was left to the garbage collector.
    assert failed.tb is not None
    assert not list(tmp_path.iterdir())


def test_a_global_table_is_known_in_every_partition_before_the_first_record(run: Any) -> None:
    builder = StreamsBuilder()
    countries = builder.global_table("countries", TEXTS)
    people = builder.stream("people", TEXTS)
    joined = people.join(
        countries, lambda name, country: f"{name} of {country}", key_selector=lambda key, name: name[0]
    )
    joined.to("out", Produced.with_(TEXT, TEXT))
    running = run(builder, partitions=2)
    running.pipe("countries", b"A", b"Austria", 100)
    running.pipe("countries", b"B", b"Bohemia", 100)
    for key in (b"1", b"2", b"3", b"4"):
        running.pipe("people", key, b"Anna", 1)
        running.pipe("people", key, b"Bert", 2)

    assert sorted(one.value for one in running.drain()) == [b"Anna of Austria"] * 4 + [b"Bert of Bohemia"] * 4


def test_a_global_store_is_filled_in_every_partition_by_its_processor(run: Any) -> None:
    class Fill:
        def init(self, context: Any) -> None:
            self.store = context.get_state_store("names")

        def process(self, record: Any) -> None:
            self.store.put(record.key, record.value.upper())

    class Greet:
        def init(self, context: Any) -> None:
            self.context = context
            self.store = context.get_state_store("names")

        def process(self, record: Any) -> None:
            self.context.forward(record.with_value(f"{record.value} {self.store.get(record.key)}"))

    builder = StreamsBuilder()
    names = Stores.key_value_store_builder(Stores.persistent_key_value_store("names"), TEXT, TEXT)
    builder.add_global_store(names, "people", TEXTS, Fill)
    builder.stream("in", TEXTS).process(Greet).to("out", Produced.with_(TEXT, TEXT))
    running = run(builder, partitions=2)
    for key in (b"a", b"b", b"c", b"d"):
        running.pipe("people", key, key * 2, 100)
        running.pipe("in", key, b"hello", 1)

    assert sorted(one.value for one in running.drain()) == [b"hello AA", b"hello BB", b"hello CC", b"hello DD"]


def test_a_tombstone_and_a_late_record_are_decided_as_kafka_streams_decides(run: Any) -> None:
    builder = StreamsBuilder()
    builder.table("rows", TEXTS).filter(lambda _, row: row != "bad").to_stream().to("out", Produced.with_(TEXT, TEXT))
    running = run(builder)
    for value in (b"good", b"bad", b"good", None):
        running.pipe("rows", b"k", value, 5)

    assert [one.value for one in running.drain()] == [b"good", None, b"good", None]


def test_caching_tells_one_change_per_key_and_batch(run: Any) -> None:
    builder = StreamsBuilder()
    builder.stream("in", TEXTS).group_by_key().count().to_stream().to("out", Produced.with_(TEXT, LONG))
    running = run(builder, TaskSettings(), commits_each_record=False)
    batches = []
    for batch in (b"aab", b"ba"):
        for letter in batch:
            running.pipe("in", bytes([letter]), b"x", 1)
        batches.append({one.key: number(one.value) for one in running.drain()})

    assert batches == [{b"a": 2, b"b": 1}, {b"a": 3, b"b": 2}]
