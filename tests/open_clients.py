"""A test that leaves a Kafka client open fails: the client goes on connecting to a broker that is gone.

A client of librdkafka is one thread named `rdk:main`, so the threads of this process tell how many are open, whoever
made them. Start at `no_client_is_left_open`, which `conftest.py` gives to every test.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["count", "no_client_is_left_open"]

ENDING_S = 10.0
"""How long clients get that are just ending, some of them in threads of their own."""

LEAKING_PARTS = {
    "tests/integration/test_topic_log.py::test_a_log_outlives_its_broker[killed]": (
        "confluent_kafka keeps the exception of a transactional producer whose abort fails because it was fenced"
    ),
}
"""Tests that are known to leave clients open, and why. A line goes when its cause is mended."""

_TASKS = Path("/proc/self/task")


@pytest.fixture(autouse=True)
def no_client_is_left_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a client open; clients of a fixture of the module or session are that fixture's."""
    before, failed_before = count(), request.session.testsfailed
    yield
    if request.session.testsfailed > failed_before or request.node.nodeid.startswith(tuple(LEAKING_PARTS)):
        return  # the traceback of a failed test keeps its clients alive
    request.node.funcargs.clear()  # pytest refers to the values of fixtures until after their teardown
    left_open = _left_open(before)
    if left_open:
        pytest.fail(f"{left_open} Kafka client(s) left open: close each, and refer to no AdminClient", pytrace=False)


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


def _left_open(before: int) -> int:
    """How many clients more than `before` there are, after some time for those that are ending."""
    deadline = time.monotonic() + ENDING_S
    while count() > before:
        gc.collect()  # ends those that only a reference cycle kept alive
        if count() > before and time.monotonic() > deadline:
            return count() - before
        time.sleep(0.05)
    return 0
