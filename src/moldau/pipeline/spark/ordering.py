"""The order in which a task takes the records of one batch: Kafka Streams' own, whatever way the rows came.

Within a topic partition it is offset order. Between partitions the one whose next record has the smallest timestamp
goes first; of equals the earlier source, then the lower partition. Taking the smallest head each time is the same as
sorting by the largest timestamp *so far* in each partition (`clocks`), which NumPy does quickly, and it does not matter
where batches are cut. Behind a repartition, records come in the order of the input records that caused them, and those
of one input record first in, first out: what came over fewer repartitionings, then what was forwarded first (`path`).
Start at `taken_order`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from moldau.pipeline.spark.offspring import Offspring

__all__ = ["AFTER_ALL", "BEFORE_ALL", "Numbers", "clocks", "is_sorted", "taken_order"]

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
    clock: Numbers, lanes: Numbers, partitions: Numbers, offsets: Numbers, offspring: Offspring | None
) -> Numbers:
    """The indexes of the rows in the order in which a task takes them; `offspring` only where some row has steps."""
    keys = [*(offspring.sort_keys() if offspring is not None else ()), offsets, partitions, lanes, clock]
    varied = [key for key in keys if len(key) and (key != key[0]).any()]
    order: Numbers = np.lexsort(varied) if varied else np.arange(len(clock))
    return order


def is_sorted(clock: Numbers, lanes: Numbers, partitions: Numbers, offsets: Numbers) -> bool:
    """Whether rows of one topic partition already lie as they are to be taken: the common case, and a quick look."""
    if len(clock) < 2:
        return True
    one_lane = bool((lanes == lanes[0]).all() and (partitions == partitions[0]).all())
    return one_lane and bool((np.diff(offsets) > 0).all())
