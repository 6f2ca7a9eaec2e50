"""Where a pipeline's records come from, as the runtime sees it. Start at `Source`.

Kafka's is `kafka.source`. Everything else that Spark can read as a stream (files, a rate, a Python data source of a
connector) is a `FrameSource`: its position is in Spark's offset log alone, and travels through the sink as a text that
nobody here looks into.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from moldau.core.ids import TopicPartition
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.checkpoint import source_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from moldau.pipeline.runtime.start_plan import StartPlan
    from moldau.pipeline.spark.sources import Reader

__all__ = ["Committed", "FrameSource", "Offsets", "Position", "Source", "read_topics"]

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a batch has read."""

    offsets: Offsets = field(default_factory=dict)
    """The next offset of each Kafka partition, committed for the group; empty where the source is not Kafka."""
    token: str = ""
    """The position in any other source. Compared and stored, never looked into."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a group has committed, whoever did it."""

    offsets: Offsets = field(default_factory=dict)
    is_reset: bool = False
    """Whether a reset tool has set these offsets, to begin there without state."""


class Source(Protocol):
    """One object for all runs of a pipeline."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Partition counts of names that the topology reads and no cluster knows."""

    @property
    def resumes_from_progress(self) -> bool:
        """Whether reading can go on from a progress record alone, when a stateless pipeline has lost its checkpoint."""

    def start(self, on_taken_over: Callable[[], None]) -> None:
        """Show that the pipeline runs; `on_taken_over` is called once when another instance has taken its place."""

    def committed(self, counts: Mapping[str, int], *, has_checkpoint: bool) -> Committed:
        """What was committed before; `counts` are the partition counts of all topics.

        Whether a reset tool did it matters only where there is no checkpoint.
        """

    def reader(self, spark: SparkSession, counts: Mapping[str, int], plan: StartPlan) -> Reader:
        """What the compiler reads records from; `plan` says where to start without a checkpoint."""

    def starting_offsets(self, counts: Mapping[str, int], plan: StartPlan) -> Offsets:
        """From where the first batch counts, for metrics; only where there is no checkpoint."""

    def position(self, entry: str) -> Position:
        """How far a batch reads, from the entry that Spark's offset log has for it."""

    def commit_soon(self, offsets: Offsets) -> None:
        """Commit offsets for the group behind a sink that does not do it itself."""

    def latest_offsets(self, offsets: Offsets) -> Offsets:
        """Where the partitions end now, for the lag; empty where that is not known."""

    def close(self, offsets: Offsets) -> None:
        """Leave in good order, with these offsets committed. May be called again."""


def read_topics(topology: Topology, counts: Mapping[str, int]) -> dict[str, int]:
    """The topics that a topology reads, global tables left out, with their partition counts."""
    found: dict[str, int] = {}
    for source in topology.sources:
        found.update({topic: counts[topic] for topic in source.topics})
        if source.topic_pattern is not None:
            found.update({t: n for t, n in counts.items() if re.fullmatch(source.topic_pattern, t)})
    return found


class FrameSource:
    """Topics of a topology that are streaming DataFrames in truth.

    `frames` gives a DataFrame by the name that the topology reads it under, with the columns of Spark's Kafka
    connector: key, value, headers, topic, partition, offset, timestamp. Exactly once needs a source that reads the
    same records again for the same offsets, as Spark asks of every source. `counts` are the numbers of partitions in
    which the rows come.
    """

    resumes_from_progress = False

    def __init__(
        self, frames: Mapping[str, Callable[[SparkSession], DataFrame]], counts: Mapping[str, int] | None = None
    ) -> None:
        self._frames = frames
        self.counts = {**dict.fromkeys(frames, 1), **(counts or {})}

    def start(self, on_taken_over: Callable[[], None]) -> None:
        """There is no group to join; the folder's lock and the sink's fencing keep a second instance away."""

    def committed(self, counts: Mapping[str, int], *, has_checkpoint: bool) -> Committed:
        return Committed()

    def reader(self, spark: SparkSession, counts: Mapping[str, int], plan: StartPlan) -> Reader:
        return FrameReader(spark, self._frames)

    def starting_offsets(self, counts: Mapping[str, int], plan: StartPlan) -> Offsets:
        return {}

    def position(self, entry: str) -> Position:
        return Position(token="\n".join(source_lines(entry)))

    def commit_soon(self, offsets: Offsets) -> None:
        """There are none."""

    def latest_offsets(self, offsets: Offsets) -> Offsets:
        return {}

    def close(self, offsets: Offsets) -> None:
        """Nothing is open."""


class FrameReader:
    """Gives the frames of a `FrameSource` to the compiler."""

    def __init__(self, spark: SparkSession, frames: Mapping[str, Callable[[SparkSession], DataFrame]]) -> None:
        self._spark = spark
        self._frames = frames

    def records(
        self, topics: tuple[str, ...], pattern: str | None, reset: OffsetReset | None, *, is_global: bool
    ) -> DataFrame:
        wanted = topics if pattern is None else tuple(name for name in self._frames if re.fullmatch(pattern, name))
        first, *others = (self._frames[name](self._spark) for name in wanted)
        for other in others:
            first = first.unionByName(other)
        return first

    def ticks(self) -> DataFrame:
        from moldau.pipeline.spark.sources import clock_ticks

        return clock_ticks(self._spark)
