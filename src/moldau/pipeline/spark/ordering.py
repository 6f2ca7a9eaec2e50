"""The order in which a task takes the records of one batch: Kafka Streams' own, whatever way the rows came.

Within a topic partition it is offset order. Between partitions the one whose next record has the smallest timestamp
goes first; of equals the earlier source, then the lower partition. Taking the smallest head each time is the same as
sorting by the largest timestamp *so far* in each partition (`clocks`), which NumPy does quickly, and it does not matter
where batches are cut. Behind a repartition, records come in the order of the input records that caused them, and those
of one input record first in, first out: what came over fewer repartitionings, then what was forwarded first (`path`).
Start at `taken_order`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["AFTER_ALL", "BEFORE_ALL", "Numbers", "clocks", "is_sorted", "next_path", "taken_order"]

Numbers = npt.NDArray[np.int64]

AFTER_ALL = 2**63 - 1
"""The clock of what no single record caused: a commit, a wall-clock punctuation."""

BEFORE_ALL = -(2**63)
"""The clock of rows of global tables, which tasks know before they take any other record of the batch."""


def clocks(timestamps: Numbers, lanes: Numbers, partitions: Numbers, offsets: Numbers) -> Numbers:
    """For each record the largest timestamp in its topic partition up to and including itself."""
    order = np.lexsort((offsets, partitions, lanes))
    found = np.empty_like(timestamps)
    found[order] = _running_maximum(timestamps[order], lanes[order], partitions[order])
    return found


def _running_maximum(timestamps: Numbers, lanes: Numbers, partitions: Numbers) -> Numbers:
    changes = np.flatnonzero((np.diff(lanes) != 0) | (np.diff(partitions) != 0)) + 1
    return np.concatenate([np.maximum.accumulate(piece) for piece in np.split(timestamps, changes)])


def taken_order(
    clock: Numbers, lanes: Numbers, partitions: Numbers, offsets: Numbers, paths: Sequence[bytes | None] | None
) -> Sequence[int]:
    """The indexes of the rows in the order in which a task takes them; `paths` only where some row has one."""
    if paths is None:
        order: list[int] = np.lexsort((offsets, partitions, lanes, clock)).tolist()
        return order
    numbers = (column.tolist() for column in (clock, lanes, partitions, offsets))
    keys = list(zip(*numbers, (len(path or b"") for path in paths), (path or b"" for path in paths), strict=True))
    return sorted(range(len(keys)), key=keys.__getitem__)


def is_sorted(clock: Numbers, lanes: Numbers, partitions: Numbers, offsets: Numbers) -> bool:
    """Whether rows of one topic partition already lie as they are to be taken: the common case, and a quick look."""
    if len(clock) < 2:
        return True
    one_lane = bool((lanes == lanes[0]).all() and (partitions == partitions[0]).all())
    return one_lane and bool((np.diff(offsets) > 0).all())


def next_path(path: bytes | None, forwarded: int) -> bytes:
    """The path of a record's `forwarded`-th offspring: sorts as the order of forwarding, at every depth."""
    return (path or b"") + forwarded.to_bytes(4, "big")
