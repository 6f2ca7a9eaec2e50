"""Compiles a topology into one streaming DataFrame of all its outputs: records for topics, changes of stores.

One Spark query runs it: `pipeline.runtime` adds the sink. `sections` decides which outputs Spark computes natively,
without Python; `native` lowers those. The part that is hosted in Python is a chain of DataFrames, one per stage of its
plan; rows that a stage does not process bypass it. Start at `compile_topology`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.context import CELLS
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.task import store_names
from moldau.pipeline.ir.nodes import Aggregate, Count, Node, Repartition, Sink, inputs_of
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.driver.masters import is_local_master
from moldau.pipeline.spark.explain import explanation, realtime_explanation
from moldau.pipeline.spark.hosted.arrow_groups import are_known
from moldau.pipeline.spark.hosted.work import InputName, Parcel, StageWork
from moldau.pipeline.spark.native.checks import NativeRefusalError
from moldau.pipeline.spark.native.lowering import changes_for_python, native_frame
from moldau.pipeline.spark.native.realtime import realtime_frame
from moldau.pipeline.spark.native.sql.lowering import ODD, SqlLowering
from moldau.pipeline.spark.odd_rows import OddRows, with_odd_rows
from moldau.pipeline.spark.plan import InputPoint, Plan, Stage, store_output
from moldau.pipeline.spark.rows import (
    BUNDLES,
    FINISHED,
    LEAVING,
    MIXED,
    TO_COUNT,
    TO_FOLD,
    binary_values,
    ddl,
    open_bundles,
)
from moldau.pipeline.spark.sections import Cut, Section, cut_topology
from moldau.pipeline.spark.sources import (
    Read,
    Reader,
    SharedReader,
    read_of,
    source_rows,
    stage_reads,
    with_all_columns,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from moldau.pipeline.spark.job import EarlierRun, Job

__all__ = ["CheckpointWayError", "Compiled", "RealtimeRefusedError", "TestMode", "compile_topology", "work_of"]


class CheckpointWayError(MoldauError):
    """A checkpoint holds native Spark state of an output that needs Python now."""


class RealtimeRefusedError(MoldauError):
    """A topology cannot run in Spark's real-time mode."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"moldau.latency=realtime is not possible: {reason}; leave the setting out for micro-batches")


ENDED = -1
"""A target of a branch: rows that have left the topology."""


