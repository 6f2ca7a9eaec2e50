"""A topology becomes one streaming DataFrame of everything it gives: records for topics, changes of stores.

One Spark query runs it: `pipeline.runtime` gives the frame a sink. Each stage of the plan is a step in a chain of
DataFrames; rows that a step has no business with pass it by. Start at `compile_topology`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.pipeline.cores.context import CELLS
from moldau.pipeline.cores.settings import TaskSettings
from moldau.pipeline.cores.task import store_names
from moldau.pipeline.ir.nodes import Aggregate, Repartition
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.spark.explain import explanation
from moldau.pipeline.spark.masters import is_local_master
from moldau.pipeline.spark.native import native_frame
from moldau.pipeline.spark.native_checks import NativeRefusalError
from moldau.pipeline.spark.plan import InputPoint, Plan, Stage
from moldau.pipeline.spark.rows import BUNDLES, FINISHED, MIXED, binary_values, ddl, unbundled
from moldau.pipeline.spark.sources import Reader, source_rows, widened
from moldau.pipeline.spark.work import InputName, Parcel, StageWork

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from moldau.pipeline.spark.job import Job

__all__ = ["Compiled", "TestMode", "compile_topology", "work_of"]

ENDED = -1
"""Among the targets of a branch: rows that have left the topology."""


@dataclass(frozen=True)
class Compiled:
    """A topology as Spark runs it."""

    frame: DataFrame
    """What leaves the topology, `FINISHED` of `rows`: its columns where nothing runs in Python, else bundles of it.

    `output` is a number among the plan's outputs, and `topic` null where the output has one for all its records. Those
    of one key are in order.
    """
    plan: Plan
    refusal: NativeRefusalError | None
    """Why the topology needs Python; None where it does not."""

    @property
    def frame_with_topics(self) -> DataFrame:
        """The frame of a topology without Python for a sink that knows nothing of the plan: each row has its topic."""
        from pyspark.sql import functions as f

        topics = f.array(*(f.lit(point.topic).cast("string") for point in self.plan.outputs))
        return self.frame.withColumn("topic", f.coalesce("topic", f.element_at(topics, f.col("output") + 1)))

    def finished(self, collected: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records in rows that were collected from the frame."""
        for rows in collected:
            if self.is_native:
                yield rows
            else:
                # As one batch: what is done for a batch takes longer than the few records of a bundle.
                records = unbundled(binary_values(rows.column("bundle")), FINISHED)
                yield from pa.Table.from_batches(records, FINISHED).combine_chunks().to_batches()

    @property
    def is_stateless(self) -> bool:
        return self.plan.is_stateless

    @property
    def is_native(self) -> bool:
        """Whether nothing runs in Python."""
        return self.refusal is None

    @property
    def native_refusal(self) -> str | None:
        """Which operator needs Python, on which line, and why."""
        return None if self.refusal is None else str(self.refusal)

    @property
    def realtime_refusal(self) -> str | None:
        """What keeps the topology from Spark's real-time mode."""
        for node in self.plan.topology.nodes:
            if isinstance(node, Aggregate) and self.refusal is None:
                return f"Aggregate {node.name} ({node.origin}): an aggregation tells its changes batch by batch"
        return self.native_refusal

    @property
    def output_mode(self) -> str:
        """Spark's output mode for a sink: an aggregation of Spark's own updates its rows."""
        return "update" if self.is_native and not self.is_stateless else "append"

    def explain(self) -> str:
        """Which path each node takes, and why."""
        return explanation(self.plan, self.refusal)


@dataclass(frozen=True)
class TestMode:
    """How a query runs that is compared with a run in memory: its state can be looked at from outside."""

    settings: TaskSettings
    commits_each_record: bool
    """Whether caches are forwarded after each record instead of each batch."""
    is_native: bool = False
    """Whether Spark may do without Python where it can; state cannot be looked at then."""


