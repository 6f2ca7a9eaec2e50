"""Lowers a whole query of SQL for Spark's real-time mode: expressions, and at most one native aggregation.

No Python runs in that mode, and nothing beside the one operator with state. A record that Spark would compute
differently from Python, an odd one, is therefore not processed: it goes to the processing log. Behind an aggregation
odd records travel as a group of their own for each partition, whose every change is one of them. Start at
`sql_realtime_frame`; `sql_realtime_reason` is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.formats.row_serde import RowSerde
from moldau.pipeline.cores.processing_log_output import PROCESSING_LOG
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import AggregatedRow, RowAggregates, RowCondition, RowSteps, RowWithKey, SelectRow
from moldau.pipeline.ir.sql.expressions import SqlExpression
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ir.windows import TimeWindow
from moldau.pipeline.spark.native.sql.aggregates import aggregate_reason, folding, results
from moldau.pipeline.spark.native.sql.checks import expression_reason
from moldau.pipeline.spark.native.sql.expressions import any_of, lower
from moldau.pipeline.spark.native.sql.formats import format_reason, writer
from moldau.pipeline.spark.native.sql.lowering import Flow, SqlLowering, all_of, sql_reason
from moldau.pipeline.spark.plan import OutputPoint
from moldau.pipeline.spark.rows import HEADERS_DDL
from moldau.pipeline.spark.sources import Reader
from moldau.serdes.serde import Serde
from moldau.serdes.windowed import TimeWindowedSerde

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["sql_realtime_frame", "sql_realtime_reason"]

DAY_MS = 24 * 3600 * 1000
_KEY_TYPES = "STRING, INTEGER or BIGINT"


# --- what can be lowered: pure ---------------------------------------------------------------------------------


def sql_realtime_reason(topology: Topology, settings: TaskSettings) -> tuple[ir.Node, str] | None:
    """The node because of which a query cannot run in real-time mode, and why; None if it can."""
    if len(topology.sources) != 1:
        return topology.sources[-1], "real-time mode reads one stream; joins are kept by Python"
    if settings.dead_letter_topic is not None or settings.timestamps is not None:
        return topology.sources[0], "timestamp extractors and dead letters are Python's"
    aggregates = [node for node in topology.nodes if isinstance(node, ir.Aggregate)]
    if len(aggregates) > 1:
        return aggregates[1], "real-time mode has one step with state, and this would be a second"
    is_behind = False
    for node in topology.nodes:
        if isinstance(node, ir.Aggregate):
            reason, is_behind = _aggregate_reason(node), True
        elif is_behind:
            reason = _following_reason(node)
        elif isinstance(node, ir.Repartition):
            reason = None if aggregates else "Spark does not know which partition Kafka would choose for a key"
        else:
            reason = sql_reason(node)
        if reason is not None:
            return node, reason
    return None


def _aggregate_reason(node: ir.Aggregate) -> str | None:
    if not isinstance(node.aggregator, RowAggregates):
        return "is not of SQL"
    if node.window is not None and not isinstance(node.window, TimeWindow):
        return "of all windows only tumbling and hopping ones are Spark's own"
    if node.emit is not ir.EmitStrategy.ON_UPDATE:
        return "results at the close of a window need the stream time of each partition"
    return aggregate_reason(node.aggregator)


def _following_reason(node: ir.Node) -> str | None:
    match node:
        case ir.ToStream(selector=None):
            return None
        case ir.TableFilter(predicate=RowCondition(condition=condition), is_negated=False):
            return expression_reason(condition) or _failing_reason([condition])
        case ir.TableMapValues(mapper=RowSteps(steps=steps)):
            selected = [one.expression for step in steps if isinstance(step, SelectRow) for one in step.columns]
            reasons = (expression_reason(one) for one in selected)
            return next((reason for reason in reasons if reason is not None), None) or _failing_reason(selected)
        case ir.Sink():
            key = node.key_serde
            inner = key.inner if isinstance(key, TimeWindowedSerde) else key
            reason = format_reason(inner, is_key=True) or format_reason(node.value_serde, is_key=False)
            return reason and f"{reason}; a key of one {_KEY_TYPES} column in format KAFKA has a native form"
        case _:
            return "is computed by Python"


def _failing_reason(expressions: Sequence[SqlExpression]) -> str | None:
    """Behind the aggregation nobody is left to process a row on which an expression fails."""
    from moldau.pipeline.cores.sql.emitter import can_fail

    if any(can_fail(one) for one in expressions):
        return "an expression over results may fail, and no Python is there to log it"
    return None


# --- lowering --------------------------------------------------------------------------------------------------


def sql_realtime_frame(
    topology: Topology, settings: TaskSettings, outputs: Sequence[OutputPoint], *, reader: Reader
) -> DataFrame:
    """The records to write, each with its topic; only for queries that `sql_realtime_reason` lets pass."""
    return _Realtime(topology, settings, outputs).frame(reader)


class _Realtime:
    def __init__(self, topology: Topology, settings: TaskSettings, outputs: Sequence[OutputPoint]) -> None:
        self._topology = topology
        self._settings = settings
        self._numbers = {point.name: point.index for point in outputs}
        self._lowering = SqlLowering(topology, outputs)
        (self._sink,) = topology.sinks
        self._aggregate = next((node for node in topology.nodes if isinstance(node, ir.Aggregate)), None)

    def frame(self, reader: Reader) -> DataFrame:
        from pyspark.sql import functions as f

        rows, source = self._lowering.read(reader)
        if self._aggregate is None:
            flow = self._lowering.flow(self._sink.input, source)
            odd = _is_odd(flow)
            written = self._written(flow, f.col("timestamp"))
            normal = f.when(all_of(flow.conditions), written) if flow.conditions else written
            log = self._log_record(f.col("value"), f.col("timestamp"))
        else:
            rows = self._changes(rows, source, self._aggregate)
            flow = self._results(self._aggregate)
            odd = f.col("odd")
            normal = self._written(self._follow_change(self._sink.input, flow), f.col("timestamp"))
            log = self._log_record(f.col("odd_record.value"), f.col("odd_record.timestamp"))
        chosen = f.when(~odd, f.array(normal))
        if self._settings.processing_log_topic is not None:
            chosen = chosen.otherwise(f.array(log))
        made = rows.select(f.explode(chosen).alias("row")).select("row.*")
        return made.where(f.col("output").isNotNull())

    # --- the aggregation

    def _changes(self, rows: DataFrame, source: Flow, node: ir.Aggregate) -> DataFrame:
        """The changes of all groups: the columns of the key, the window, and the folded columns."""
        from pyspark.sql import functions as f

        assert isinstance(node.aggregator, RowAggregates)
        before = node.input.input if isinstance(node.input, ir.Repartition) else node.input
        flow = self._lowering.flow(before, source)
        made = [lower(argument, flow.row) for call in node.aggregator.calls for argument in call.arguments]
        flow = flow.odd_when(any_of(one.fails for one in made))
        odd = _is_odd(flow)
        goes = ~flow.key_is_null & ~flow.row_is_null
        holds = f.coalesce(all_of((*flow.conditions, goes)), f.lit(False))
        keys = [f.when(~odd, column).alias(f"key{place}") for place, column in enumerate(flow.key or ())]
        arguments = [f.when(~odd, one.value).alias(f"argument{place}") for place, one in enumerate(made)]
        record = f.struct("value", f.col("timestamp").alias("timestamp"), "offset")
        columns = [
            odd.alias("odd"),
            f.when(odd, f.col("partition")).otherwise(f.lit(-1)).alias("odd_partition"),
            *keys,
            *arguments,
            flow.timestamp.alias("timestamp"),
            f.when(odd, record).alias("odd_record"),
            f.when(odd, f.col("offset")).alias("odd_offset"),
        ]
        windows = [
            f.struct(*columns, start.alias("start"), end.alias("end")) for start, end in _windows(node, flow.timestamp)
        ]
        goes_on = f.when(odd, f.array(windows[0])).when(holds, f.array(*windows))
        records = rows.select(f.explode(goes_on).alias("row")).select("row.*")
        names = ["odd", "odd_partition", *(f"key{place}" for place in range(len(flow.key or ()))), "start"]
        if isinstance(node.window, TimeWindow):
            late_ms = max(DAY_MS, node.table.retention_ms or 0, node.window.size_ms + node.window.grace_ms)
            end = f.timestamp_millis(f.col("end"))
            records = records.where("odd OR (start >= 0 AND end > timestamp)").withColumn("end", end)
            records = records.withWatermark("end", f"{late_ms} milliseconds")
            names.append("end")
        folded = folding(node.aggregator.calls, [f"argument{place}" for place in range(len(made))])
        # Each record is a change, and the latest of a partition has the largest offset.
        latest = f.max_by("odd_record", "odd_offset").alias("odd_record")
        return records.groupBy(*names).agg(*folded, f.max("timestamp").alias("timestamp"), latest)

    def _results(self, node: ir.Aggregate) -> Flow:
        from pyspark.sql import functions as f

        assert isinstance(node.aggregator, RowAggregates)
        width = len(_key_columns(node))
        keys = tuple(f.col(f"key{place}") for place in range(width))
        no = f.lit(False)
        return Flow(keys, no, tuple(results(node.aggregator.calls)), no, f.col("timestamp"))

    def _follow_change(self, node: ir.Node, flow: Flow) -> Flow:
        """A change when it leaves a node behind the aggregation."""
        from pyspark.sql import functions as f

        if node is self._aggregate:
            return flow
        assert isinstance(node, ir.OneInput)
        flow = self._follow_change(node.input, flow)
        match node:
            case ir.TableMapValues(mapper=RowSteps(steps=steps)):
                for step in steps:
                    flow = self._mapped(step, flow)
                return flow
            case ir.TableFilter(predicate=RowCondition(condition=condition)):
                holds = f.coalesce(lower(condition, flow.row).value, f.lit(False))
                return replace(flow, row_is_null=flow.row_is_null | ~holds)
            case _:
                return flow

    def _mapped(self, step: object, flow: Flow) -> Flow:
        match step:
            case AggregatedRow():
                return flow  # The results are columns already.
            case RowWithKey(has_window=has_window):
                bounds = self._bounds() if has_window else ()
                return replace(flow, row=(*flow.row, *(flow.key or ()), *bounds))
            case SelectRow(columns=columns):
                return replace(flow, row=tuple(lower(one.expression, flow.row).value for one in columns))
            case _:
                raise AssertionError(f"{step} was not checked")

    def _bounds(self) -> tuple[Column, Column]:
        from pyspark.sql import functions as f

        assert self._aggregate is not None
        assert isinstance(self._aggregate.window, TimeWindow)
        start = f.col("start")
        return start, start + f.lit(self._aggregate.window.size_ms)

    # --- records

    def _written(self, flow: Flow, timestamp: Column) -> Column:
        from pyspark.sql import functions as f

        sink = self._sink
        assert isinstance(sink.value_serde, RowSerde)
        # Texts that Java writes in another way mean the same.
        value, _ = writer(sink.value_serde, flow.row)
        return self._struct(
            self._numbers[sink.name],
            str(sink.topic),
            f.when(~flow.key_is_null, _key_bytes(sink.key_serde, flow.key or ())),
            f.when(~flow.row_is_null, value),
            timestamp,
            f.lit(None).cast(HEADERS_DDL) if self._aggregate is not None else f.col("headers"),
        )

    @staticmethod
    def _struct(  # noqa: PLR0917  (the columns of a record, in their order)
        output: int, topic: str, key: Column, value: Column, timestamp: Column, headers: Column
    ) -> Column:
        from pyspark.sql import functions as f

        return f.struct(
            f.lit(output).alias("output"),
            f.lit(topic).alias("topic"),
            key.alias("key"),
            value.alias("value"),
            timestamp.alias("timestamp"),
            headers.alias("headers"),
            f.lit(None).cast("int").alias("partition"),
        )

    def _log_record(self, data: Column, timestamp: Column) -> Column:
        from pyspark.sql import functions as f

        source = self._topology.sources[0]
        error = f.struct(
            f.lit("value").alias("target"),
            f.lit(_NOT_PROCESSED).alias("errorMessage"),
            f.base64(f.substring(data, 1, 1000)).alias("recordB64"),
            f.array().cast("array<string>").alias("cause"),
            f.lit(source.topics[0]).alias("topic"),
        )
        entry = f.struct(
            f.lit("ERROR").alias("level"),
            f.lit(f"processing.{self._settings.application_id}.{source.name}").alias("logger"),
            timestamp.alias("time"),
            f.struct(f.lit(0).alias("type"), error.alias("deserializationError")).alias("message"),
        )
        return self._struct(
            self._numbers.get(PROCESSING_LOG, 0),
            str(self._settings.processing_log_topic),
            f.lit(None).cast("binary"),
            f.to_json(entry, {"ignoreNullFields": "false"}).cast("binary"),
            timestamp,
            f.lit(None).cast(HEADERS_DDL),
        )


_NOT_PROCESSED = (
    "this record is not processed in real-time mode: it is not as the columns of the source say, or an expression has "
    "no value for it; leave moldau.latency out for micro-batches, which process it"
)


def _is_odd(flow: Flow) -> Column:
    from pyspark.sql import functions as f

    odd = any_of([f.coalesce(one, f.lit(True)) for one in flow.odd])
    assert odd is not None, "a record with a time before 1970 is always odd"
    return odd


def _key_columns(node: ir.Aggregate) -> tuple[object, ...]:
    serde = node.table.key_serde
    columns: tuple[object, ...] = serde.columns  # type: ignore[attr-defined]
    return columns


def _windows(node: ir.Aggregate, timestamp: Column) -> Iterator[tuple[Column, Column]]:
    """The windows that a record may be in; those that it is not in are left out later."""
    from pyspark.sql import functions as f

    window = node.window
    if not isinstance(window, TimeWindow):
        yield f.lit(0).cast("bigint"), f.lit(0).cast("bigint")
        return
    last = timestamp - timestamp % f.lit(window.advance_ms)
    for earlier_ms in range(0, window.size_ms, window.advance_ms):
        start = last - f.lit(earlier_ms)
        yield start, start + f.lit(window.size_ms)


def _key_bytes(serde: Serde, key: Sequence[Column]) -> Column:
    from pyspark.sql import functions as f

    if isinstance(serde, TimeWindowedSerde):
        start = f.unhex(f.lpad(f.hex(f.col("start")), 16, "0"))
        return f.concat(_key_bytes(serde.inner, key), start)
    assert isinstance(serde, RowSerde)
    return writer(serde, key)[0]
