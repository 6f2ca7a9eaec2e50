"""The compiler's input besides the topology: the application's settings and the partition counts of its topics.

Created by `pipeline.runtime`, from the cluster and the checkpoint. Start at `Job`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moldau.pipeline.ir.nodes import OffsetReset

__all__ = ["EarlierRun", "Job", "SourceOptions"]


class SourceOptions(Protocol):
    """How topics are read."""

    def __call__(
        self, topics: tuple[str, ...] | None, pattern: str | None, reset: OffsetReset | None, *, is_global: bool
    ) -> dict[str, str]:
        """All options of a Kafka source for these topics or a pattern; `reset` is the one that the topology names.

        A global table's topic is read from its beginning.
        """
        ...


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """How the run that made the current checkpoint computed its outputs."""

    native: frozenset[str] | None
    """The names of aggregations and sinks that Spark computed natively.

    None for a checkpoint of a version that did not record it: that version had at most one native section.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One application on one cluster."""

    application_id: str
    partition_counts: Mapping[str, int]
    """Partition counts of every topic that is read or written."""
    settings: Mapping[str, Any]
    """The application's configuration, by Kafka's keys."""
    is_realtime: bool = False
    """Whether the query is for Spark's real-time mode."""
    earlier: EarlierRun | None = None
    """The run whose checkpoint the query continues from; None if there is no checkpoint."""
