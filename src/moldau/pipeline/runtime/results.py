"""What a batch gives, on the driver: rows of all outputs, taken as Spark's tasks end.

Delivering can begin while other tasks still run. The rows of one task stay together and in their order, and with them
those of one key. A row carries the number of its output, and a topic only where the output has not one for all its
rows: a name in every row would cost more than the row. Start at `Results`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from moldau.pipeline.spark.plan import OutputPoint

__all__ = ["Results"]


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

    def is_empty(self) -> bool:
        """Wait for the first row, or for the end of a batch that has none."""
        return not any(batch.num_rows for batch in self)

    def wait(self) -> None:
        """Wait until all rows are there; raises what Spark's tasks failed with."""
        for _ in self:
            pass

    def of_stores(self) -> Iterator[tuple[str, pa.Table]]:
        """The changes of each queryable store, by its name."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self.wait()
        if not self._arrived:
            return
        rows = pa.Table.from_batches(self._arrived)
        for point in self._outputs:
            if point.store is not None and (changes := rows.filter(pc.equal(rows["output"], point.index))).num_rows:
                yield point.store, changes
