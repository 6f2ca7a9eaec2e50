"""What a thread is doing and since when: written by the thread, read by the watchdog.

A call that may block as long as a disk does is made inside `with activity:`; `broker.health.watchdog` logs calls that
take too long. Start at `Activity`.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

__all__ = ["Activity"]


class Activity:
    """Used by one thread at a time. Reading needs no lock: both fields are replaced, never mutated."""

    __slots__ = ("name", "patience_s", "since_s", "thread_id")

    def __init__(self, name: str, *, patience_s: float) -> None:
        self.name = name
        """As in a log line: "a metadata write"."""
        self.patience_s = patience_s
        """A longer call is logged."""
        self.since_s: float | None = None
        """By the monotonic clock; `None` while idle."""
        self.thread_id = 0

    def __enter__(self) -> None:
        self.thread_id = threading.get_ident()
        self.since_s = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.since_s = None
