from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from moldau.connect.api.errors import ConnectError, DataError, RetriableError
from moldau.connect.runtime.tolerance import ErrorSettings, FailedRecord, SkippedError, Stage, Tolerance
from moldau.core.errors import ServiceError


class Noted:
    def __init__(self) -> None:
        self.failed: list[FailedRecord] = []

    def report(self, failed: FailedRecord) -> None:
        self.failed.append(failed)


def failing(error: Exception) -> Callable[[], int]:
    def step() -> int:
        raise error

    return step


def tolerance(noted: Noted, **settings: str) -> Tolerance:
    config = {f"errors.{name.replace('_', '.')}": text for name, text in settings.items()}
    return Tolerance(ErrorSettings.of(config), "c-0", threading.Event(), (noted,))


def test_without_tolerance_a_failure_goes_on_and_is_not_reported() -> None:
    noted = Noted()
    with pytest.raises(ConnectError, match="VALUE_CONVERTER"):
        tolerance(noted).run(failing(DataError("bad")), Stage.VALUE_CONVERTER, "X", None)
    assert noted.failed == []


def test_with_tolerance_a_record_is_reported_and_skipped() -> None:
    noted = Noted()
    tolerant = tolerance(noted, tolerance="all")
    with pytest.raises(SkippedError):
        tolerant.run(failing(ValueError("bad")), Stage.TRANSFORMATION, "X", "the record")
    assert [(one.stage, one.record) for one in noted.failed] == [(Stage.TRANSFORMATION, "the record")]
    assert (tolerant.failures, tolerant.skipped) == (1, 1)


@pytest.mark.parametrize(
    ("error", "stage"), [(ValueError("bad"), Stage.TASK_PUT), (ServiceError("registry away"), Stage.VALUE_CONVERTER)]
)
def test_some_failures_are_never_tolerated(error: Exception, stage: Stage) -> None:
    with pytest.raises(ConnectError):
        tolerance(Noted(), tolerance="all").run(failing(error), stage, "X", None)


def test_a_retriable_failure_is_tried_again_within_its_time() -> None:
    calls: list[int] = []

    def step() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise RetriableError("not yet")
        return "done"

    tolerant = tolerance(Noted(), retry_timeout="-1", retry_delay_max_ms="1")
    assert tolerant.run(step, Stage.KEY_CONVERTER, "X", None) == "done"
    assert tolerant.retries == 2
