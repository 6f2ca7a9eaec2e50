"""What a thread is busy with, and since when: written by the thread, read by whoever watches over it.

A call that may hang for as long as a disk does is made inside `with activity:`; `broker.health.watchdog` tells the
operator when one takes too long. Start at `Activity`.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

__all__ = ["Activity"]


class Activity:
    """One thread at a time does it. Reading needs no lock: both fields are replaced, never changed."""

    __slots__ = ("name", "patience_s", "since_s", "thread_id")

    def __init__(self, name: str, *, patience_s: float) -> None:
        self.name = name
        """As a log line has it: "a metadata write"."""
        self.patience_s = patience_s
        """Longer than this is worth a log line."""
        self.since_s: float | None = None
        """By the monotonic clock; `None` while nothing is being done."""
        self.thread_id = 0

    def __enter__(self) -> None:
        self.thread_id = threading.get_ident()
        self.since_s = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.since_s = None
