"""What a compiler needs to know beside the topology: the application's settings and the sizes of its topics.

Made by `pipeline.runtime`, which knows clusters and checkpoints. Start at `Job`.
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
        """All options of a Kafka source: of these topics or a pattern, with the reset that the topology names.

        A global table's topic is read from its beginning.
        """
        ...


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """How the outputs ran of the application that made the checkpoint at hand."""

    native: frozenset[str] | None
    """The names of aggregations and sinks that Spark computed by itself.

    None for a checkpoint of a version that did not note it: one native section was all there was, or none.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One application on one cluster."""

    application_id: str
    partition_counts: Mapping[str, int]
    """Of every topic that is read or written."""
    settings: Mapping[str, Any]
    """The application's configuration, by Kafka's keys."""
    earlier: EarlierRun | None = None
    """What a checkpoint holds that the query goes on from; None where there is none."""
