"""Kafka clients that a test leaves open: they go on connecting to a broker that is gone, and fill the output.

A client of librdkafka is one thread named `rdk:main`, so the threads of this process tell how many are open, whoever
made them. Start at `count`.
"""

from __future__ import annotations

import gc
from pathlib import Path

__all__ = ["count", "left_open"]

_TASKS = Path("/proc/self/task")


def count() -> int:
    """How many clients of librdkafka this process has; 0 where there is no /proc."""
    if not _TASKS.is_dir():
        return 0
    return sum(_name_of(task) == "rdk:main" for task in _TASKS.iterdir())


def _name_of(task: Path) -> str:
    try:
        return (task / "comm").read_text().strip()
    except OSError:
        return ""  # the thread has ended meanwhile


def left_open(before: int) -> int:
    """How many clients more than `before` somebody still refers to.

    Those that only a reference cycle kept alive are collected, and thereby closed, here.
    """
    if count() > before:
        gc.collect()
    return max(0, count() - before)
