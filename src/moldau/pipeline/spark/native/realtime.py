"""Lowers a whole topology for Spark's real-time mode: expressions, and any number of native aggregations.

Spark allows one operator with state in such a query, and nothing beside it. So each record becomes one row for each
aggregation (and window) that takes it and for each sink without an aggregation, one `groupBy` folds all of them or lets
them pass, and each change becomes one row for each sink behind its aggregation. Every change is emitted, as Kafka
Streams does without caching. The changes of a store that can be queried go to its changelog topic, from which
`pipeline.runtime` reads them: no batch passes through the driver.
Start at `realtime_frame`; `realtime_refusal` tells which topologies can be lowered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ir.windows import TimeWindow
from moldau.pipeline.spark.native.aggregates import NativeAggregate, native_aggregate
from moldau.pipeline.spark.native.checks import NativeRefusalError, node_refusal
from moldau.pipeline.spark.native.lowering import Lowering, ToFold, exploded, folded_value, folding_columns
from moldau.pipeline.spark.native.sql.lowering import is_sql
from moldau.pipeline.spark.native.sql.realtime import sql_realtime_frame, sql_realtime_reason
from moldau.pipeline.spark.plan import OutputPoint, store_output
from moldau.pipeline.spark.rows import HEADERS_DDL
from moldau.pipeline.spark.sections import Section, changelog_topic
from moldau.pipeline.spark.sources import Reader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["LATE_MS", "realtime_aggregates", "realtime_frame", "realtime_refusal"]

LATE_MS = 24 * 3600 * 1000
"""How long after its end a window takes records at the least. Spark knows one time for all partitions: a smaller limit
would lose records of a partition that is read later than the others."""

_FOLLOWING = (ir.ToStream, ir.Filter, ir.Map, ir.MapValues, ir.SelectKey, ir.Split, ir.BranchOutput, ir.Sink)


def realtime_aggregates(topology: Topology) -> list[ir.Aggregate]:
    """The aggregations of a topology, in order."""
    return [node for node in topology.nodes if isinstance(node, ir.Aggregate)]


def realtime_refusal(topology: Topology, settings: TaskSettings) -> NativeRefusalError | None:
    """Why a topology cannot run in real-time mode; None if its expressions can all be lowered."""
    if any(map(is_sql, topology.sources)):
        found = sql_realtime_reason(topology, settings)
        return None if found is None else NativeRefusalError(*found)
    if topology.global_tables:
        return NativeRefusalError(topology.global_tables[0], "a global table is kept by Python only")
    aggregates = realtime_aggregates(topology)
    for node in topology.nodes:
        if isinstance(node, ir.Aggregate):
            refusal = _aggregate_refusal(node)
        else:
            refusal = node_refusal(node, settings) or _place_refusal(node)
        if refusal is not None:
            return refusal
    return _mix_refusal(topology, aggregates)


def _aggregate_refusal(node: ir.Aggregate) -> NativeRefusalError | None:
    if node.window is not None and not isinstance(node.window, TimeWindow):
        return NativeRefusalError(node, "of all windows only tumbling and hopping ones are Spark's own")
    if node.emit is not ir.EmitStrategy.ON_UPDATE:
        return NativeRefusalError(node, "results at the close of a window need the stream time of each partition")
    if native_aggregate(node) is None:
        return NativeRefusalError(node, "only counts, and sums, minima and maxima as expressions, are Spark's own")
    return None


def _place_refusal(node: ir.Node) -> NativeRefusalError | None:
    """Why a node cannot be where it is: before an aggregation, or behind one."""
    if _follows_aggregate(node):
        if not isinstance(node, _FOLLOWING):
            return NativeRefusalError(node, "real-time mode has one step with state, and nothing joins its changes")
    elif isinstance(node, ir.Sink) and (repartition := _repartition_before(node)) is not None:
        return NativeRefusalError(repartition, "Spark does not know which partition Kafka would choose for a key")
    return None


def _repartition_before(node: ir.Node) -> ir.Node | None:
    if isinstance(node, ir.Repartition):
        return node
    return next(filter(None, map(_repartition_before, ir.inputs_of(node))), None)


def _follows_aggregate(node: ir.Node) -> bool:
    return any(isinstance(each, ir.Aggregate) or _follows_aggregate(each) for each in ir.inputs_of(node))


def _mix_refusal(topology: Topology, aggregates: list[ir.Aggregate]) -> NativeRefusalError | None:
    readings = {(source.topic_pattern, source.offset_reset) for source in topology.sources}
    if len(readings) > 1:
        return NativeRefusalError(topology.sources[1], "its sources differ in how they are read")
    for node in aggregates:
        if _follows_aggregate(node):
            return NativeRefusalError(node, "real-time mode has one step with state, and this would be a second")
    return None


_Output = tuple[tuple["Column", ...], list["Column"]]
"""The conditions under which a record leaves by an output, and its columns."""


@dataclass(frozen=True)
class _Folding:
    """One aggregation among others in one `groupBy`."""

    number: int
    node: ir.Aggregate
    fold: NativeAggregate
    lowering: Lowering

    @property
    def prefix(self) -> str:
        return f"fold{self.number}_"


def realtime_frame(
    topology: Topology, settings: TaskSettings, outputs: Sequence[OutputPoint], *, reader: Reader
) -> DataFrame:
    """The records to write, each with its topic; raises `NativeRefusalError` if an expression has no native form."""
    refusal = realtime_refusal(topology, settings)
    if refusal is not None:
        raise refusal
    if any(map(is_sql, topology.sources)):
        return sql_realtime_frame(topology, settings, outputs, reader=reader)
    numbers = {point.name: point.index for point in outputs}
    topics = {point.name: point.topic for point in outputs if point.topic is not None}
    whole = Lowering(Section(topology), settings, numbers)
    rows = whole.rows(reader, None)
    aggregates = realtime_aggregates(topology)
    if not aggregates:
        return _with_topics(whole.frame(rows), numbers, topics)
    foldings = [
        _Folding(number, node, _fold(node), Lowering(Section(topology, node), settings, numbers))
        for number, node in enumerate(aggregates)
    ]
    plain = [sink for sink in topology.sinks if not _follows_aggregate(sink)]
    passing = [output for sink in plain for output in whole.sink_outputs(sink)]
    changes = _fold_all(rows, foldings, passing)
    topics |= {
        store_output(one.node.table.store): settings.internal_topic(changelog_topic(one.node)) for one in foldings
    }
    leaving = [*_outputs(topology, foldings), *_passing_outputs(foldings, passing)]
    return _with_topics(exploded(changes, leaving), numbers, topics)


def _fold(node: ir.Aggregate) -> NativeAggregate:
    fold = native_aggregate(node)
    assert fold is not None
    return fold


def _with_topics(rows: DataFrame, numbers: Mapping[str, int], topics: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions as f

    known = {number: topics.get(name) for name, number in numbers.items()}
    names = f.array(*(f.lit(known.get(number)).cast("string") for number in range(max(known) + 1)))
    return rows.withColumn("topic", f.coalesce("topic", f.element_at(names, f.col("output") + 1)))


# --- one groupBy for all aggregations --------------------------------------------------------------------------


def _fold_all(rows: DataFrame, foldings: list[_Folding], passing: Sequence[_Output]) -> DataFrame:
    """The changes of all aggregations: their number, key, window and folded columns; and records that pass through."""
    from pyspark.sql import functions as f

    nothing = _nothing_passes() if passing else []
    candidates = [
        (conditions, [*columns, *nothing])
        for folding in foldings
        for conditions, columns in _candidates(folding, foldings)
    ]
    candidates += [_passing_candidate(number, foldings, output) for number, output in enumerate(passing)]
    records = exploded(rows, candidates)
    keys = ["number", "key", "start"]
    if any(folding.node.window is not None for folding in foldings):
        # State is forgotten by the end of the window, which for the longest windows is latest. A key without a window
        # has no end beside those that have one: Spark never finds it late, and never forgets it.
        late_ms = max([LATE_MS, *(folding.node.table.retention_ms or 0 for folding in foldings)])
        records = records.withColumn("end", f.timestamp_millis(f.col("end"))).withWatermark(
            "end", f"{late_ms} milliseconds"
        )
        keys.append("end")
    columns = [column for folding in foldings for column in folding_columns(folding.fold, folding.prefix)]
    columns += [f.last(name).alias(name) for name in _PASSED] if passing else []
    changes = records.groupBy(*keys).agg(*columns, f.max("timestamp").alias("timestamp"))
    return changes.withColumn("headers", f.lit(None).cast(HEADERS_DDL))


def _candidates(folding: _Folding, foldings: list[_Folding]) -> Iterator[tuple[tuple[Column, ...], list[Column]]]:
    """A row for each way by which a record may reach an aggregation, and for each window that it may be in."""
    node, lowering = folding.node, folding.lowering
    is_beside_windows = any(other.node.window is not None for other in foldings)
    for flow in lowering.flows(node.input):
        record = lowering.to_fold(node, folding.fold, flow)
        for conditions, start, end in _windows(node.window, is_beside_windows=is_beside_windows):
            columns = _record_columns(folding, foldings, record, start, end)
            yield (*record.conditions, *conditions), columns


def _windows(window: object, *, is_beside_windows: bool) -> Iterator[tuple[tuple[Column, ...], Column, Column]]:
    """The conditions under which a record is in a window, with the window's start and end."""
    from pyspark.sql import functions as f

    if not isinstance(window, TimeWindow):
        yield (), f.lit(0).cast("bigint"), f.lit(None if is_beside_windows else 0).cast("bigint")
        return
    timestamp = f.col("timestamp")
    last = timestamp - timestamp % f.lit(window.advance_ms)
    for earlier_ms in range(0, window.size_ms, window.advance_ms):
        start = last - f.lit(earlier_ms)
        conditions = () if earlier_ms == 0 else (start >= 0, start + f.lit(window.size_ms) > timestamp)
        yield conditions, start, start + f.lit(window.size_ms)


