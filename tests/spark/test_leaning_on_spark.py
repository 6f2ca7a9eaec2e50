"""What the engine takes for granted of the PySpark version that is pinned, checked on the real thing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from moldau.pipeline.spark.hosted.state_channel import StateChannel
from moldau.pipeline.spark.memory_reader import MemoryReader
from moldau.pipeline.spark.placement import shuffle_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_a_slot_goes_where_sparks_hash_sends_it(spark: SparkSession) -> None:
    rows = spark.range(200).selectExpr("pmod(hash(CAST(id AS INT)), 7) AS place").collect()
    assert [row.place for row in rows] == [shuffle_partition(slot, 7) for slot in range(200)]


class Probe(StatefulProcessor):
    """Writes with our channel and reads with PySpark's own client, and the other way round."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._client: Any = handle._statefulProcessorApiClient
        self._map = handle.getMapState("entries", "key binary", "value binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        from pyspark.sql import Row

        list(rows)
        channel = StateChannel(self._client)
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
