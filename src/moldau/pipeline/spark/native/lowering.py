"""Lowers native sections to Spark columns: expressions between topics, and counts, sums, minima and maxima.

`sections` decides which outputs are native. The path of a record to each of them is followed backwards and becomes
columns: the condition under which it arrives, its key and its value. Records that reach several sinks are read once.
Aggregations are native only under caching. Python parts before or after an aggregation are not lowered here: their rows
come in as `records`, and go out through `changes_for_python`. Start at `native_frame`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from moldau.pipeline.cores.handlers import log_and_continue
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.expressions import Call, Expression
from moldau.pipeline.ir.expressions import Column as ColumnOf
from moldau.pipeline.ir.functions import Function
from moldau.pipeline.ir.serdes import type_of
from moldau.pipeline.ir.types import DataType
from moldau.pipeline.ir.windows import TimeWindow
from moldau.pipeline.spark.native.aggregates import WHOLE_NUMBERS, FoldPart, NativeAggregate, native_aggregate
from moldau.pipeline.spark.native.checks import NativeRefusalError
from moldau.pipeline.spark.native.expressions import NotNativeError, lower, spark_type
from moldau.pipeline.spark.native.serdes import decoded_column, encoded_column, is_readable
from moldau.pipeline.spark.plan import OutputPoint, store_output
from moldau.pipeline.spark.rows import FROM_SOURCES, HEADERS_DDL
from moldau.pipeline.spark.sections import Section, handover
from moldau.pipeline.spark.sources import Reader, read_of, with_columns_of
from moldau.serdes.serde import Serde
from moldau.serdes.windowed import TimeWindowedSerde

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Lowering", "ToFold", "changes_for_python", "exploded", "folded_value", "folding_columns", "native_frame"]


@dataclass(frozen=True)
class Part:
    """A key or value: as a column of a type, and as the bytes it was read from if it is unchanged."""

    column: Column
    type: DataType | None
    data: Column | None = None
    serde: Serde | None = None

    def serialize(self, serde: Serde) -> Column:
        """Its bytes for this serde."""
        if self.data is not None and self.serde == serde:
            return self.data
        return encoded_column(serde, self.column, self.type)


@dataclass(frozen=True)
class Flow:
    """A record at one node: the conditions under which it arrives, its key and its value."""

    key: Part
    value: Part
    conditions: tuple[Column, ...] = ()

    def when(self, condition: Column) -> Flow:
        return replace(self, conditions=(*self.conditions, condition))


def native_frame(
    section: Section,
    settings: TaskSettings,
    outputs: Sequence[OutputPoint],
    *,
    reader: Reader,
    records: DataFrame | None = None,
) -> DataFrame:
    """The rows that leave a section; raises `NativeRefusalError` if a node turns out to need Python.

    `records` are the input of the aggregation, with schema `TO_FOLD` of `rows`, if a Python part precedes it.
    """
    lowering = Lowering(section, settings, {point.name: point.index for point in outputs})
    return lowering.frame(lowering.rows(reader, records))


def changes_for_python(
    section: Section, settings: TaskSettings, input_number: int, *, reader: Reader, records: DataFrame | None = None
) -> DataFrame:
    """The changes of a section's aggregation as rows for the Python stage after it, `FROM_SOURCES` of `rows`."""
    from pyspark.sql import functions as f

    lowering = Lowering(section, settings, {})
    rows = lowering.rows(reader, records)
    key, value = lowering.change()
    known = {
        "slot": f.lit(0),
        "input": f.lit(input_number),
        "partition": f.lit(0),
        "offset": f.lit(0).cast("bigint"),
        "timestamp": f.col("timestamp"),
        "key": key,
        "value": value,
    }
    return with_columns_of(rows, known, FROM_SOURCES)


