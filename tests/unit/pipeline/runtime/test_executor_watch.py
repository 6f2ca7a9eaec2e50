"""An application without executors says so, not at once and not all the time."""

from __future__ import annotations

import pytest

from moldau.pipeline.runtime.executor_watch import PATIENCE_S, REMINDER_S, ExecutorWatch


class Given:
    master = "spark://here:7077"

    def __init__(self, executors: int) -> None:
        self.executors = executors

    def count(self) -> int:
        return self.executors


def test_executors_have_time_to_come(caplog: pytest.LogCaptureFixture) -> None:
    watch = ExecutorWatch("app", Given(0))
    watch.look(0.0)
    watch.look(PATIENCE_S - 1)

    assert caplog.messages == []


def test_missing_executors_are_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    watch = ExecutorWatch("app", Given(0))
    for second in range(int(PATIENCE_S + REMINDER_S) + 1):
        watch.look(float(second))

    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith("app: no executor from spark://here:7077 for 10 s")


def test_executors_that_come_after_all_are_told(caplog: pytest.LogCaptureFixture) -> None:
    given = Given(0)
    watch = ExecutorWatch("app", given)
    watch.look(0.0)
    watch.look(PATIENCE_S)
    given.executors = 2
    watch.look(PATIENCE_S + 1)
    watch.look(PATIENCE_S + 2)

    assert caplog.messages[1:] == ["app: spark://here:7077 has provided 2 executors"]


def test_on_one_machine_there_is_nothing_to_watch(caplog: pytest.LogCaptureFixture) -> None:
    ExecutorWatch("app", None).look(0.0)

    assert caplog.messages == []
