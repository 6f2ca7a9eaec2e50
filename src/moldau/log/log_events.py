"""Callbacks of a log to its owner: a segment was closed, a flush is due, a sync failed. Start at `LogEvents`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.log.errors import FatalDiskError, StorageError

if TYPE_CHECKING:
    from moldau.log.partition_log import PartitionLog
    from moldau.log.segments.segment import Segment

__all__ = ["LogEvents"]

log = logging.getLogger("moldau.log")


def _finish_roll(partition_log: PartitionLog, segment: Segment) -> None:
    partition_log.finish_roll(segment)


def _flush(partition_log: PartitionLog) -> None:
    try:
        partition_log.flush()
    except StorageError as error:  # the append that made it due has happened all the same
        log.error("%s", error)


def _ignore(_: FatalDiskError) -> None:
    """Do nothing: the error is raised as well."""


@dataclass(slots=True)
class LogEvents:
    """Callbacks of a log to its owner. The defaults do the work synchronously, which suits tests and tools."""

    on_roll: Callable[[PartitionLog, Segment], None] = _finish_roll
    """A segment was closed: the owner calls `finish_roll`, off the loop thread."""
    on_flush_due: Callable[[PartitionLog], None] = _flush
    """`flush.messages` is reached: the owner calls `flush`."""
    on_fatal: Callable[[FatalDiskError], None] = _ignore
    """A sync failed: the process has to stop."""