class Lowering:
    """The lowering of one section."""

    def __init__(
        self,
        section: Section,
        settings: TaskSettings,
        numbers: Mapping[str, int],
        *,
        value: Column | None = None,
        window_start: Column | None = None,
    ) -> None:
        """`value` is that of the aggregation's changes, a column of this name by default; `window_start` its bytes."""
        self._section = section
        self._topology = section.topology
        self._aggregate = section.aggregate
        self._settings = settings
        self._numbers = numbers
        self._value = value
        self._window_start = window_start

    def with_result(self, value: Column, window_start: Column | None) -> Lowering:
        """The same lowering, for changes with this value, in windows whose start has these bytes."""
        return Lowering(self._section, self._settings, self._numbers, value=value, window_start=window_start)

    def rows(self, reader: Reader, records: DataFrame | None) -> DataFrame:
        """The rows from which sinks are computed: the records of the sources, or the changes of the aggregation."""
        rows = self._source(reader) if records is None else records
        return rows if self._aggregate is None else self._aggregate_rows(rows, self._aggregate)

    def frame(self, rows: DataFrame) -> DataFrame:
        outputs = [output for sink in self._topology.sinks for output in self.sink_outputs(sink)]
        outputs += [] if self._aggregate is None else self.store_outputs(self._aggregate)
        if len(outputs) == 1:
            conditions, columns = outputs[0]
            return _where(rows, conditions).select(*columns)
        return exploded(rows, outputs)

    def change(self) -> tuple[Column, Column]:
        """The bytes of a change's key and value, as in the store."""
        node = self._aggregate
        assert node is not None
        flow = self._result(node)
        assert flow.key.data is not None
        return flow.key.data, _refusing_as(node, lambda: flow.value.serialize(node.table.value_serde))

    # --- input

    def _source(self, reader: Reader) -> DataFrame:
        from pyspark.sql import functions as f

        sources = self._topology.sources
        read = read_of(sources)
        frame = reader.records(read.topics, read.pattern, read.reset, is_global=False)
        headers = f.expr(f"if(size(headers) > 0, headers, CAST(NULL AS {HEADERS_DDL}))").alias("headers")
        rows = frame.select(
            "key", "value", "topic", "partition", "offset", f.expr("unix_millis(timestamp)").alias("timestamp"), headers
        )
        for source in sources:
            for part, serde in (("key", source.key_serde), ("value", source.value_serde)):
                rows = self._readable(rows, source, part, serde)
        return rows

    def _readable(self, rows: DataFrame, source: ir.Source, part: str, serde: Serde) -> DataFrame:
        """Rows whose bytes the serde can read; any other row stops the pipeline or is skipped."""
        from pyspark.sql import functions as f

        readable = _refusing_as(source, lambda: is_readable(serde, f.col(part)))
        if readable is None:
            return rows
        is_other_topic = ~self._is_from(source)
        if self._settings.deserialization_handler is log_and_continue:
            return rows.where(is_other_topic | readable)
        place = f.concat(
            f.lit("<moldau-failure>topic "),
            f.col("topic"),
            f.lit(", partition "),
            f.col("partition"),
            f.lit(", offset "),
            f.col("offset"),
            f.lit(
                f": the {part} cannot be read by {source.name} ({source.origin}) as {type(serde).__name__}; fix the "
                "serde, or set deserialization.exception.handler to log-and-continue</moldau-failure>"
            ),
        )
        return rows.where(
            f.when(is_other_topic | readable, f.lit(True)).otherwise(f.raise_error(place).cast("boolean"))
        )

    def _is_from(self, source: ir.Source) -> Column:
        from pyspark.sql import functions as f

        return f.lit(True) if len(self._topology.sources) == 1 else f.col("topic").isin(*source.topics)

    # --- from node to node

    def flows(self, node: ir.Node) -> list[Flow]:
        """The flows of records that leave a node, one per path."""
        if node is self._aggregate:
            return [self._result(self._aggregate)]
        match node:
            case ir.StreamSource():
                return [self._source_flow(node)]
            case ir.Merge():
                return [flow for source in node.inputs for flow in self.flows(source)]
            case ir.BranchOutput():
                return [self._branch(node, flow) for flow in self.flows(node.input)]
            case ir.OneInput():
                return [self._step(node, flow) for flow in self.flows(node.input)]
            case _:
                raise NativeRefusalError(node, "runs in Python only")

    def _source_flow(self, source: ir.StreamSource) -> Flow:
        from pyspark.sql import functions as f

        def part(name: str, serde: Serde) -> Part:
            data = f.col(name)
            try:
                column = decoded_column(serde, data)
            except NotNativeError:
                column = data  # It cannot be decoded, but can be passed on.
                return Part(column, None, data, serde)
            return Part(column, type_of(serde), data, serde)

        flow = Flow(part("key", source.key_serde), part("value", source.value_serde))
        return flow if len(self._topology.sources) == 1 else flow.when(self._is_from(source))

    def _step(self, node: ir.Node, flow: Flow) -> Flow:
        from pyspark.sql import functions as f

        match node:
            case ir.Filter():
                holds = f.coalesce(self._value_of(node, node.predicate, flow), f.lit(False))
                return flow.when(~holds if node.is_negated else holds)
            case ir.MapValues():
                return replace(flow, value=self._part(node, node.mapper, flow))
            case ir.SelectKey():
                return replace(flow, key=self._part(node, node.selector, flow))
            case ir.Map():
                if not isinstance(node.mapper, Call) or node.mapper.function != "PAIR":
                    raise NativeRefusalError(node, "only a pair of expressions can be translated")
                key, value = node.mapper.arguments
                return replace(flow, key=self._part(node, key, flow), value=self._part(node, value, flow))
            case ir.Split():
                return flow
            case ir.Repartition():
                written = self._through(node, flow.key, node.key_serde)
                flow = replace(flow, key=written, value=self._through(node, flow.value, node.value_serde))
                return flow.when(written.column.isNotNull()) if node.drops_null_keys else flow
            case ir.ToStream():
                return flow if node.selector is None else replace(flow, key=self._part(node, node.selector, flow))
            case _:
                raise NativeRefusalError(node, "runs in Python only")

    def _branch(self, node: ir.BranchOutput, flow: Flow) -> Flow:
        from pyspark.sql import functions as f

        split = node.input
        assert isinstance(split, ir.Split)
        holds = [f.coalesce(self._value_of(split, one, flow), f.lit(False)) for one in split.predicates]
        for earlier in holds[: node.index]:
            flow = flow.when(~earlier)
        return flow.when(holds[node.index]) if node.index < len(holds) else flow

    def _through(self, node: ir.Node, part: Part, serde: Serde) -> Part:
        """A key or value after it was written and read with a serde."""
        data = _refusing_as(node, lambda: part.serialize(serde))
        assert data is not None
        return Part(part.column, part.type, data, serde)

    def _part(self, node: ir.Node, function: Function, flow: Flow) -> Part:
        assert isinstance(function, Expression)
        if isinstance(function, ColumnOf) and function.name in ("key", "value"):
            return flow.key if function.name == "key" else flow.value
        return Part(self._value_of(node, function, flow), function.type)

    def _value_of(self, node: ir.Node, function: Function, flow: Flow) -> Column:
        assert isinstance(function, Expression)
        known = {
            name: part.column for name, part in (("key", flow.key), ("value", flow.value)) if part.type is not None
        }
        column: Column = _refusing_as(node, lambda: lower(function, known))
        return column

    # --- aggregation

    def _aggregate_rows(self, rows: DataFrame, node: ir.Aggregate) -> DataFrame:
        """One row for each key that has new records: the result, and the largest timestamp."""
        from pyspark.sql import functions as f

        fold = native_aggregate(node)
        assert fold is not None
        flows = self.flows(node.input) if self._section.before is None else [self._flow_from_python(node)]
        records = reduce(lambda one, other: one.union(other), (self._to_fold(rows, node, fold, flow) for flow in flows))
        folded = records.groupBy("key").agg(*folding_columns(fold, "value"), f.max("timestamp").alias("timestamp"))
        value = folded_value(fold, "value").alias("value")
        return folded.select("key", value, "timestamp", f.lit(None).cast(HEADERS_DDL).alias("headers"))

    def _to_fold(self, rows: DataFrame, node: ir.Aggregate, fold: NativeAggregate, flow: Flow) -> DataFrame:
        record = self.to_fold(node, fold, flow)
        values = [value.alias(f"value{number}") for number, value in enumerate(record.values)]
        return _where(rows, record.conditions).select(record.key.alias("key"), *values, "timestamp")

    def to_fold(self, node: ir.Aggregate, fold: NativeAggregate, flow: Flow) -> ToFold:
        """What an aggregation takes from the records that arrive by one way."""
        key = _refusing_as(node, lambda: flow.key.serialize(node.table.key_serde))
        values = tuple(self._operand(node, part, flow) for part in fold.parts)
        return ToFold((*flow.conditions, key.isNotNull() & flow.value.column.isNotNull()), key, values)

    def _operand(self, node: ir.Aggregate, part: FoldPart, flow: Flow) -> Column:
        if part.function == "count":
            return flow.value.column.isNotNull()
        data_type = flow.value.type if part.operand is None else part.operand.type
        if data_type not in WHOLE_NUMBERS:
            raise NativeRefusalError(node, "Spark sums and compares only whole numbers as Python does")
        return flow.value.column if part.operand is None else self._value_of(node, part.operand, flow).cast("bigint")

    def _flow_from_python(self, node: ir.Aggregate) -> Flow:
        """The records that the Python part before an aggregation returns."""
        from pyspark.sql import functions as f

        written, fold = handover(node), native_aggregate(node)
        key = Part(f.col("key"), None, f.col("key"), written.key_serde)
        if fold is not None and not fold.reads_value:
            return Flow(key, Part(f.col("value"), None))
        value = _refusing_as(node, lambda: decoded_column(written.value_serde, f.col("value")))
        return Flow(key, Part(value, type_of(written.value_serde)))

    def _result(self, node: ir.Aggregate) -> Flow:
        from pyspark.sql import functions as f

        data, fold = f.col("key"), native_aggregate(node)
        assert fold is not None
        value = Part(f.col("value") if self._value is None else self._value, fold.result)
        serde = node.table.key_serde
        if self._window_start is None:
            return Flow(Part(_decoded_if_native(data, serde), type_of(serde), data, serde), value)
        assert isinstance(node.window, TimeWindow)
        whole = f.concat(data, self._window_start)
        # Expressions cannot look into a windowed key, but it can be passed on.
        return Flow(Part(whole, None, whole, TimeWindowedSerde(serde, node.window.size_ms)), value)

    # --- output

    def sink_outputs(self, sink: ir.Sink) -> list[tuple[tuple[Column, ...], list[Column]]]:
        outputs = []
        for flow in self.flows(sink.input):
            key = _refusing_as(sink, lambda flow=flow: flow.key.serialize(sink.key_serde))
            value = _refusing_as(sink, lambda flow=flow: flow.value.serialize(sink.value_serde))
            outputs.append((flow.conditions, _columns(self._numbers[sink.name], key, value)))
        return outputs

    def store_outputs(
        self, node: ir.Aggregate, headers: Column | None = None
    ) -> list[tuple[tuple[Column, ...], list[Column]]]:
        """The changes of a store that can be queried; these headers replace those of the record."""
        if not node.table.is_queryable:
            return []
        flow = self._result(node)
        value = _refusing_as(node, lambda: flow.value.serialize(node.table.value_serde))
        return [((), _columns(self._numbers[store_output(node.table.store)], flow.key.data, value, headers))]


