"""Counts the segment files that this process has open, and calls watchers above a limit.

One per process, like the limit on open files (RLIMIT_NOFILE). `log.manager` closes files, `server.process.descriptors`
sets the limit. Start at `OPEN_FILES`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

__all__ = ["OPEN_FILES", "OpenFiles"]


class OpenFiles:
    """Any thread may open and close files: sets and lists change in one step each."""

    def __init__(self) -> None:
        self.limit = sys.maxsize
        """Above this number watchers are called."""
        self._numbers: set[int] = set()
        self._watchers: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def are_many(self) -> bool:
        return len(self._numbers) > self.limit

    def watch(self, on_many: Callable[[], None]) -> None:
        """Have `on_many` called whenever a file is opened above the limit, in the thread that opened it."""
        self._watchers.append(on_many)

    def unwatch(self, on_many: Callable[[], None]) -> None:
        self._watchers.remove(on_many)

    def note_opened(self, fd: int) -> None:
        self._numbers.add(fd)
        if len(self._numbers) > self.limit:
            for on_many in tuple(self._watchers):
                on_many()

    def note_closing(self, fd: int) -> None:
        """Call this before the file is closed: afterwards the number may belong to another file."""
        self._numbers.discard(fd)


OPEN_FILES: Final = OpenFiles()