def _record_columns(
    folding: _Folding, foldings: list[_Folding], record: ToFold, start: Column, end: Column
) -> list[Column]:
    from pyspark.sql import functions as f

    columns = [f.lit(folding.number).alias("number"), record.key.alias("key"), start.alias("start"), end.alias("end")]
    columns.append(f.col("timestamp").alias("timestamp"))
    for other in foldings:
        for number in range(len(other.fold.parts)):
            value = record.values[number] if other is folding else f.lit(None)
            columns.append(value.cast("bigint").alias(f"{other.prefix}{number}"))
    return columns


# --- records that go to a sink without an aggregation -----------------------------------------------------------

_PASSED: Mapping[str, str] = {"passed_key": "binary", "passed_value": "binary", "passed_headers": HEADERS_DDL}
"""Records that only pass through the `groupBy`: every one is emitted, as the last of a group of which few are kept."""

_PASSAGES = 64


def _nothing_passes() -> list[Column]:
    from pyspark.sql import functions as f

    return [f.lit(None).cast(kind).alias(name) for name, kind in _PASSED.items()]


def _passing_candidate(number: int, foldings: list[_Folding], output: _Output) -> _Output:
    from pyspark.sql import functions as f

    conditions, (_, _, key, value, _, headers, _) = output
    passage = f.pmod(f.hash(key), f.lit(_PASSAGES))
    ((_, start, end),) = _windows(None, is_beside_windows=any(one.node.window is not None for one in foldings))
    columns = [
        f.lit(len(foldings) + number).alias("number"),
        f.unhex(f.lpad(f.hex(passage), 2, "0")).alias("key"),
        start.alias("start"),
        end.alias("end"),
        f.col("timestamp").alias("timestamp"),
    ]
    for folding in foldings:
        columns += [
            f.lit(None).cast("bigint").alias(f"{folding.prefix}{part}") for part in range(len(folding.fold.parts))
        ]
    passed = zip((key, value, headers), _PASSED.items(), strict=True)
    return conditions, [*columns, *(column.cast(kind).alias(name) for column, (name, kind) in passed)]


