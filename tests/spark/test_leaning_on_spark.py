"""What the engine takes for granted of the PySpark version that is pinned, checked on the real thing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from moldau.pipeline.cores.in_memory_run import InMemoryRun
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.spark.hosted import arrow_groups
from moldau.pipeline.spark.hosted.state_channel import StateChannel
from moldau.pipeline.spark.memory_reader import MemoryReader
from moldau.pipeline.spark.placement import shuffle_partition
from moldau.pipeline.spark.queries import _all_at_once, _arriving
from moldau.pipeline.spark.spark_run import SparkRun
from moldau.streams import (
    Consumed,
    Grouped,
    LongSerde,
    Materialized,
    Produced,
    PunctuationType,
    Record,
    StreamsBuilder,
    StringSerde,
    Topology,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_a_slot_goes_where_sparks_hash_sends_it(spark: SparkSession) -> None:
    rows = spark.range(200).selectExpr("pmod(hash(CAST(id AS INT)), 7) AS place").collect()
    assert [row.place for row in rows] == [shuffle_partition(slot, 7) for slot in range(200)]


class Probe(StatefulProcessor):
    """Writes with our channel and reads with PySpark's own client, and the other way round."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._channel = StateChannel.of(handle)
        self._map = handle.getMapState("entries", "key binary", "value binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        from pyspark.sql import Row

        list(rows)
        channel = self._channel
        assert channel is not None, "this PySpark has no channel to its state"
        ours = [(b"k%d" % number, bytes([number % 256]) * number) for number in range(1000)]
        channel.write([*(("entries", *entry) for entry in ours), ("entries", b"gone", b"x")])
        channel.write([("entries", b"gone", None)])
        self._map.updateValue((b"theirs",), (b"value",))
        wanted = [*(name for name, _ in ours), b"theirs", b"gone"]
        same = channel.get_many("entries", wanted) == [*(value for _, value in ours), b"value", None]
        alike = all(self._map.getValue((name,)) == (value,) for name, value in ours[:50])
        everything = dict(channel.items("entries")) == {**dict(ours), b"theirs": b"value"}
        yield Row(text=f"{same} {alike} {everything}")

    def close(self) -> None:
        pass


def test_requests_in_flight_are_answered_like_single_ones(spark: SparkSession, tmp_path: Path) -> None:
    reader = MemoryReader(spark)
    probed = reader.ticks().groupBy("now_ms").transformWithState(Probe(), "text string", "Append", "None")
    assert _collected(probed, reader, tmp_path) == ["True True True"]


def _collected(frame: DataFrame, reader: MemoryReader, folder: Path) -> list[str]:
    texts: list[str] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: texts.extend(row.text for row in batch.collect()))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        reader.add([reader.tick(5)])
        query.processAllAvailable()
    finally:
        query.stop()
    return texts


def test_this_pyspark_takes_groups() -> None:
    assert arrow_groups.are_known()


class Ticking:
    """Forwards every record, and the number of its store's entries when the clock ticks."""

    def init(self, context: Any) -> None:
        self.context = context
        context.schedule(1000, PunctuationType.WALL_CLOCK_TIME, self.tell)

    def process(self, record: Record) -> None:
        self.context.forward(record)

    def tell(self, now_ms: int) -> None:
        self.context.forward(Record("clock", str(now_ms), now_ms))


TEXT, NUMBER = StringSerde(), LongSerde()


def every_kind_of_row() -> Topology:
    """Rows from two topics, from a global table, from another stage, and ticks, in stages with state."""
    builder = StreamsBuilder()
    table = builder.table("names", Consumed.with_(TEXT, TEXT))
    everywhere = builder.global_table("places", Consumed.with_(TEXT, TEXT))
    stream = builder.stream("visits", Consumed.with_(TEXT, TEXT))
    joined = stream.join(table, lambda visit, name: f"{name} {visit}")
    placed = joined.join(everywhere, lambda value, place: f"{value} at {place}", key_selector=lambda key, value: "home")
    placed.to("joined", Produced.with_(TEXT, TEXT))
    counts = (
        placed.select_key(lambda key, value: value)
        .group_by_key(Grouped.with_(TEXT, TEXT))
        .count(Materialized.with_(TEXT, NUMBER))
    )
    counts.to_stream().to("counts", Produced.with_(TEXT, NUMBER))
    builder.stream("ticked", Consumed.with_(TEXT, TEXT)).process(Ticking).to("told", Produced.with_(TEXT, TEXT))
    return builder.build()


def _outputs(run: InMemoryRun | SparkRun) -> list[tuple[str, bytes | None, bytes | None]]:
    found = []
    run.pipe("places", b"home", b"Brno", 0)
    for number in range(30):
        key = b"%d" % (number % 7)
        if number < 7:
            run.pipe("names", key, b"name %d" % number, 2 * number)
        run.pipe("visits", key, b"visit %d" % (number % 3), 2 * number + 1)
        run.pipe("ticked", key, b"t", 2 * number + 1)
        if number % 10 == 9:
            run.advance_wall_clock(1000 * number)
            found += [(output.topic, output.key, output.value) for output in run.drain()]
    return [output for output in found if not output[0].endswith("-repartition")]


@pytest.mark.parametrize("public_only", [True, False])
def test_rows_of_every_kind_arrive_with_and_without_pysparks_insides(spark: SparkSession, public_only: bool) -> None:
    settings = TaskSettings.of({"application.id": "rows", "statestore.cache.max.bytes": "0"})
    in_memory = InMemoryRun(every_kind_of_row(), settings, partitions=2, wall_clock_ms=0)
    on_spark = SparkRun(
        every_kind_of_row(), settings, partitions=2, wall_clock_ms=0, public_only=public_only, spark=spark
    )
    try:
        expected, found = sorted(_outputs(in_memory)), sorted(_outputs(on_spark))
    finally:
        on_spark.close()
    assert found == expected
    assert {topic for topic, _, _ in found} == {"joined", "counts", "told"}


def test_a_batchs_rows_are_the_same_one_by_one_and_all_at_once(spark: SparkSession) -> None:
    import pyarrow as pa

    for rows in (spark.range(1000).repartition(4), spark.range(0)):
        for read in (_arriving, _all_at_once):
            table = pa.Table.from_batches(read(rows), pa.schema([pa.field("id", pa.int64(), nullable=False)]))
            assert sorted(table["id"].to_pylist()) == list(range(rows.count()))