@dataclass(frozen=True)
class Compiled:
    """A compiled topology."""

    frame: DataFrame
    """The rows that leave the topology: with schema `FINISHED` of `rows` if none leaves it from Python, bundles of such
    rows if all do, else `LEAVING`.

    `output` is an index into the plan's outputs; `topic` is null if the output has one topic for all its records.
    Records of one key are in order.
    """
    plan: Plan
    """The plan of the whole topology in Python; its output numbers are also used for native outputs."""
    cut: Cut
    hosted: Plan | None
    """The plan of the part that runs in Python; None if only parts around native aggregations do."""
    settings: TaskSettings
    is_realtime: bool = False
    """Whether the frame is for real-time mode: every row has its topic, and a store's changes have its changelog's."""
    odd_rows: tuple[OddRows, ...] = ()
    """For each native section of SQL, what processes the records that Spark would process differently."""

    def output_batches(self, collected: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records in rows that were collected from the frame."""
        for rows in collected:
            if "bundle" not in rows.schema.names:
                yield from with_odd_rows(rows, self.odd_rows)
                continue
            bundled = rows.column("bundle")
            if "key" in rows.schema.names and bundled.null_count:
                yield from with_odd_rows(rows.filter(bundled.is_null()).select(FINISHED.names), self.odd_rows)
                bundled = bundled.drop_null()
            # Combined into one batch: the cost per batch is higher than that of the few records in a bundle.
            records = open_bundles(binary_values(bundled), FINISHED)
            yield from pa.Table.from_batches(records, FINISHED).combine_chunks().to_batches()

    @property
    def is_stateless(self) -> bool:
        return self.plan.is_stateless

    @property
    def is_native(self) -> bool:
        """Whether nothing runs in Python."""
        return not self.cut.has_python

    @property
    def native_outputs(self) -> tuple[str, ...]:
        """The aggregations and sinks that Spark computes natively; a checkpoint depends on this set."""
        return self.cut.native_outputs

    @property
    def native_refusal(self) -> str | None:
        """The first operator that needs Python, with its source line and the reason."""
        return next(map(str, self.cut.refusals.values()), None) if self.cut.has_python else None

    @property
    def output_mode(self) -> str:
        """Spark's output mode for a sink: `update` if there is a native aggregation."""
        return "update" if any(section.aggregate for section in self.cut.sections) else "append"

    def explain(self) -> str:
        """How each part runs, and why some parts need Python."""
        if self.is_realtime:
            return realtime_explanation(self.plan.topology)
        return explanation(self.cut, self.hosted, self.settings)


@dataclass(frozen=True)
class TestMode:
    """Settings of a query that is compared with an in-memory run: its state can be inspected."""

    settings: TaskSettings
    commits_each_record: bool
    """Whether caches are forwarded after each record instead of each batch."""
    is_native: bool = False
    """Whether Spark may compute outputs natively; their state cannot be inspected then."""
    public_only: bool = False
    """Whether to leave out everything faster that PySpark does not promise to keep."""


@dataclass(frozen=True)
class Branch:
    """Rows between stages, and the sub-topologies that some of them may go to."""

    frame: DataFrame
    targets: frozenset[int]


def compile_topology(
    spark: SparkSession,
    topology: Topology,
    job: Job,
    *,
    reader: Reader,
    test: TestMode | None = None,
) -> Compiled:
    """Compile a topology whose serdes are all named; topics must exist.

    Raises `CopartitioningError` or `TopologyError` if it cannot run. `reader` returns the records: Kafka's is
    `sources.KafkaReader`.
    """
    settings = test.settings if test else TaskSettings.of({**job.settings, "application.id": job.application_id})
    return _Compiling(spark, topology, job, settings, test).compile(reader)


class _Compiling:
    """The compilation of one topology."""

    def __init__(
        self,
        spark: SparkSession,
        topology: Topology,
        job: Job,
        settings: TaskSettings,
        test: TestMode | None,
    ) -> None:
        self._topology = topology
        self._job = job
        self._settings = settings
        self._test = test
        self._shuffle_partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        self._plan = Plan.of(topology, job.partition_counts, self._shuffle_partitions)
        self._identity = uuid.uuid4().hex

    def compile(self, reader: Reader) -> Compiled:
        """Cut and lower; if a node turns out to need Python, cut again without it, until everything is lowered."""
        if self._job.is_realtime:
            return self._realtime(reader)
        refused = self._initial_refusals()
        while True:
            cut = cut_topology(self._topology, self._settings, refused)
            try:
                compiled = self._lower(cut, reader)
            except NativeRefusalError as refusal:
                if refusal.node.name in refused:
                    raise
                refused[refusal.node.name] = refusal
                continue
            if not self._earlier_allows(compiled):
                refused = self._refuse_all("the checkpoint was made before Spark could compute parts of this topology")
                continue
            return compiled

    def _realtime(self, reader: Reader) -> Compiled:
        try:
            frame = realtime_frame(self._topology, self._settings, self._plan.outputs, reader=reader)
        except NativeRefusalError as refusal:
            raise RealtimeRefusedError(str(refusal)) from None
        cut = cut_topology(self._topology, self._settings)
        return Compiled(frame, self._plan, cut, None, self._settings, is_realtime=True)

    # --- what is decided beforehand

    def _initial_refusals(self) -> dict[str, NativeRefusalError]:
        if self._test is not None and not self._test.is_native:
            return self._refuse_all("the test asks for Python")
        earlier = self._binding_run()
        if earlier is None or earlier.native is None:
            return {}
        # A checkpoint does not depend on how the sinks behind an aggregation run.
        refused = self._refuse_all("the checkpoint has it in Python")
        return {
            name: refusal
            for name, refusal in refused.items()
            if name not in earlier.native and not (isinstance(refusal.node, Sink) and _has_aggregate(refusal.node))
        }

    def _refuse_all(self, reason: str) -> dict[str, NativeRefusalError]:
        outputs = [node for node in self._topology.nodes if isinstance(node, Aggregate | Sink)]
        return {node.name: NativeRefusalError(node, reason) for node in outputs}

    def _binding_run(self) -> EarlierRun | None:
        """The earlier run that this one must match: checkpoints identify sources and state by place in the query."""
        if self._plan.is_stateless and sum(len(stage_reads(self._plan, stage)) for stage in self._plan.stages) == 1:
            return None
        return self._job.earlier

    def _earlier_allows(self, compiled: Compiled) -> bool:
        """Whether the checkpoint fits; raises `CheckpointWayError` if this program cannot continue from it."""
        earlier = self._binding_run()
        if earlier is None:
            return True
        if earlier.native is None:
            is_one_way = not compiled.cut.sections or _is_one_native_section(compiled.cut)
            return is_one_way and not (compiled.cut.sections and self._topology.global_tables)
        for name in sorted(earlier.native - set(compiled.native_outputs)):
            refusal = compiled.cut.refusals.get(name)
            raise CheckpointWayError(
                f"{name} has run natively so far, and its state cannot be read by Python, which it needs now: "
                f"{refusal or 'it no longer exists'}. Undo that change, give the application another "
                f"application.id, or start over: moldau streams reset --application-id {self._job.application_id}"
            )
        return True

    # --- frames

    def _lower(self, cut: Cut, reader: Reader) -> Compiled:
        around = [self._plans_around(section) for section in cut.sections]
        hosted = None if cut.hosted is None else self._part(cut.hosted)
        # Without state a checkpoint contains only the offsets of its sources: as long as these do not depend on the
        # cut, a sink may change between native and Python.
        wanted = self._required_reads(cut, around, hosted)
        reader = SharedReader(reader, wanted, even_apart=self._plan.is_stateless)
        native: list[DataFrame] = []
        bundled: list[DataFrame] = []
        odd_rows: list[OddRows] = []
        for number, (section, (before, after)) in enumerate(zip(cut.sections, around, strict=True)):
            if section.is_sql and section.aggregate is None:
                odd_output = ODD - len(odd_rows)
                native.append(SqlLowering(section.topology, self._plan.outputs, odd_output).frame(reader))
                odd_rows.append(self._odd_rows(section, number))
                continue
            counts = section.aggregate is not None and isinstance(section.aggregate.aggregator, Count)
            records = None if before is None else self._records_to_fold(before, reader, number, counts=counts)
            if after is None:
                frame = native_frame(section, self._settings, self._plan.outputs, reader=reader, records=records)
                native.append(frame)
            else:
                bundled.append(self._changes_through_python(section, after, reader, records, number))
        if hosted is not None:
            bundled.append(self._hosted_frame(hosted, reader))
        frame = _leaving(native, bundled)
        return Compiled(frame, self._plan, cut, hosted, self._settings, odd_rows=tuple(odd_rows))

    def _odd_rows(self, section: Section, number: int) -> OddRows:
        plan = self._part(section.topology)
        (stage,) = plan.stages
        return OddRows(work_of(plan, stage, self._settings, identity=f"{self._identity}-odd-{number}"))

    def _required_reads(
        self, cut: Cut, around: list[tuple[Plan | None, Plan | None]], hosted: Plan | None
    ) -> Iterator[Read]:
        for section, (before, _) in zip(cut.sections, around, strict=True):
            if before is None:
                yield read_of(section.topology.sources)
            else:
                yield from stage_reads(before, before.stages[0])
        if hosted is not None:
            for stage in hosted.stages:
                yield from stage_reads(hosted, stage)

    def _plans_around(self, section: Section) -> tuple[Plan | None, Plan | None]:
        before = None if section.before is None else self._part(section.before)
        if section.after is None:
            return before, None
        topics = {topic: 1 for source in section.after.sources for topic in source.topics}
        return before, self._part(section.after, topics)

    def _part(self, topology: Topology, topics: Mapping[str, int] | None = None) -> Plan:
        counts = {**self._job.partition_counts, **(topics or {})}
        return Plan.of(topology, counts, self._shuffle_partitions, self._plan.outputs)

    def _records_to_fold(self, plan: Plan, reader: Reader, number: int, *, counts: bool) -> DataFrame:
        """The records that the Python part before an aggregation returns; `counts` if that only counts them."""
        stage = plan.stages[0]
        work = work_of(plan, stage, self._settings, identity=f"{self._identity}-before-{number}")
        rows = _union(source_rows(reader, plan, stage))
        if not counts:
            return _run(rows, stage, replace(work, feeds_aggregate=True), TO_FOLD)
        counted = _run(rows, stage, replace(work, feeds_aggregate=True, feeds_count=True), TO_COUNT)
        return _repeat_rows(counted)

    def _changes_through_python(
        self, section: Section, plan: Plan, reader: Reader, records: DataFrame | None, number: int
    ) -> DataFrame:
        """The changes of an aggregation, processed by the Python part after it."""
        aggregate, stage = section.aggregate, plan.stages[0]
        assert aggregate is not None
        rows = changes_for_python(
            section, self._settings, plan.input_of[aggregate.name], reader=reader, records=records
        )
        work = work_of(plan, stage, self._settings, identity=f"{self._identity}-after-{number}")
        store = work.outputs.get(store_output(aggregate.table.store))
        return _run(rows, stage, replace(work, store_output=store)).select("bundle")

    def _hosted_frame(self, plan: Plan, reader: Reader) -> DataFrame:
        branches: list[Branch] = []
        takes_groups = are_known() and not (self._test is not None and self._test.public_only)
        for stage in plan.stages:
            make = partial(work_of, plan, stage, self._settings, test=self._test, identity=self._identity)
            sources = source_rows(reader, plan, stage, bundled=not takes_groups)
            branches = _with_stage(branches, plan, stage, sources, make, takes_groups=takes_groups)
        return _union([branch.frame.select("bundle") for branch in branches])


def _repeat_rows(counted: DataFrame) -> DataFrame:
    """One row for each record that a row stands for: state is that of a plain count, as in older checkpoints."""
    from pyspark.sql import functions as f

    copies = f.explode(f.array_repeat(f.lit(True), f.col("copies"))).alias("copy")
    return counted.select("key", "value", "timestamp", copies).select("key", "value", "timestamp")


def _has_aggregate(node: Node) -> bool:
    return isinstance(node, Aggregate) or any(map(_has_aggregate, inputs_of(node)))


def _is_one_native_section(cut: Cut) -> bool:
    return len(cut.sections) == 1 and not cut.has_python


def _leaving(native: list[DataFrame], bundled: list[DataFrame]) -> DataFrame:
    """All rows that leave the query."""
    if native and bundled:
        return _union([with_all_columns(frame, LEAVING) for frame in (*native, *bundled)])
    return _union([*native, *bundled])


def _with_stage(
    branches: list[Branch],
    plan: Plan,
    stage: Stage,
    sources: list[DataFrame],
    make: Callable[..., StageWork],
    *,
    takes_groups: bool,
) -> list[Branch]:
    sub_topologies = {sub_topology.index for sub_topology in stage.sub_topologies}
    entering = [branch for branch in branches if branch.targets & sub_topologies]
    passing = frozenset[int]().union(*(branch.targets for branch in entering)) - sub_topologies
    work = make()
    rows = _stage_input(sources, [branch.frame for branch in entering])
    targets = frozenset(plan.reader_of[name].index for name in work.targets)
    ran = Branch(_run(rows, stage, work, takes_groups=takes_groups), passing | targets | {ENDED})
    return [*(branch for branch in branches if branch not in entering), ran]


def _stage_input(sources: list[DataFrame], bundles: list[DataFrame]) -> DataFrame:
    """All input rows of a stage."""
    frames = [*sources, *bundles]
    is_mixed = len({tuple(frame.columns) for frame in frames}) > 1
    return _union([with_all_columns(frame, MIXED) for frame in frames] if is_mixed else frames)


def _run(
    rows: DataFrame, stage: Stage, work: StageWork, gives: pa.Schema = BUNDLES, *, takes_groups: bool = False
) -> DataFrame:
    from moldau.pipeline.spark.hosted.host import StatelessHost, TaskHost

    shares_folders = is_local_master(rows.sparkSession.sparkContext.master)
    parcel, columns = Parcel.of(work, shares_folders=shares_folders), ddl(gives)
    if stage.is_stateless:
        return rows.mapInArrow(StatelessHost(parcel), columns)
    return rows.groupBy("slot").transformWithState(TaskHost(parcel, takes_groups), columns, "Append", "None")


def _union(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.union(other), frames)


def work_of(
    plan: Plan,
    stage: Stage,
    settings: TaskSettings,
    *,
    test: TestMode | None = None,
    identity: str | None = None,
) -> StageWork:
    """The description of a stage for the workers."""
    sub_topologies = {sub_topology.index: sub_topology for sub_topology in stage.sub_topologies}
    points = [point for point in plan.inputs if sub_topologies.keys() & set(point.sub_topologies)]
    names = dict.fromkeys(name for sub_topology in stage.sub_topologies for name in store_names(sub_topology, settings))
    return StageWork(
        identity=f"{identity or uuid.uuid4().hex}-{stage.number}",
        number=stage.number,
        sub_topologies=sub_topologies,
        units=stage.units,
        cycles=stage.cycles,
        inputs={point.index: _input_name(point, settings) for point in points},
        readers={
            point.index: tuple(index for index in point.sub_topologies if index in sub_topologies) for point in points
        },
        outputs={point.name: point.index for point in plan.outputs},
        dynamic_topics=frozenset(point.name for point in plan.outputs if point.topic is None),
        targets={name: plan.targets(name) for name in _repartitions_out(stage)},
        counts=dict(plan.counts),
        settings=settings,
        states=() if stage.is_stateless else tuple(name for name in names if name != CELLS) or (CELLS,),
        commits_each_record=test is not None and test.commits_each_record,
        exports_state=test is not None,
        public_only=test is not None and test.public_only,
    )


def _input_name(point: InputPoint, settings: TaskSettings) -> InputName:
    node = point.node
    if isinstance(node, Repartition):
        return InputName(node.name, settings.internal_topic(node.topic), False, True)
    return InputName(node.name, point.topic, point.is_global, False)


def _repartitions_out(stage: Stage) -> list[str]:
    """Repartitionings whose records leave their group; records inside a cycle never become rows."""
    return [
        node.name
        for group in stage.groups
        for sub_topology in group
        for node in sub_topology.outputs
        if isinstance(node, Repartition) and not any(node in other.inputs for other in group)
    ]