def _passing_outputs(foldings: list[_Folding], passing: Sequence[_Output]) -> Iterator[_Output]:
    from pyspark.sql import functions as f

    for number, (_, columns) in enumerate(passing):
        output, topic, _, _, timestamp, _, partition = columns
        key, value, headers = (f.col(name).alias(name.removeprefix("passed_")) for name in _PASSED)
        yield (
            (f.col("number") == f.lit(len(foldings) + number),),
            [output, topic, key, value, timestamp, headers, partition],
        )


# --- from changes to records -----------------------------------------------------------------------------------


def _outputs(topology: Topology, foldings: list[_Folding]) -> Iterator[tuple[tuple[Column, ...], list[Column]]]:
    from pyspark.sql import functions as f

    for folding in foldings:
        is_own = f.col("number") == f.lit(folding.number)
        value = folded_value(folding.fold, folding.prefix)
        lowering = folding.lowering.with_result(value, _start_bytes() if folding.node.window is not None else None)
        for sink in topology.sinks:
            if _comes_from(sink, folding.node):
                for conditions, columns in lowering.sink_outputs(sink):
                    yield (is_own, *conditions), columns
        for conditions, columns in lowering.store_outputs(folding.node, headers=_time_header()):
            yield (is_own, *conditions), columns


def _comes_from(node: ir.Node, aggregate: ir.Aggregate) -> bool:
    return node is aggregate or any(_comes_from(each, aggregate) for each in ir.inputs_of(node))


def _start_bytes() -> Column:
    """The start of the window as it ends a windowed key."""
    from pyspark.sql import functions as f

    return f.unhex(f.lpad(f.hex(f.col("start")), 16, "0"))


def _time_header() -> Column:
    """The time of a change: Spark's sink gives a record the time at which it is written."""
    from pyspark.sql import functions as f

    time = f.unhex(f.lpad(f.hex(f.col("timestamp")), 16, "0"))
    return f.array(f.struct(f.lit("timestamp").alias("key"), time.alias("value")))
