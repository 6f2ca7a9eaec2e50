"""The source interface of the runtime. Start at `Source`.

Kafka's is `kafka.source`. Everything else that Spark can read as a stream (files, a rate, a Python data source of a
connector) is a `FrameSource`: its position is only in Spark's offset log, and is passed to the sink as opaque text.
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
    """The position up to which a batch has read."""

    offsets: Offsets = field(default_factory=dict)
    """The next offset of each Kafka partition, committed for the group; empty if the source is not Kafka."""
    token: str = ""
    """The position in any other source. Compared and stored, never parsed."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The committed offsets of a group, from any client."""

    offsets: Offsets = field(default_factory=dict)
    is_reset: bool = False
    """Whether a reset tool has set these offsets, so that the pipeline starts there without state."""


class Source(Protocol):
    """One object for all runs of a pipeline."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Partition counts of inputs that are not in the cluster."""

    @property
    def resumes_from_progress(self) -> bool:
        """Whether a stateless pipeline that has lost its checkpoint can continue from a progress record alone."""

    def start(self, on_taken_over: Callable[[], None]) -> None:
        """Make the pipeline visible; `on_taken_over` is called once when another instance has taken its place."""

    def committed_offsets(self, counts: Mapping[str, int], *, has_checkpoint: bool) -> Committed:
        """The offsets committed before; `counts` are the partition counts of all topics.

        `is_reset` matters only without a checkpoint.
        """

    def reader(self, spark: SparkSession, counts: Mapping[str, int], plan: StartPlan) -> Reader:
        """The compiler's reader of records; `plan` says where to start without a checkpoint."""

    def starting_offsets(self, counts: Mapping[str, int], plan: StartPlan) -> Offsets:
        """The start offsets of the first batch, for metrics; only used without a checkpoint."""

    def position(self, entry: str) -> Position:
        """The position at which a batch ends, from its entry in Spark's offset log."""

    def commit_soon(self, offsets: Offsets) -> None:
        """Commit the group's offsets in the background, for a sink that does not commit them itself."""

    def latest_offsets(self, offsets: Offsets) -> Offsets:
        """The current end offsets of the partitions, for the lag; empty if unknown."""

    def close(self, offsets: Offsets) -> None:
        """Close cleanly, with these offsets committed. May be called again."""


def read_topics(topology: Topology, counts: Mapping[str, int]) -> dict[str, int]:
    """The topics that a topology reads, without global tables, and their partition counts."""
    found: dict[str, int] = {}
    for source in topology.sources:
        found.update({topic: counts[topic] for topic in source.topics})
        if source.topic_pattern is not None:
            found.update({t: n for t, n in counts.items() if re.fullmatch(source.topic_pattern, t)})
    return found


class FrameSource:
    """A source for topologies whose topics are really streaming DataFrames.

    `frames` returns a DataFrame for each topic name in the topology, with the columns of Spark's Kafka connector: key,
    value, headers, topic, partition, offset, timestamp. Exactly once needs a source that returns the same records again
    for the same offsets, as Spark requires of every source. `counts` are the partition counts of the rows.
    """

    resumes_from_progress = False

    def __init__(
        self, frames: Mapping[str, Callable[[SparkSession], DataFrame]], counts: Mapping[str, int] | None = None
    ) -> None:
        self._frames = frames
        self.counts = {**dict.fromkeys(frames, 1), **(counts or {})}

    def start(self, on_taken_over: Callable[[], None]) -> None:
        """Does nothing: there is no group; the folder's lock and the sink's fencing keep a second instance away."""

    def committed_offsets(self, counts: Mapping[str, int], *, has_checkpoint: bool) -> Committed:
        return Committed()

    def reader(self, spark: SparkSession, counts: Mapping[str, int], plan: StartPlan) -> Reader:
        return FrameReader(spark, self._frames)

    def starting_offsets(self, counts: Mapping[str, int], plan: StartPlan) -> Offsets:
        return {}

    def position(self, entry: str) -> Position:
        return Position(token="\n".join(source_lines(entry)))

    def commit_soon(self, offsets: Offsets) -> None:
        """Does nothing: there are no offsets."""

    def latest_offsets(self, offsets: Offsets) -> Offsets:
        return {}

    def close(self, offsets: Offsets) -> None:
        """Does nothing: no connection is open."""


class FrameReader:
    """Returns the frames of a `FrameSource` to the compiler."""

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
