"""Rows that come of a record, and of each other: by which forwardings each was reached, a number for every stage.

They sort as a task would have taken the records: those with fewer steps first, then in the order of forwarding at each
of them. All is done for whole columns at once; a row on its own would take longer than the record it carries. Start at
`Offspring`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Offspring"]

Numbers = npt.NDArray[np.int64]
STEP = np.dtype(">u4")
"""How a step is written in a row's `path`."""


class Offspring:
    """The steps of some rows; a row straight from a topic has none."""

    def __init__(self, steps: npt.NDArray[np.uint32], depths: Numbers) -> None:
        self._steps = steps
        self._depths = depths

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Offspring:
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
    def first(cls, nth: Numbers) -> Offspring:
        """Rows that are the `nth` of records straight from a topic."""
        return cls(nth.astype(np.uint32)[:, None], np.ones(len(nth), np.int64))

    def next(self, causes: Numbers, nth: Numbers) -> Offspring:
        """Rows that are the `nth` of the rows at `causes`."""
        steps, depths = self._steps[causes], self._depths[causes]
        longer = np.concatenate([steps, np.zeros((len(steps), 1), np.uint32)], axis=1)
        longer[np.arange(len(steps)), depths] = nth
        return Offspring(longer, depths + 1)

    def taken(self, order: Sequence[int] | Numbers) -> Offspring:
        """Those of the rows at these indexes."""
        return Offspring(self._steps[order], self._depths[order])

    def slice(self, start: int, end: int) -> Offspring:
        """Those of the rows from one position up to another."""
        return Offspring(self._steps[start:end], self._depths[start:end])

    def column(self) -> pa.Array:
        """As a column `path`."""
        bounds = np.concatenate([[0], np.cumsum(self._depths * STEP.itemsize)]).astype(np.int32)
        written = self._steps[_is_step(self._depths)].astype(STEP)
        return pa.Array.from_buffers(
            pa.binary(), len(self._depths), [None, pa.py_buffer(bounds), pa.py_buffer(written.tobytes())]
        )

    def sort_keys(self) -> list[npt.NDArray[np.generic]]:
        """Columns for `numpy.lexsort`, the one that decides last first."""
        return [*reversed(list(self._steps.T)), self._depths]


def _is_step(depths: Numbers) -> npt.NDArray[np.bool_]:
    """Which cells of the table of steps are used."""
    is_step: npt.NDArray[np.bool_] = np.arange(depths.max(initial=0)) < depths[:, None]
    return is_step
