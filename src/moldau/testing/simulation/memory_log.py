"""A log in memory that behaves as the one on disk: what was not synced may be gone after a power loss.

Two versions are kept: what a process sees, and what the disk has. `tests/property/test_memory_log.py` proves that it
does what `log.partition_log` does. Start at `MemoryLog.lose_power`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import takewhile
from random import Random
from typing import Generic, Protocol, TypeVar

from moldau.core.errors import ErrorCode, MoldauError

__all__ = ["DiskFullError", "LogEntry", "MemoryLog"]


class DiskFullError(MoldauError):
    """The disk has no room; nothing was written."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class LogEntry(Protocol):
    """A batch."""

    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...


Entry = TypeVar("Entry", bound=LogEntry)


def _last_offset(entry: LogEntry) -> int:
    return entry.last_offset


class MemoryLog(Generic[Entry]):
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.start_offset = 0
        self.end_offset = 0
        self.is_full = False
        self._synced: list[Entry] = []
        self._synced_start = 0
        self._is_cut = False

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """Each epoch with its first offset, as a leader-epoch checkpoint has them."""
        found: list[tuple[int, int]] = []
        for entry in self.entries:
            if not found or entry.epoch > found[-1][0]:
                found.append((entry.epoch, max(entry.base_offset, self.start_offset)))
        return found

    @property
    def synced_end_offset(self) -> int:
        return self._synced[-1].last_offset + 1 if self._synced else self._synced_start

    def has_synced(self, entry: Entry) -> bool:
        """Whether this very entry, or what a snapshot has of it, is on disk."""
        if entry.last_offset < self._synced_start:
            return True
        index = bisect_left(self._synced, entry.last_offset, key=_last_offset)
        return index < len(self._synced) and self._synced[index] == entry

    def read(self, offset: int, limit: int) -> list[Entry]:
        """At most `limit` entries from the one that has `offset` on."""
        index = bisect_left(self.entries, offset, key=_last_offset)
        return self.entries[index : index + limit]

    # --- changes ----------------------------------------------------------------------------------------

    def append(self, entry: Entry) -> None:
        if self.is_full:
            raise DiskFullError("no space left on the simulated disk")
        assert entry.base_offset == self.end_offset, (entry, self.end_offset)
        self.entries.append(entry)
        self.end_offset = entry.last_offset + 1

    def truncate_to(self, offset: int) -> None:
        """Remove the entry that has `offset` and all behind it."""
        if offset >= self.end_offset:
            return
        kept = bisect_left(self.entries, offset, key=_last_offset)
        del self.entries[kept:]
        self.end_offset = offset
        self._is_cut = True

    def start_at(self, offset: int) -> None:
        """Remove everything and continue at `offset`; that is synced with the snapshot it follows."""
        self.entries, self._synced = [], []
        self.start_offset = self.end_offset = offset
        self.flush()

    def trim(self, offset: int) -> None:
        """Remove entries wholly below `offset`; the log begins there."""
        del self.entries[: bisect_right(self.entries, offset - 1, key=_last_offset)]
        self.start_offset = max(self.start_offset, min(offset, self.end_offset))
        del self._synced[: bisect_right(self._synced, offset - 1, key=_last_offset)]
        self._synced_start = max(self._synced_start, self.start_offset)

    def flush(self) -> None:
        if self._is_cut or len(self._synced) > len(self.entries):
            self._synced = list(self.entries)
        else:
            self._synced += self.entries[len(self._synced) :]
        self._synced_start, self._is_cut = self.start_offset, False

    # --- the crash --------------------------------------------------------------------------------------

    def lose_power(self, random: Random | None = None) -> None:
        """Leave what was synced; with `random`, also a part of what was written since, as a disk may have done."""
        survivors: Sequence[Entry] = self._synced
        if random is not None and (not self._is_cut or random.random() < 0.5):
            # If the log was cut, either nothing of that reached the disk, or the cut and a part of what followed.
            survivors = self.entries[: random.randint(self._common(), len(self.entries))]
        self.entries = list(survivors)
        self.start_offset = self._synced_start
        self.end_offset = self.entries[-1].last_offset + 1 if self.entries else self.start_offset
        self.flush()

    def _common(self) -> int:
        """How many entries are synced and were not cut off since."""
        if not self._is_cut:
            return len(self._synced)
        both = zip(self._synced, self.entries, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
