"""Where a batch's rows go: what the two guarantees have in common. Start at `Sink`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from moldau.core.ids import TopicPartition
from moldau.pipeline.runtime.checkpoint import Checkpoint, end_offsets
from moldau.pipeline.runtime.errors import CheckpointMismatchError
from moldau.pipeline.runtime.results import Results

__all__ = ["Batch", "Sink", "planned_batch"]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as its checkpoint planned it."""

    checkpoint: str
    number: int
    entry: str
    ends: Mapping[TopicPartition, int]


class Sink(Protocol):
    """Takes one batch after the other, always from one thread at a time."""

    def deliver(self, results: Results, batch: Batch) -> int:
        """Write a batch's rows; when this returns they count. Returns how many were written."""

    def refresh(self) -> None:
        """Keep alive what brokers forget about clients that say nothing for days."""

    def interrupt(self) -> None:
        """Make a delivery under way fail soon, whatever the cluster does; nothing can be delivered afterwards."""

    def close(self) -> None:
        """Let go of the connections; nothing is written any more."""


def planned_batch(checkpoint: Checkpoint, identity: str, number: int) -> Batch:
    """Read what Spark planned for the batch that is running."""
    entry = checkpoint.entry(number)
    if entry is None:
        raise CheckpointMismatchError(
            f"batch {number} is running, and its plan is not in {checkpoint.location}; "
            "something else writes to that folder"
        )
    return Batch(identity, number, entry, end_offsets(entry))
