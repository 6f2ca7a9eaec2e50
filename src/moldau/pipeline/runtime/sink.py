"""The sink interface of the runtime: a batch, its rows, and the sink that takes both. Start at `Sink`.

Rows arrive as Spark's tasks end, so that delivery can begin while other tasks still run. The rows of one task, and so
those of one key, stay together and in order. A row carries the number of its output, and a topic only if the output has
no single topic for all rows: a topic name in every row would cost more than the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moldau.pipeline.runtime.checkpoint import Checkpoint
from moldau.pipeline.runtime.errors import CheckpointMismatchError
from moldau.pipeline.runtime.progress import Progress
from moldau.pipeline.runtime.source import Position, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from moldau.pipeline.spark.plan import OutputPoint

__all__ = ["Batch", "Results", "Sink", "planned_batch"]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as its checkpoint planned it; a repeated batch is identical."""

    checkpoint: str
    """The checkpoint's id."""
    number: int
    entry: str
    """The checkpoint's offset log entry of the batch, unchanged."""
    position: Position
    """The offsets at which the batch ends."""

    @property
    def progress(self) -> Progress:
        """The progress that a sink with `keeps_progress` stores with the rows."""
        return Progress(self.checkpoint, self.number, self.entry)


class Sink(Protocol):
    """Takes one batch after the other, from one thread at a time. Each run of a pipeline has its own sink."""

    @property
    def keeps_progress(self) -> bool:
        """Whether a batch's progress is stored atomically with its rows, which makes the pipeline exactly-once."""

    @property
    def commits_offsets(self) -> bool:
        """Whether the sink itself commits the offsets of Kafka sources with the rows."""

    def open(self) -> Progress | None:
        """First fence a predecessor that may still write, then read its last progress.

        Returns None if nothing was ever committed, or if no progress is kept.
        """

    def deliver(self, results: Results, batch: Batch) -> int:
        """Write a batch's rows; they are committed when this returns. Returns how many were written.

        A batch may be repeated after a restart. A sink that keeps progress skips a batch that `Progress.covers`.
        """

    def refresh(self) -> None:
        """Refresh what brokers expire for clients that send nothing for days."""

    def interrupt(self) -> None:
        """Make the current delivery fail soon, whatever the cluster does; nothing can be delivered afterwards."""

    def close(self) -> None:
        """Close the connections; nothing is written afterwards. Also called if `open` has failed."""


def planned_batch(checkpoint: Checkpoint, identity: str, number: int, source: Source) -> Batch:
    """The running batch, read from Spark's plan for it."""
    entry = checkpoint.entry(number)
    if entry is None:
        raise CheckpointMismatchError(
            f"batch {number} is running, and its plan is not in {checkpoint.location}; "
            "something else writes to that folder"
        )
    return Batch(identity, number, entry, source.position(entry))


class Results:
    """The rows of one batch; they can be iterated more than once, by one thread at a time."""

    def __init__(self, arriving: Iterable[pa.RecordBatch], outputs: Sequence[OutputPoint]) -> None:
        self._arriving = iter(arriving)
        self._arrived: list[pa.RecordBatch] = []
        self._outputs = outputs
        self.topics = tuple(point.topic for point in outputs)
        """The topic of each output; None if each row has its own topic, or none."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from tuple(self._arrived)
        for batch in self._arriving:
            self._arrived.append(batch)
            yield batch

    def wait_for_first_row(self) -> bool:
        """Wait for a row, or for the end of the batch; returns whether there is a row."""
        return any(batch.num_rows for batch in self)

    def wait_for_all(self) -> None:
        """Wait until all rows have arrived; raises the failure of Spark's tasks."""
        for _ in self:
            pass

    def store_changes(self) -> Iterator[tuple[str, pa.Table]]:
        """The changes of each queryable store, by its name."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self.wait_for_all()
        if not self._arrived:
            return
        rows = pa.Table.from_batches(self._arrived)
        for point in self._outputs:
            if point.store is not None and (changes := rows.filter(pc.equal(rows["output"], point.index))).num_rows:
                yield point.store, changes
