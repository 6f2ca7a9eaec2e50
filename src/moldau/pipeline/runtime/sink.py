"""Where a batch's rows go, as the runtime sees it: a batch, its rows, and the sink that takes both. Start at `Sink`.

Rows are taken as Spark's tasks end, so that delivering can begin while other tasks still run. The rows of one task stay
together and in their order, and with them those of one key. A row carries the number of its output, and a topic only
where its output does not have one for all rows: a name in every row would cost more than the row.
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
    """A batch as its checkpoint planned it; run again, it is the same in every part."""

    checkpoint: str
    """The checkpoint's id."""
    number: int
    entry: str
    """The plan, word for word."""
    position: Position
    """How far the batch reads."""

    @property
    def progress(self) -> Progress:
        """What a sink with `keeps_progress` stores with the rows."""
        return Progress(self.checkpoint, self.number, self.entry)


class Sink(Protocol):
    """Takes one batch after the other, always from one thread at a time. Each run of a pipeline has one of its own."""

    @property
    def keeps_progress(self) -> bool:
        """Whether a batch's progress is stored with its rows, all or nothing; that makes the pipeline exactly once."""

    @property
    def commits_offsets(self) -> bool:
        """Whether the offsets of Kafka sources are committed with the rows, by the sink itself."""

    def open(self) -> Progress | None:
        """Fence a predecessor that may still write, then read its last progress. In this order.

        None where nothing was ever committed, or where no progress is kept.
        """

    def deliver(self, results: Results, batch: Batch) -> int:
        """Write a batch's rows; when this returns they count. Returns how many were written.

        A batch may come again after a restart. A sink that keeps progress leaves out what `Progress.covers`.
        """

    def refresh(self) -> None:
        """Keep alive what brokers forget about clients that send nothing for days."""

    def interrupt(self) -> None:
        """Make a delivery under way fail soon, whatever the cluster does; nothing can be delivered afterwards."""

    def close(self) -> None:
        """Let go of the connections; nothing is written any more. Called also where `open` has failed."""


def planned_batch(checkpoint: Checkpoint, identity: str, number: int, source: Source) -> Batch:
    """Read what Spark planned for the batch that is running."""
    entry = checkpoint.entry(number)
    if entry is None:
        raise CheckpointMismatchError(
            f"batch {number} is running, and its plan is not in {checkpoint.location}; "
            "something else writes to that folder"
        )
    return Batch(identity, number, entry, source.position(entry))


class Results:
    """The rows of one batch; they can be gone through more than once, by one thread at a time."""

    def __init__(self, arriving: Iterable[pa.RecordBatch], outputs: Sequence[OutputPoint]) -> None:
        self._arriving = iter(arriving)
        self._arrived: list[pa.RecordBatch] = []
        self._outputs = outputs
        self.topics = tuple(point.topic for point in outputs)
        """The topic of each output; None where its rows say theirs, or have none."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from tuple(self._arrived)
        for batch in self._arriving:
            self._arrived.append(batch)
            yield batch

    def wait_for_first_row(self) -> bool:
        """Wait for a row, or for the end of a batch that has none; whether there is one."""
        return any(batch.num_rows for batch in self)

    def wait_for_all(self) -> None:
        """Wait until all rows are there; raises what Spark's tasks failed with."""
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