@dataclass(frozen=True)
class ToFold:
    """A record for an aggregation: the conditions under which it is one, its key, an operand for each function."""

    conditions: tuple[Column, ...]
    key: Column
    values: tuple[Column, ...]


def folding_columns(fold: NativeAggregate, prefix: str) -> list[Column]:
    """Spark's functions over the columns `prefix0`, `prefix1` and so on, under the same names."""
    from pyspark.sql import functions as f

    columns = [getattr(f, part.function)(f"{prefix}{number}") for number, part in enumerate(fold.parts)]
    named = [column.alias(f"{prefix}{number}") for number, column in enumerate(columns)]
    # A sum to which null was once added is null from then on.
    nulls = [
        f.count_if(f.col(f"{prefix}{number}").isNull()).alias(f"{prefix}{number}_nulls")
        for number, part in enumerate(fold.parts)
        if _may_be_null(part)
    ]
    return [*named, *nulls]


def folded_value(fold: NativeAggregate, prefix: str) -> Column:
    """The value of an aggregate, from the columns that `folding_columns` made."""
    from pyspark.sql import functions as f

    columns = [_finished_column(part, f"{prefix}{number}") for number, part in enumerate(fold.parts)]
    if fold.parts[0].field is None:
        return columns[0].cast(spark_type(fold.result))
    named = zip(fold.parts, columns, strict=True)
    return f.struct(*(column.cast("bigint").alias(str(part.field)) for part, column in named))


