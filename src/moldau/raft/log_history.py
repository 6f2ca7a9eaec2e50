"""What the core knows of its log: where it begins and ends, and which epoch began at which offset.

It mirrors the log on disk, in the order in which the core decides to change it: the shell carries the changes out
later, in the same order. No records are kept. Start at `LogHistory.is_prefix`, by which a leader judges a follower.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["UNKNOWN_EPOCH", "EpochEnd", "LogHistory", "SnapshotId"]

UNKNOWN_EPOCH: Final = -1


class SnapshotId(NamedTuple):
    """A snapshot of everything below `end_offset`, whose last record was written in `epoch`."""

    end_offset: int
    epoch: int


class EpochEnd(NamedTuple):
    """An epoch, and the first offset after its last record."""

    epoch: int
    end_offset: int


class LogHistory:
    """Begin, end, epochs and the newest snapshot of a log."""

    __slots__ = ("_epochs", "_starts", "end_offset", "snapshot", "start_epoch", "start_offset")

    def __init__(
        self,
        *,
        start_offset: int = 0,
        start_epoch: int = 0,
        end_offset: int | None = None,
        epochs: Sequence[tuple[int, int]] = (),
        snapshot: SnapshotId | None = None,
    ) -> None:
        self.start_offset = start_offset
        self.start_epoch = start_epoch
        """The epoch of the record before the first; `UNKNOWN_EPOCH` if that is not known any more."""
        self.end_offset = start_offset if end_offset is None else end_offset
        self.snapshot = snapshot
        """The newest snapshot, which may end before or after the log's start."""
        self._epochs = [epoch for epoch, _ in epochs]
        self._starts = [max(start, start_offset) for _, start in epochs]

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each epoch with its first offset."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; before the first one that of the snapshot, or 0."""
        return self._epochs[-1] if self._epochs else max(self.start_epoch, 0)

    def epoch_before(self, offset: int) -> int:
        """The epoch of the record just before `offset`, which must be in the log or at its end."""
        index = bisect_left(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else self.start_epoch

    def is_prefix(self, offset: int, epoch: int) -> bool:
        """Whether a log that ends at `offset` with a record of `epoch` is the beginning of this one.

        Two logs with the same epoch at the same offset are equal up to it, because an epoch has one leader.
        """
        return self.start_offset <= offset <= self.end_offset and self.epoch_before(offset) == epoch

    def end_of(self, epoch: int) -> EpochEnd:
        """The newest epoch up to `epoch` that this log has, and where it ends."""
        index = bisect_right(self._epochs, epoch)
        end = self._starts[index] if index < len(self._starts) else self.end_offset
        return EpochEnd(self._epochs[index - 1] if index else self.start_epoch, end)

    def append(self, last_offset: int, epoch: int) -> None:
        if epoch > (self._epochs[-1] if self._epochs else UNKNOWN_EPOCH):
            self._epochs.append(epoch)
            self._starts.append(self.end_offset)
        self.end_offset = last_offset + 1

    def truncate(self, end_offset: int) -> None:
        """Forget everything from `end_offset` on."""
        kept = bisect_left(self._starts, end_offset)
        del self._epochs[kept:], self._starts[kept:]
        self.end_offset = end_offset

    def start_at(self, snapshot: SnapshotId) -> None:
        """Forget everything: the log continues after a snapshot."""
        self._epochs, self._starts = [], []
        self.start_offset = self.end_offset = snapshot.end_offset
        self.start_epoch = snapshot.epoch
        self.snapshot = snapshot

    def trim(self, start_offset: int) -> None:
        """Forget what lies below `start_offset`, which a snapshot has."""
        if start_offset <= self.start_offset:
            return
        self.start_epoch = self.epoch_before(start_offset)
        kept = bisect_right(self._starts, start_offset) - 1
        if kept >= 0:
            del self._epochs[:kept], self._starts[:kept]
            self._starts[0] = max(self._starts[0], start_offset)
            if start_offset >= self.end_offset:
                self._epochs, self._starts = [], []
        self.start_offset = start_offset
