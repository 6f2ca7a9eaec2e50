"""The order in which a task processes the records of one batch: that of Kafka Streams, however the rows arrived.

Within a topic partition it is offset order. Between partitions the one whose next record has the smallest timestamp
goes first; if equal, the earlier source, then the lower partition. Taking the smallest head each time is the same as
sorting by the largest timestamp *so far* in each partition (`clocks`), which is fast in NumPy, and does not depend on
where batches are cut. After a repartition, records are in the order of the input records that caused them; those of one
input record are first in, first out: fewer repartitionings first, then in the order of forwarding (`path`). Start at
`processing_order`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["AFTER_ALL", "BEFORE_ALL", "Lineage", "Numbers", "clocks", "is_sorted", "processing_order"]

Numbers = npt.NDArray[np.int64]

AFTER_ALL = 2**63 - 1
"""The clock of rows that no single record caused: from a commit or a wall-clock punctuation."""

BEFORE_ALL = -(2**63)
"""The clock of rows of global tables, which tasks process before any other record of the batch."""


def clocks(timestamps: Numbers, lanes: Numbers, partitions: Numbers, offsets: Numbers) -> Numbers:
    """For each record the largest timestamp in its topic partition up to and including itself."""
    order = np.lexsort((offsets, partitions, lanes))
    found = np.empty_like(timestamps)
    found[order] = _running_maximum(timestamps[order], lanes[order], partitions[order])
    return found


def _running_maximum(timestamps: Numbers, lanes: Numbers, partitions: Numbers) -> Numbers:
    changes = np.flatnonzero((np.diff(lanes) != 0) | (np.diff(partitions) != 0)) + 1
    return np.concatenate([np.maximum.accumulate(piece) for piece in np.split(timestamps, changes)])


def processing_order(
    clock: Numbers, lanes: Numbers, partitions: Numbers, offsets: Numbers, lineage: Lineage | None
) -> Numbers:
    """The row indexes in the order in which a task processes them; `lineage` only if some row has steps."""
    keys = [*(lineage.sort_keys() if lineage is not None else ()), offsets, partitions, lanes, clock]
    varied = [key for key in keys if len(key) and (key != key[0]).any()]
    order: Numbers = np.lexsort(varied) if varied else np.arange(len(clock))
    return order


def is_sorted(clock: Numbers, lanes: Numbers, partitions: Numbers, offsets: Numbers) -> bool:
    """Whether rows of one topic partition are already in processing order: the common case, and a cheap check."""
    if len(clock) < 2:
        return True
    one_lane = bool((lanes == lanes[0]).all() and (partitions == partitions[0]).all())
    return one_lane and bool((np.diff(offsets) > 0).all())


# --- lineage ---------------------------------------------------------------------------------------------------

STEP = np.dtype(">u4")
"""The type of a step in a row's `path`."""


class Lineage:
    """The forwarding steps that led to each row, one number per stage; a row directly from a topic has none.

    Rows with fewer steps sort first, then by the order of forwarding at each step. All operations work on whole
    columns: per row they would take longer than processing the record.
    """

    def __init__(self, steps: npt.NDArray[np.uint32], depths: Numbers) -> None:
        self._steps = steps
        self._depths = depths

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Lineage:
        """Read a column `path`."""
        paths = column.fill_null(b"").combine_chunks()
        paths = pa.concat_arrays(paths.chunks) if isinstance(paths, pa.ChunkedArray) else paths
        _, bounds, data = paths.buffers()
        ends = np.frombuffer(bounds, np.int32, len(paths) + 1, paths.offset * 4).astype(np.int64)
        depths = np.diff(ends) // STEP.itemsize
        written = np.frombuffer(data, STEP, int(depths.sum()), int(ends[0])) if data is not None else np.empty(0, STEP)
        steps = np.zeros((len(depths), int(depths.max(initial=0))), np.uint32)
        steps[_is_step(depths)] = written
        return cls(steps, depths)

    @classmethod
    def first(cls, nth: Numbers) -> Lineage:
        """The lineage of rows that are the `nth` outputs of records directly from a topic."""
        return cls(nth.astype(np.uint32)[:, None], np.ones(len(nth), np.int64))

    def next(self, causes: Numbers, nth: Numbers) -> Lineage:
        """The lineage of rows that are the `nth` outputs of the rows at `causes`."""
        steps, depths = self._steps[causes], self._depths[causes]
        longer = np.concatenate([steps, np.zeros((len(steps), 1), np.uint32)], axis=1)
        longer[np.arange(len(steps)), depths] = nth
        return Lineage(longer, depths + 1)

    def take(self, order: Sequence[int] | Numbers) -> Lineage:
        """The lineage of the rows at these indexes."""
        return Lineage(self._steps[order], self._depths[order])

    def slice(self, start: int, end: int) -> Lineage:
        """The lineage of the rows from `start` to before `end`."""
        return Lineage(self._steps[start:end], self._depths[start:end])

    def column(self) -> pa.Array:
        """The lineage as a column `path`."""
        bounds = np.concatenate([[0], np.cumsum(self._depths * STEP.itemsize)]).astype(np.int32)
        written = self._steps[_is_step(self._depths)].astype(STEP)
        return pa.Array.from_buffers(
            pa.binary(), len(self._depths), [None, pa.py_buffer(bounds), pa.py_buffer(written.tobytes())]
        )

    def sort_keys(self) -> list[npt.NDArray[np.generic]]:
        """Columns for `numpy.lexsort`, the least significant first."""
        return [*reversed(list(self._steps.T)), self._depths]


def _is_step(depths: Numbers) -> npt.NDArray[np.bool_]:
    """Which cells of the table of steps are used."""
    is_step: npt.NDArray[np.bool_] = np.arange(depths.max(initial=0)) < depths[:, None]
    return is_step