@dataclass(frozen=True)
class Branch:
    """Rows on their way, and the sub-topologies that some of them may go to."""

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

    Raises `CopartitioningError` or `TopologyError` where it cannot run. `reader` gives the records: Kafka's is
    `sources.KafkaReader`.
    """
    settings = test.settings if test else TaskSettings.of({**job.settings, "application.id": job.application_id})
    plan = Plan.of(topology, job.partition_counts, int(spark.conf.get("spark.sql.shuffle.partitions") or 1))
    try:
        if test is not None and not test.is_native:
            raise NativeRefusalError(topology.nodes[0], "the test asks for Python")
        return Compiled(native_frame(topology, settings, reader, plan.outputs), plan, None)
    except NativeRefusalError as refusal:
        return Compiled(_hosted_frame(plan, settings, reader, test), plan, refusal)


def _hosted_frame(plan: Plan, settings: TaskSettings, reader: Reader, test: TestMode | None) -> DataFrame:
    identity = uuid.uuid4().hex
    branches: list[Branch] = []
    for stage in plan.stages:
        make = partial(work_of, plan, stage, settings, test=test, identity=identity)
        branches = _with_stage(branches, plan, stage, source_rows(reader, plan, stage), make)
    return _united([branch.frame.select("bundle") for branch in branches])


def _with_stage(
    branches: list[Branch], plan: Plan, stage: Stage, sources: list[DataFrame], make: Callable[..., StageWork]
) -> list[Branch]:
    pieces = {piece.index for piece in stage.pieces}
    entering = [branch for branch in branches if branch.targets & pieces]
    passing = frozenset[int]().union(*(branch.targets for branch in entering)) - pieces
    work = make()
    rows = _entered(sources, [branch.frame for branch in entering])
    targets = frozenset(plan.reader_of[name].index for name in work.targets)
    ran = Branch(_run(rows, stage, work), passing | targets | {ENDED})
    return [*(branch for branch in branches if branch not in entering), ran]


def _entered(sources: list[DataFrame], bundles: list[DataFrame]) -> DataFrame:
    """Everything that a stage gets."""
    if sources and bundles:
        return _united([widened(frame, MIXED) for frame in (*sources, *bundles)])
    return _united([*sources, *bundles])


def _run(rows: DataFrame, stage: Stage, work: StageWork) -> DataFrame:
    from moldau.pipeline.spark.host import StatelessHost, TaskHost

    shares_folders = is_local_master(rows.sparkSession.sparkContext.master)
    parcel, columns = Parcel.of(work, shares_folders=shares_folders), ddl(BUNDLES)
    if stage.is_stateless:
        return rows.mapInArrow(StatelessHost(parcel), columns)
    return rows.groupBy("slot").transformWithState(TaskHost(parcel), columns, "Append", "None")


def _united(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.union(other), frames)


def work_of(
    plan: Plan,
    stage: Stage,
    settings: TaskSettings,
    *,
    test: TestMode | None = None,
    identity: str | None = None,
) -> StageWork:
    """What workers must know of a stage."""
    pieces = {piece.index: piece for piece in stage.pieces}
    points = [point for point in plan.inputs if pieces.keys() & set(point.pieces)]
    names = dict.fromkeys(name for piece in stage.pieces for name in store_names(piece, settings))
    return StageWork(
        identity=f"{identity or uuid.uuid4().hex}-{stage.number}",
        number=stage.number,
        pieces=pieces,
        units=stage.units,
        circles=stage.circles,
        inputs={point.index: _input_name(point, settings) for point in points},
        readers={point.index: tuple(index for index in point.pieces if index in pieces) for point in points},
        outputs={point.name: point.index for point in plan.outputs},
        dynamic_topics=frozenset(point.name for point in plan.outputs if point.topic is None),
        targets={name: plan.targets(name) for name in _repartitions_out(stage)},
        counts=dict(plan.counts),
        settings=settings,
        states=() if stage.is_stateless else tuple(name for name in names if name != CELLS) or (CELLS,),
        commits_each_record=test is not None and test.commits_each_record,
        exports_state=test is not None,
    )


def _input_name(point: InputPoint, settings: TaskSettings) -> InputName:
    node = point.node
    if isinstance(node, Repartition):
        return InputName(node.name, settings.internal_topic(node.topic), False, True)
    return InputName(node.name, point.topic, point.is_global, False)


def _repartitions_out(stage: Stage) -> list[str]:
    """Repartitionings that leave their group; those inside a circle never become rows."""
    return [
        node.name
        for group in stage.groups
        for piece in group
        for node in piece.outputs
        if isinstance(node, Repartition) and not any(node in other.inputs for other in group)
    ]
