"""A disk that blocks on writes to some of its files until it is released. Start at `StalledFiles.stalled`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moldau.log.files import Files

__all__ = ["StalledFiles"]

LONGEST_STALL_S = 60.0
"""The longest wait, so that a failing test does not hang."""


class StalledFiles(Files):
    def __init__(self) -> None:
        self._part: str | None = None
        self._gate = threading.Event()
        self._reached = threading.Event()

    @contextmanager
    def stalled(self, part: str) -> Iterator[None]:
        """Within the `with` block every change of a file with `part` in its path blocks."""
        self._gate.clear()
        self._reached.clear()
        self._part = part
        try:
            yield
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Unblock the disk before the end of the `with` block."""
        self._part = None
        self._gate.set()

    def wait_until_reached(self) -> None:
        """Return once a thread is blocked by the disk."""
        assert self._reached.wait(LONGEST_STALL_S), f"nobody has touched {self._part}"

    def _wait(self, path: str) -> None:
        if self._part is not None and self._part in path:
            self._reached.set()
            self._gate.wait(LONGEST_STALL_S)

    def _wait_for(self, fd: int) -> None:
        if self._part is not None:
            self._wait(os.readlink(f"/proc/self/fd/{fd}"))

    def write(self, fd: int, data: Any) -> int:
        self._wait_for(fd)
        return os.write(fd, data)

    def open_append(self, path: str) -> int:
        self._wait(path)
        return super().open_append(path)

    def truncate(self, fd: int, size: int) -> None:
        self._wait_for(fd)
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._wait_for(fd)
        super().sync(fd)

    def rename(self, old: str, new: str) -> None:
        self._wait(old)
        super().rename(old, new)

    def make_directory(self, path: str) -> None:
        self._wait(path)
        super().make_directory(path)
