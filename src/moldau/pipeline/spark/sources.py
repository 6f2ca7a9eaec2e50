"""The input rows of a query: topics through Spark's Kafka connector, and clock ticks.

A reader returns the connector's columns; `source_rows` converts them to the rows of `rows`, addressed to the tasks of a
stage. Records from elsewhere need another reader. Parts of a query that read the same topic share one source
(`SharedReader`). Start at `source_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from moldau.pipeline.ir.copartitioning import task_count
from moldau.pipeline.ir.nodes import GlobalTableSource, OffsetReset, Source
from moldau.pipeline.spark.plan import InputPoint, Plan, Stage, Unit
from moldau.pipeline.spark.rows import BUNDLES, HEADERS_DDL, TICK, ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from moldau.pipeline.spark.job import SourceOptions

__all__ = [
    "KafkaReader",
    "Read",
    "Reader",
    "SharedReader",
    "clock_ticks",
    "read_of",
    "source_rows",
    "stage_reads",
    "with_all_columns",
    "with_columns_of",
]


class Reader(Protocol):
    """Returns the records of topics with the columns of Spark's Kafka connector: key, value, topic and so on."""

    def records(
        self, topics: tuple[str, ...], pattern: str | None, reset: OffsetReset | None, *, is_global: bool
    ) -> DataFrame: ...

    def ticks(self) -> DataFrame:
        """Rows of one column, `now_ms`; each makes tasks check the clock."""
        ...


class KafkaReader:
    """Reads from a cluster."""

    def __init__(self, spark: SparkSession, source_options: SourceOptions) -> None:
        self._spark = spark
        self._source_options = source_options

    def records(
        self, topics: tuple[str, ...], pattern: str | None, reset: OffsetReset | None, *, is_global: bool
    ) -> DataFrame:
        options = self._source_options(topics or None, pattern, reset, is_global=is_global)
        return self._spark.readStream.format("kafka").options(**options).load()

    def ticks(self) -> DataFrame:
        return clock_ticks(self._spark)


def clock_ticks(spark: SparkSession) -> DataFrame:
    """The wall-clock time, once a second."""
    # The batch's time is in the offset log, so a repeated batch gets the same time.
    rate = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    return rate.selectExpr("unix_millis(current_timestamp()) AS now_ms")


@dataclass(frozen=True)
class Read:
    """The input of one source of a query."""

    topics: tuple[str, ...]
    pattern: str | None
    reset: OffsetReset | None
    is_global: bool = False

    def merged_with(self, other: Read, *, even_apart: bool = False) -> Read | None:
        """One read that replaces two which share a topic, or any two with `even_apart`; None if they stay separate."""
        if (self.pattern, self.reset, self.is_global) != (other.pattern, other.reset, other.is_global):
            return None
        may_join = even_apart and not self.is_global
        if self != other and not may_join and not set(self.topics) & set(other.topics):
            return None
        return replace(self, topics=tuple(dict.fromkeys((*self.topics, *other.topics))))


def merged_reads(reads: Iterable[Read], *, even_apart: bool = False) -> list[Read]:
    """The reads that replace all these reads, such that no topic is in two of them."""
    sources: list[Read] = []
    for read in reads:
        apart: list[Read] = []
        for source in sources:
            both = source.merged_with(read, even_apart=even_apart)
            if both is None:
                apart.append(source)
            else:
                read = both
        sources = [*apart, read]
    return sources


class SharedReader:
    """Reads no topic twice: parts of a query whose topics overlap share one source, with one position per batch.

    With two sources, a batch could read further for one part than for the other, and no single offset would describe
    the application's progress.
    """

    def __init__(self, reader: Reader, wanted: Iterable[Read], *, even_apart: bool = False) -> None:
        """`wanted` is every read that will be requested; `even_apart` also joins reads without a common topic."""
        self._reader = reader
        self._reads = merged_reads(wanted, even_apart=even_apart)
        self._frames: dict[Read, DataFrame] = {}

    def records(
        self, topics: tuple[str, ...], pattern: str | None, reset: OffsetReset | None, *, is_global: bool
    ) -> DataFrame:
        from pyspark.sql import functions as f

        own = Read(topics, pattern, reset, is_global)
        read = next((read for read in self._reads if read.merged_with(own) == read), own)
        if read not in self._frames:
            self._frames[read] = self._reader.records(read.topics, pattern, reset, is_global=is_global)
        frame = self._frames[read]
        return frame if set(topics) == set(read.topics) else frame.where(f.col("topic").isin(*topics))

    def ticks(self) -> DataFrame:
        return self._reader.ticks()


def read_of(sources: Iterable[Source]) -> Read:
    """The read of sources that are all read with the same options."""
    first, *others = sources
    topics = (topic for source in (first, *others) for topic in source.topics)
    return Read(tuple(dict.fromkeys(topics)), first.topic_pattern, first.offset_reset)


def stage_reads(plan: Plan, stage: Stage) -> list[Read]:
    """The reads of a stage from outside the query."""
    return [_read_of_points(group) for group in _reads(_points(plan, stage))]


