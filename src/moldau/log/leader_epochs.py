"""Leader epochs of one partition: which epoch began at which offset.

Followers and consumers ask with an epoch where that epoch ended, and so find where two logs part ways.
Pure; `log.partition_log` loads and saves it as `leader-epoch-checkpoint`. Start at `LeaderEpochs.assign`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

__all__ = ["UNDEFINED_EPOCH", "UNDEFINED_OFFSET", "LeaderEpochs"]

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class LeaderEpochs:
    """Epochs and their start offsets, both increasing."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs = [epoch for epoch, _ in entries or ()]
        self._starts = [start for _, start in entries or ()]

    @classmethod
    def parse(cls, text: str) -> LeaderEpochs:
        """Read the checkpoint's text; raises `ValueError` when it is not one."""
        lines = text.splitlines()
        if len(lines) < 2 or lines[0] != "0":
            raise ValueError("not a leader epoch checkpoint of version 0")
        pairs = [line.split(" ") for line in lines[2:] if line]
        if len(pairs) != int(lines[1]):
            raise ValueError(f"{lines[1]} entries announced, {len(pairs)} found")
        epochs = cls()
        for epoch, start_offset in pairs:
            epochs.assign(int(epoch), int(start_offset))
        return epochs

    def render(self) -> str:
        lines = [f"{epoch} {start}\n" for epoch, start in self.entries]
        return f"0\n{len(lines)}\n{''.join(lines)}"

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int:
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`; return whether anything changed.

        Older entries that begin there or later never got a record and give way.
        """
        if epoch < 0 or (self._epochs and self._epochs[-1] == epoch and self._starts[-1] <= start_offset):
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    def epoch_of(self, offset: int) -> int:
        """The epoch that wrote `offset`, or -1 when it lies before all we know."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else UNDEFINED_EPOCH

    def end_offset_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and the offset where the next one begins."""
        if epoch < 0 or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        following = bisect_right(self._epochs, epoch)
        if following == len(self._epochs):
            return epoch, log_end_offset
        known = self._epochs[following - 1] if following else epoch
        return known, self._starts[following]

    def truncate_end(self, offset: int) -> bool:
        """Drop epochs that begin at or after `offset`; return whether any did."""
        before = len(self._epochs)
        while self._starts and self._starts[-1] >= offset:
            self._epochs.pop()
            self._starts.pop()
        return len(self._epochs) != before

    def truncate_start(self, offset: int) -> bool:
        """Forget what lies wholly below `offset`; the epoch that covers it now begins there."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0 or (index == 0 and self._starts[0] == offset):
            return False
        del self._epochs[:index]
        del self._starts[:index]
        self._starts[0] = offset
        return True

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
