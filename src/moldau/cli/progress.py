"""What is going on, while a person waits: one line on standard error that changes, and is gone when the work is done.

Where nobody looks (a pipe, a log file) there is no such line. Start at `live_line` and `Steps`.
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
    """`34 %  340,000 of 1,000,000  170,000/s`."""
    share = min(100, done * 100 // wanted) if wanted > 0 else 100
    rate = done / seconds if seconds > 0 else 0.0
    return f"{share:3d} %  {done:,} of {wanted:,}  {rate:,.0f}/s"


@contextmanager
def live_line(text: Callable[[float], str], *, stream: TextIO | None = None) -> Iterator[None]:
    """Show `text(seconds since the start)` until the block ends.

    It is asked for in a thread of its own ten times a second, so that whatever works in the block need not care.
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
    """Work of several steps, each told when it begins; a person sees it go on, and how long each step took."""

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
        """End the step under way, and begin the next."""
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
    """The line, drawn in a thread. What others write to the stream meanwhile goes above it."""

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
            # A line that the terminal breaks in two would not be cleared whole.
            with self._lock:
                self._put(CLEAR_LINE + text[: shutil.get_terminal_size().columns - 1])

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._ended.set()  # the terminal has gone; the work goes on

    # --- in place of sys.stderr

    def write(self, text: str) -> int:
        with self._lock:
            return self._stream.write(CLEAR_LINE + text if text.strip() else text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
