"""Processes in the driver the records that Spark would process differently, in their place among its results.

A native section of SQL lets such a record leave as it was read: its `output` is a negative number that tells the
section, its `topic` the offset. The nodes of the section run here as they run in Python workers, so that the results,
and what is told to the processing log, are the same. Start at `with_odd_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moldau.pipeline.spark.hosted.work import StageWork
from moldau.pipeline.spark.native.sql.lowering import ODD
from moldau.pipeline.spark.rows import FINISHED, FROM_SOURCES, Table, binary_values, open_bundles

__all__ = ["OddRows", "with_odd_rows"]


def with_odd_rows(rows: pa.RecordBatch, sections: Sequence[OddRows]) -> Iterator[pa.RecordBatch]:
    """Rows of `FINISHED`, with the results of odd ones in their places."""
    outputs = rows.column("output").to_numpy(zero_copy_only=False)
    if not sections or not rows.num_rows or outputs.min() >= 0:
        yield rows
        return
    kinds = np.minimum(outputs, 0)
    cuts = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), rows.num_rows]
    for start, end in pairwise(cuts):
        part = rows.slice(start, end - start)
        if kinds[start] < 0:
            yield from sections[ODD - int(kinds[start])].process(part)
        else:
            yield part


class OddRows:
    """The nodes of one section, run in Python."""

    def __init__(self, work: StageWork) -> None:
        self._work = work
        (self._input,) = work.inputs

    def process(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The results of records that left the section as they were read."""
        from moldau.pipeline.spark.hosted.host import StatelessRun

        count = rows.num_rows
        columns = {
            "slot": pa.array(np.zeros(count, np.int32)),
            "input": pa.array(np.full(count, self._input, np.int32)),
            "offset": pc.cast(rows.column("topic"), pa.int64()),
            "topic": pa.nulls(count, pa.string()),
        }
        arrays = [columns[name] if name in columns else rows.column(name) for name in FROM_SOURCES.names]
        batch = pa.RecordBatch.from_arrays(arrays, schema=FROM_SOURCES)
        for made in StatelessRun(self._work).take(Table([batch])):
            yield from open_bundles(binary_values(made.column("bundle")), FINISHED)
