"""Leader epochs of one partition: which epoch began at which offset.

Followers and consumers ask where an epoch ended, and so find where two logs diverge.
Pure; `log.partition_log` loads and saves it as `leader-epoch-checkpoint`. Start at `LeaderEpochs.assign`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

__all__ = ["UNDEFINED_EPOCH", "UNDEFINED_OFFSET", "LeaderEpochs"]

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class LeaderEpochs:
    """Epochs and their start offsets, both increasing.

    One thread changes it at a time; others may read meanwhile, because the two lists are replaced together.
    """

    __slots__ = ("_known",)

    def __init__(self, entries: Sequence[tuple[int, int]] = ()) -> None:
        self._known: tuple[list[int], list[int]] = ([], [])
        self._replace(entries)

    def _replace(self, entries: Sequence[tuple[int, int]]) -> None:
        self._known = ([epoch for epoch, _ in entries], [start for _, start in entries])

    @classmethod
    def parse(cls, text: str) -> LeaderEpochs:
        """Parse the checkpoint's text; raises `ValueError` when it is corrupt."""
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
        return list(zip(*self._known, strict=True))

    @property
    def latest(self) -> int:
        epochs = self._known[0]
        return epochs[-1] if epochs else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` begins at `start_offset`; return whether anything changed.

        Older entries that begin there or later never got a record and are removed.
        """
        entries = self.entries
        if epoch < 0 or (entries and entries[-1][0] == epoch and entries[-1][1] <= start_offset):
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        self._replace([*entries, (epoch, start_offset)])
        return True

    def epoch_of(self, offset: int) -> int:
        """The epoch in which `offset` was written, or -1 when it lies before all known epochs."""
        epochs, starts = self._known
        index = bisect_right(starts, offset) - 1
        return epochs[index] if index >= 0 else UNDEFINED_EPOCH

    def end_offset_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and the offset where the next one begins."""
        epochs, starts = self._known
        if epoch < 0 or not epochs or epoch > epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        following = bisect_right(epochs, epoch)
        if following == len(epochs):
            return epoch, log_end_offset
        return epochs[following - 1] if following else epoch, starts[following]

    def truncate_end(self, offset: int) -> bool:
        """Drop epochs that begin at or after `offset`; return whether any did."""
        entries = self.entries
        kept = [entry for entry in entries if entry[1] < offset]
        self._replace(kept)
        return len(kept) != len(entries)

    def truncate_start(self, offset: int) -> bool:
        """Drop epochs that end below `offset`; the epoch that covers it now begins there."""
        entries = self.entries
        covering = bisect_right(entries, offset, key=lambda entry: entry[1]) - 1
        if covering < 0 or (covering == 0 and entries[0][1] == offset):
            return False
        self._replace([(entries[covering][0], offset), *entries[covering + 1 :]])
        return True