def source_rows(reader: Reader, plan: Plan, stage: Stage, *, bundled: bool = False) -> list[DataFrame]:
    """The rows that enter a stage from outside, in as few reads as possible; `bundled` for a stage with state."""
    frames = [_rows(reader, plan, stage, group) for group in _reads(_points(plan, stage))]
    if bundled and not stage.is_stateless:
        from moldau.pipeline.spark.hosted.bundling import bundled_records

        frames = [frame.mapInArrow(bundled_records, ddl(BUNDLES)) for frame in frames]
    if plan.needs_ticks and not stage.is_stateless:
        frames.append(_ticks(reader, stage))
    return frames


def _points(plan: Plan, stage: Stage) -> list[InputPoint]:
    sub_topologies = {sub_topology.index for sub_topology in stage.sub_topologies}
    return [
        point for point in plan.inputs if isinstance(point.node, Source) and sub_topologies & set(point.sub_topologies)
    ]


def _read_of_points(points: list[InputPoint]) -> Read:
    node = points[0].node
    assert isinstance(node, Source)
    topics = tuple(point.topic for point in points if point.topic is not None)
    return Read(topics, node.topic_pattern, node.offset_reset, points[0].is_global)


def _reads(points: Iterable[InputPoint]) -> list[list[InputPoint]]:
    """Points grouped by read: a pattern or a global table needs its own read."""
    groups: dict[object, list[InputPoint]] = {}
    for point in points:
        node = point.node
        assert isinstance(node, Source)
        alone = node.name if point.topic is None or isinstance(node, GlobalTableSource) else None
        groups.setdefault((alone, node.offset_reset), []).append(point)
    return list(groups.values())


def _rows(reader: Reader, plan: Plan, stage: Stage, points: list[InputPoint]) -> DataFrame:
    from pyspark.sql import functions as f

    read = _read_of_points(points)
    frame = reader.records(read.topics, read.pattern, read.reset, is_global=read.is_global)
    headers = f.expr(f"if(size(headers) > 0, headers, CAST(NULL AS {HEADERS_DDL}))")
    return frame.select(
        _slots(plan, stage, points).alias("slot"),
        _by_topic(points, [f.lit(point.index) for point in points]).alias("input"),
        f.col("partition"),
        f.col("offset"),
        f.expr("unix_millis(timestamp)").alias("timestamp"),
        (f.col("topic") if read.pattern is not None else f.lit(None).cast("string")).alias("topic"),
        f.col("key"),
        f.col("value"),
        headers.alias("headers"),
    )


def with_all_columns(rows: DataFrame, schema: pa.Schema) -> DataFrame:
    """Rows with all columns of a schema, in its order; missing columns are null."""
    return with_columns_of(rows, {name: rows[name] for name in rows.columns}, schema)


def with_columns_of(rows: DataFrame, known: Mapping[str, Column], schema: pa.Schema) -> DataFrame:
    """Rows with the columns of a schema: those in `known`, the others null."""
    from pyspark.sql import functions as f

    types = dict(one.split(" ") for one in ddl(schema).split(", "))
    return rows.select(*(known.get(name, f.lit(None).cast(types[name])).alias(name) for name in schema.names))


def _slots(plan: Plan, stage: Stage, points: list[InputPoint]) -> Column:
    """The slot of each row's task; a global table's rows go to all tasks that use the table."""
    from pyspark.sql import functions as f

    if stage.is_stateless:
        return f.lit(0)
    if points[0].is_global:
        sub_topologies = set(points[0].sub_topologies)
        found = {slot for unit, slot in stage.slot_of.items() if unit.sub_topology in sub_topologies}
        return f.explode(f.array(*map(f.lit, sorted(found))))
    return _by_topic(points, [_slot_of_partition(plan, stage, point) for point in points])


def _slot_of_partition(plan: Plan, stage: Stage, point: InputPoint) -> Column:
    from pyspark.sql import functions as f

    (sub_topology,) = point.sub_topologies
    count = task_count(next(one for one in stage.sub_topologies if one.index == sub_topology).inputs, plan.counts)
    slots = f.array(*(f.lit(stage.slot_of[Unit(sub_topology, partition)]) for partition in range(count)))
    grown = f.concat(
        f.lit("moldau: topic "),
        f.col("topic"),
        f.lit(f" has got more partitions than the {count} it had when the pipeline was made; start it anew"),
    )
    return f.coalesce(f.try_element_at(slots, f.col("partition") + 1), f.raise_error(grown).cast("int"))


def _by_topic(points: list[InputPoint], columns: list[Column]) -> Column:
    """The only column if there is one topic, else the column for each row's topic."""
    from pyspark.sql import functions as f

    if len(points) == 1:
        return columns[0]
    conditions = [f.col("topic").eqNullSafe(f.lit(point.topic)) for point in points]
    chosen = f.when(conditions[0], columns[0])
    rest = zip(conditions[1:], columns[1:], strict=True)
    return reduce(lambda so_far, pair: so_far.when(*pair), rest, chosen)


def _ticks(reader: Reader, stage: Stage) -> DataFrame:
    from pyspark.sql import functions as f

    slots = f.array(*map(f.lit, sorted(stage.units)))
    known = {"slot": f.explode(slots), "input": f.lit(TICK), "offset": f.col("now_ms")}
    return with_columns_of(reader.ticks(), known, BUNDLES)
