"""Lowers a section of SQL over rows: from topic to topic, each record as columns.

The path of a record is followed from its source: the conditions under which it goes on, its key, its row, its time, and
whether it is *odd*, which means that Python has to process it. An odd record leaves as it was read (`odd_output` in
`spark.odd_rows`), in its place among the others, and the driver processes it. Start at `SqlLowering`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from moldau.formats.row_serde import RowSerde
from moldau.formats.types import BIGINT, TIMESTAMP
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_functions import (
    KeyOfRow,
    RowCondition,
    RowFunction,
    RowSteps,
    RowTimestamp,
    SelectRow,
)
from moldau.pipeline.ir.row_nodes import AddRecordColumns, SetTimestamp
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.native.sql.checks import expression_reason
from moldau.pipeline.spark.native.sql.expressions import any_of, lower
from moldau.pipeline.spark.native.sql.formats import format_reason, reader, writer
from moldau.pipeline.spark.plan import OutputPoint
from moldau.pipeline.spark.rows import HEADERS_DDL
from moldau.pipeline.spark.sources import Reader, read_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ODD", "Flow", "SqlLowering", "all_of", "is_sql", "sql_reason"]

ODD = -1
"""The first of the outputs for records that Python has to process; those of other sections are below."""


# --- what can be lowered: pure ---------------------------------------------------------------------------------


def is_sql(node: ir.Node) -> bool:
    """Whether a node works on typed rows."""
    match node:
        case AddRecordColumns() | SetTimestamp():
            return True
        case ir.Source() | ir.Sink():
            return isinstance(node.value_serde, RowSerde)
        case ir.Filter() | ir.TableFilter():
            return isinstance(node.predicate, RowFunction)
        case ir.MapValues() | ir.TableMapValues() | ir.FlatMapValues():
            return isinstance(node.mapper, RowFunction)
        case ir.SelectKey():
            return isinstance(node.selector, RowFunction)
        case _:
            return False


def sql_reason(node: ir.Node) -> str | None:
    """Why a node of SQL over rows needs Python; None if it has a native form."""
    match node:
        case ir.StreamSource():
            return _source_reason(node)
        case AddRecordColumns():
            return "columns of headers are read by Python" if node.headers or node.has_window else None
        case SetTimestamp():
            return _timestamp_reason(node.timestamp)
        case ir.Filter() | ir.TableFilter():
            return _function_reason(node.predicate) if not node.is_negated else "is not of SQL"
        case ir.MapValues() | ir.TableMapValues():
            return _function_reason(node.mapper)
        case ir.SelectKey():
            return _function_reason(node.selector)
        case ir.Sink():
            if node.topic is None or node.partitioner is not None:
                return "the topic or partition of each record is chosen by Python"
            return format_reason(node.key_serde, is_key=True) or format_reason(node.value_serde, is_key=False)
        case _:
            return "runs in Python only"


def _source_reason(node: ir.StreamSource) -> str | None:
    if node.topic_pattern is not None:
        return "topics by pattern are read by Python"
    if node.timestamps is not None:
        if not isinstance(node.timestamps, RowTimestamp):
            return "a timestamp extractor is a Python function"
        if (reason := _timestamp_reason(node.timestamps)) is not None:
            return reason
    return format_reason(node.key_serde, is_key=True) or format_reason(node.value_serde, is_key=False)


def _timestamp_reason(timestamp: RowTimestamp) -> str | None:
    if timestamp.type not in (BIGINT, TIMESTAMP) or timestamp.pattern is not None or timestamp.is_in_key:
        return "a time that is a text, or in the key, is read by Python"
    return "a time without which the query ends is read by Python" if timestamp.is_strict else None


def _function_reason(function: object) -> str | None:
    match function:
        case RowCondition():
            return expression_reason(function.condition)
        case SelectRow():
            reasons = (expression_reason(one.expression) for one in function.columns)
            return next((reason for reason in reasons if reason is not None), None)
        case KeyOfRow():
            reasons = (expression_reason(one.expression) for one in function.columns)
            return next((reason for reason in reasons if reason is not None), None)
        case RowSteps():
            return next((reason for step in function.steps if (reason := _function_reason(step)) is not None), None)
        case RowFunction():
            return f"{type(function).__name__} is computed by Python"
        case _:
            return "calls a Python function"


# --- lowering --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flow:
    """A record at one node."""

    key: tuple[Column, ...] | None
    """The columns of the key; None if the key is always null."""
    key_is_null: Column
    row: tuple[Column, ...]
    row_is_null: Column
    timestamp: Column
    conditions: tuple[Column, ...] = ()
    odd: tuple[Column, ...] = ()

    def when(self, condition: Column) -> Flow:
        return replace(self, conditions=(*self.conditions, condition))

    def odd_when(self, condition: Column | None) -> Flow:
        """The record is left to Python if it has come here and the condition holds."""
        if condition is None:
            return self
        return replace(self, odd=(*self.odd, all_of((*self.conditions, condition))))


def all_of(conditions: Sequence[Column]) -> Column:
    """Whether all of the conditions hold, of which there is at least one."""
    return reduce(lambda one, other: one & other, conditions)


class SqlLowering:
    """The lowering of sinks behind expressions; all paths begin at one source."""

    def __init__(self, topology: Topology, outputs: Sequence[OutputPoint], odd_output: int = ODD) -> None:
        """`odd_output` is the number of the output by which records leave that Python has to process."""
        self._topology = topology
        self._odd_output = odd_output
        self._numbers: Mapping[str, int] = {point.name: point.index for point in outputs}

    def frame(self, records: Reader) -> DataFrame:
        """The rows that leave the section."""
        from pyspark.sql import functions as f

        rows, flow = self.read(records)
        sinks = self._topology.sinks
        written = [self._written(sink, self.flow(sink.input, flow)) for sink in sinks]
        odd = any_of([f.coalesce(one, f.lit(True)) for end, _ in written for one in end.odd])
        assert odd is not None, "a record with a time before 1970 is always odd"
        normal = [f.when(all_of(end.conditions), whole) if end.conditions else whole for end, whole in written]
        reached = f.array(*normal) if len(normal) == 1 else f.filter(f.array(*normal), lambda one: one.isNotNull())
        chosen = f.when(odd, f.array(self._odd_record())).otherwise(reached)
        made = rows.select(f.explode(chosen).alias("row")).select("row.*")
        return made.where(f.col("output").isNotNull()) if len(normal) == 1 else made

    def read(self, records: Reader) -> tuple[DataFrame, Flow]:
        """The records of the source as rows, and as what they are at the source."""
        from pyspark.sql import functions as f

        (source,) = self._topology.sources
        assert isinstance(source.key_serde, RowSerde)
        assert isinstance(source.value_serde, RowSerde)
        read = read_of([source])
        frame = records.records(read.topics, read.pattern, read.reset, is_global=False)
        headers = f.expr(f"if(size(headers) > 0, headers, CAST(NULL AS {HEADERS_DDL}))").alias("headers")
        rows = frame.select(
            "key", "value", "partition", "offset", f.expr("unix_millis(timestamp)").alias("timestamp"), headers
        )
        rows, key = reader(rows, source.key_serde, "key", "key_")
        rows, value = reader(rows, source.value_serde, "value", "value_")
        time = f.col("timestamp")
        flow = Flow(key.columns or None, f.col("key").isNull(), value.columns, f.col("value").isNull(), time).odd_when(
            any_of([key.odd, value.odd, time < 0])
        )
        if isinstance(source.timestamps, RowTimestamp):
            flow = _with_time(flow, source.timestamps)
        return rows, flow

    def flow(self, node: ir.Node, source: Flow) -> Flow:
        """A record when it leaves a node."""
        match node:
            case ir.StreamSource():
                return source
            case ir.OneInput():
                return self._step(node, self.flow(node.input, source))
            case _:
                raise AssertionError(f"{node.name} was not checked")

    def _step(self, node: ir.OneInput, flow: Flow) -> Flow:
        match node:
            case AddRecordColumns():
                return _with_record_columns(node, flow)
            case SetTimestamp():
                return _with_time(flow, node.timestamp)
            case ir.Filter(predicate=RowCondition() as predicate):
                return _lower_filter(flow, predicate)
            case ir.MapValues():
                steps = node.mapper.steps if isinstance(node.mapper, RowSteps) else (node.mapper,)
                for step in steps:
                    assert isinstance(step, SelectRow)
                    flow = _lower_select(flow, step)
                return flow
            case ir.SelectKey(selector=KeyOfRow() as selector):
                return _with_key(flow, selector)
            case _:
                raise AssertionError(f"{node.name} was not checked")

    def _written(self, sink: ir.Sink, flow: Flow) -> tuple[Flow, Column]:
        from pyspark.sql import functions as f

        assert isinstance(sink.key_serde, RowSerde)
        assert isinstance(sink.value_serde, RowSerde)
        none = f.lit(None).cast("binary")
        key, odd_key = writer(sink.key_serde, flow.key or ()) if flow.key is not None else (none, None)
        value, odd_value = writer(sink.value_serde, flow.row)
        flow = flow.odd_when(odd_key)
        flow = flow.odd_when(None if odd_value is None else ~flow.row_is_null & odd_value)
        whole = f.struct(
            f.lit(self._numbers[sink.name]).alias("output"),
            f.lit(None).cast("string").alias("topic"),
            f.when(~flow.key_is_null, key).alias("key"),
            f.when(~flow.row_is_null, value).alias("value"),
            flow.timestamp.alias("timestamp"),
            f.col("headers").alias("headers"),
            f.lit(None).cast("int").alias("partition"),
        )
        return flow, whole

    def _odd_record(self) -> Column:
        """A record as it was read; the offset is in the place of the topic, which is known."""
        from pyspark.sql import functions as f

        return f.struct(
            f.lit(self._odd_output).alias("output"),
            f.col("offset").cast("string").alias("topic"),
            f.col("key").alias("key"),
            f.col("value").alias("value"),
            f.col("timestamp").alias("timestamp"),
            f.col("headers").alias("headers"),
            f.col("partition").alias("partition"),
        )


def _with_record_columns(node: AddRecordColumns, flow: Flow) -> Flow:
    from pyspark.sql import functions as f

    key = flow.key or ()
    assert len(key) == node.key_width, "a key has as many columns as its serde"
    return replace(flow, row=(*flow.row, flow.timestamp, f.col("partition"), f.col("offset"), *key))


def _with_time(flow: Flow, timestamp: RowTimestamp) -> Flow:
    from pyspark.sql import functions as f

    time = flow.row[timestamp.position]
    is_missing = ~flow.row_is_null & (time.isNull() | (time < 0))
    return replace(flow.odd_when(is_missing), timestamp=f.when(flow.row_is_null, flow.timestamp).otherwise(time))


def _lower_filter(flow: Flow, predicate: RowCondition) -> Flow:
    from pyspark.sql import functions as f

    holds = lower(predicate.condition, flow.row)
    flow = flow.when(~flow.row_is_null).odd_when(holds.fails)
    return flow.when(f.coalesce(holds.value, f.lit(False)))


def _lower_select(flow: Flow, select: SelectRow) -> Flow:
    made = [lower(one.expression, flow.row) for one in select.columns]
    fails = any_of(one.fails for one in made)
    flow = flow.odd_when(None if fails is None else ~flow.row_is_null & fails)
    return replace(flow, row=tuple(one.value for one in made))


def _with_key(flow: Flow, selector: KeyOfRow) -> Flow:
    from pyspark.sql import functions as f

    made = [lower(one.expression, flow.row) for one in selector.columns]
    flow = flow.odd_when(any_of([flow.row_is_null, *(one.fails for one in made)]))
    columns = tuple(one.value for one in made)
    is_null = any_of(one.isNull() for one in columns) if selector.drops_nulls else None
    return replace(flow, key=columns, key_is_null=f.lit(False) if is_null is None else is_null)
