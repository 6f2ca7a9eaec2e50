"""The standard error of Spark's Java process: kept back while it starts, passed on afterwards.

Starting Spark prints a page of messages that users of a pipeline do not need, so it is shown only if the start fails.
Later output is passed on, because it includes prints of a user's functions; only messages of PySpark's workers and
Spark's queries about themselves are dropped. Start at `LaunchOutput`.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LaunchOutput", "without_chatter"]

STDERR = 2
KEPT_LINES = 40
LAST_WORDS_S = 1.0
CHATTER = (b"Starting Streaming TransformWithState", b"Streaming TransformWithState")
"""The beginnings of lines that workers of stateful queries print; an empty line follows each."""

TRACEBACK = (b"Traceback (most recent call last):", b"PySpark daemon failed to flush the output")
CHAIN = b"During handling of the above exception"
FRAME = b'  File "'
THEIR_FRAMES = re.compile(rb'  File "(?:<frozen |[^"]*/pyspark/|(?![^"]*/site-packages/)[^"]*/lib/python3)')
OTHER_END_CLOSED = (b"BrokenPipeError:", b"ConnectionResetError:")
"""A worker whose task Spark has ended, or that was idle for a minute, prints that its connection is closed.

A trace is dropped only if all its frames are PySpark's and Python's own code: then the pipe is the one to Spark.
Workers that print at the same time mix their lines, so a trace may lack its heading, or consist of its last line only.
"""

QUERY = b'Exception in thread "stream execution thread for '
JAVA_TRACE = (b"\tat ", b"\t... ", b"\tSuppressed: ", b"Caused by: ")
"""Dropped, because the caller reports a query's failure; a query that outlives Spark prints that Spark is gone."""


class LaunchOutput:
    """The standard error of a child process that is started inside `capture`, until `release` is called."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._is_released = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Child processes started in this block get a pipe to this process as standard error."""
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
        """Pass on everything from now on."""
        self._is_released.set()

    def last_words(self) -> str:
        """The last lines that were kept back, for a child process that has ended."""
        if self._thread is not None:
            self._thread.join(LAST_WORDS_S)
        return "".join(self._lines)

    def _relay(self, reading: int, original: int) -> None:
        with os.fdopen(reading, "rb") as source, os.fdopen(original, "wb", buffering=0) as target:
            for line in without_chatter(self._after_start(source)):
                try:
                    target.write(line)
                except OSError:
                    return

    def _after_start(self, source: Iterator[bytes]) -> Iterator[bytes]:
        for line in source:
            if self._is_released.is_set():
                yield line
            else:
                self._lines.append(line.decode(errors="replace"))


def without_chatter(lines: Iterator[bytes]) -> Iterator[bytes]:
    """All lines except those that PySpark's workers and Spark's queries print about themselves."""
    trace: list[bytes] = []
    is_after_chatter = False
    for line in _without_queries(lines):
        if line.startswith(TRACEBACK) or THEIR_FRAMES.match(line) or (trace and line.startswith(b" ")):
            trace.append(line)
            continue
        if trace and line.startswith(OTHER_END_CLOSED) and _are_theirs(trace, or_none=is_after_chatter):
            trace.clear()
            is_after_chatter = True
            continue
        yield from _lines_to_report(trace, is_after_chatter=is_after_chatter)
        trace.clear()
        if line.startswith(CHATTER):
            is_after_chatter = True
        elif not is_after_chatter or (line.strip() and not line.startswith((CHAIN, *OTHER_END_CLOSED))):
            is_after_chatter = False
            yield line
    yield from _lines_to_report(trace, is_after_chatter=True)


def _without_queries(lines: Iterator[bytes]) -> Iterator[bytes]:
    is_query = False
    for line in lines:
        is_query = line.startswith(QUERY) or (is_query and line.startswith(JAVA_TRACE))
        if not is_query:
            yield line


def _lines_to_report(trace: list[bytes], *, is_after_chatter: bool) -> list[bytes]:
    """The trace to pass on. A heading alone is dropped: it is left from two mixed traces, or from a killed worker."""
    is_rest = is_after_chatter and all(line.startswith(TRACEBACK) for line in trace)
    return [] if is_rest else trace


def _are_theirs(trace: list[bytes], *, or_none: bool) -> bool:
    """Whether all frames of a trace are PySpark's and Python's own."""
    frames = [line for line in trace if line.startswith(FRAME)]
    return all(map(THEIR_FRAMES.match, frames)) if frames else or_none