def _finished_column(part: FoldPart, name: str) -> Column:
    from pyspark.sql import functions as f

    column = f.col(name)
    if part.initial is None:
        return column
    match part.function:
        case "min":
            return f.least(column, f.lit(part.initial))
        case "max":
            return f.greatest(column, f.lit(part.initial))
        case "sum" | "count":
            total = column + f.lit(part.initial).cast("bigint")
            return f.when(f.col(f"{name}_nulls") == 0, total) if _may_be_null(part) else total
        case other:
            raise NotImplementedError(f"how {other} meets an initial value is not told here")


def _may_be_null(part: FoldPart) -> bool:
    return part.function == "sum" and part.operand is not None


def exploded(rows: DataFrame, outputs: Sequence[tuple[tuple[Column, ...], list[Column]]]) -> DataFrame:
    """One row for each of the outputs whose conditions hold."""
    from pyspark.sql import functions as f

    candidates = [_struct_when(conditions, columns) for conditions, columns in outputs]
    reached = f.filter(f.array(*candidates), lambda output: output.isNotNull())
    return rows.select(f.explode(reached).alias("row")).select("row.*")


def _decoded_if_native(data: Column, serde: Serde) -> Column:
    try:
        return decoded_column(serde, data)
    except NotNativeError:
        return data


def _refusing_as(node: ir.Node, lower: Any) -> Any:
    """Lower something; if that fails, the refusal names the node."""
    try:
        return lower()
    except NativeRefusalError:
        raise
    except NotNativeError as error:
        raise NativeRefusalError(node, str(error)) from None


def _where(rows: DataFrame, conditions: Iterable[Column]) -> DataFrame:
    for condition in conditions:
        rows = rows.where(condition)
    return rows


def _columns(output: int, key: Any, value: Any, headers: Column | None = None) -> list[Column]:
    from pyspark.sql import functions as f

    return [
        f.lit(output).alias("output"),
        f.lit(None).cast("string").alias("topic"),
        key.alias("key"),
        value.alias("value"),
        f.col("timestamp"),
        f.col("headers") if headers is None else headers.cast(HEADERS_DDL).alias("headers"),
        f.lit(None).cast("int").alias("partition"),
    ]


def _struct_when(conditions: tuple[Column, ...], columns: list[Column]) -> Column:
    from pyspark.sql import functions as f

    whole = f.struct(*columns)
    for condition in reversed(conditions):
        whole = f.when(condition, whole)
    return whole
