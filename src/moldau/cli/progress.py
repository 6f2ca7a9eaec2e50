"""Progress display: a line on standard error that is updated, and removed when the work is done.

If standard error is not a terminal (a pipe, a log file), the line is not shown. Start at `live_line` and `Steps`.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

__all__ = ["Steps", "live_line", "render_progress"]

TICK_S = 0.1
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
CLEAR_LINE = "\r\x1b[2K"


def render_progress(done: int, wanted: int, seconds: float) -> str:
    """Progress as text: `34 %  340,000 of 1,000,000  170,000/s`."""
    share = min(100, done * 100 // wanted) if wanted > 0 else 100
    rate = done / seconds if seconds > 0 else 0.0
    return f"{share:3d} %  {done:,} of {wanted:,}  {rate:,.0f}/s"


@contextmanager
def live_line(text: Callable[[float], str], *, stream: TextIO | None = None) -> Iterator[None]:
    """Show `text(seconds since the start)` until the block ends.

    A separate thread calls it ten times a second, so the code in the block need not update the line.
    """
    target = stream or sys.stderr
    if not target.isatty():
        yield
        return
    line = _Line(target, text)
    usual, sys.stderr = sys.stderr, line if stream is None else sys.stderr
    try:
        line.start()
        yield
    finally:
        sys.stderr = usual
        line.stop()


class Steps:
    """Shows work of several steps: each step when it begins, its progress, and on a terminal the time it took."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._text = ""
        self._began = 0.0
        self._line: _Line | None = None

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._finish(is_done=kind is None)

    def begin(self, text: str) -> None:
        """End the current step, and begin the next."""
        self._finish(is_done=True)
        self._text, self._began = text, time.monotonic()
        if self._stream.isatty():
            self._line = _Line(self._stream, lambda seconds: f"{seconds:3.0f} s  {text}")
            self._line.start()
        else:
            print(f"· {text}", file=self._stream, flush=True)

    def _finish(self, *, is_done: bool) -> None:
        if self._line is not None:
            self._line.stop()
            self._line = None
            mark = "✓" if is_done else "✗"
            print(f"{mark} {self._text}  {time.monotonic() - self._began:.1f} s", file=self._stream, flush=True)


class _Line:
    """The progress line, drawn in a thread. Other output written through this object appears above it."""

    def __init__(self, stream: TextIO, text: Callable[[float], str]) -> None:
        self._stream = stream
        self._text = text
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        with self._lock:
            self._put(CLEAR_LINE)

    def _draw(self) -> None:
        tick = 0
        while not self._ended.wait(TICK_S):
            tick += 1
            text = f"{SPINNER[tick % len(SPINNER)]} {self._text(time.monotonic() - self._began)}"
            # A line that the terminal wraps would not be cleared completely.
            with self._lock:
                self._put(CLEAR_LINE + text[: shutil.get_terminal_size().columns - 1])

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._ended.set()  # the terminal is closed; the work continues

    # --- file methods, to replace sys.stderr

    def write(self, text: str) -> int:
        with self._lock:
            return self._stream.write(CLEAR_LINE + text if text.strip() else text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
