"""What Spark's Java process says on standard error: kept while it starts, passed on afterwards.

Starting Spark prints a page of advice that is not for the user of a pipeline, so it is shown only where the start
fails. Later output passes: it is where prints of a user's functions arrive. Start at `LaunchOutput`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LaunchOutput"]

STDERR = 2
KEPT_LINES = 40
CHATTER = (b"Starting Streaming TransformWithState", b"Streaming TransformWithState")
"""How lines begin that PySpark's own workers print about themselves; an empty one follows each."""

LAST_WORDS_S = 1.0


class LaunchOutput:
    """The standard error of a child that is started inside `captured`, until `release`d."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._is_released = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def captured(self) -> Iterator[None]:
        """Children started in this block inherit our end of a pipe in place of standard error."""
        sys.stderr.flush()
        original = os.dup(STDERR)
        reading, writing = os.pipe()
        os.dup2(writing, STDERR)
        os.close(writing)
        self._thread = threading.Thread(target=self._relay, args=(reading, original), name="spark-stderr", daemon=True)
        self._thread.start()
        try:
            yield
        finally:
            os.dup2(original, STDERR)

    def release(self) -> None:
        """Let everything through from now on."""
        self._is_released.set()

    def last_words(self) -> str:
        """The last lines that were held back, for a child that has ended."""
        if self._thread is not None:
            self._thread.join(LAST_WORDS_S)
        return "".join(self._lines)

    def _relay(self, reading: int, original: int) -> None:
        with os.fdopen(reading, "rb") as source, os.fdopen(original, "wb", buffering=0) as target:
            was_chatter = False
            for line in source:
                if not self._is_released.is_set():
                    self._lines.append(line.decode(errors="replace"))
                    continue
                is_chatter = line.startswith(CHATTER) or (was_chatter and not line.strip())
                was_chatter = is_chatter and bool(line.strip())
                if is_chatter:
                    continue
                try:
                    target.write(line)
                except OSError:
                    return
