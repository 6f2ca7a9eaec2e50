from __future__ import annotations

import pytest

from moldau.pipeline.cores.failures import ProcessingError, RecordPlace
from moldau.pipeline.ir.origin import Origin
from moldau.pipeline.spark.failures import WorkerError, cause_of, marking_failures


def test_a_failure_survives_what_spark_makes_of_it() -> None:
    error = ProcessingError("topic t, partition 1, offset 7: boom", RecordPlace("t", 1, 7), "MAP", Origin("app.py", 12))
    with pytest.raises(WorkerError) as raised, marking_failures():
        raise error

    found = cause_of(f"org.apache.spark.SparkException: Job aborted\n  {raised.value}\n\tat java.lang.Thread")

    assert found is not None
    assert str(found) == "topic t, partition 1, offset 7: boom"
    assert (found.kind, found.node, found.file, found.line) == ("ProcessingError", "MAP", "app.py", 12)


def test_what_spark_raises_itself_is_a_text() -> None:
    told = "topic t, partition 1, offset 7: the key cannot be read"
    found = cause_of(f"[USER_RAISED_EXCEPTION] <moldau-failure>{told}</moldau-failure> SQLSTATE: P0001")
    assert str(found) == told


def test_a_plan_that_could_raise_is_no_failure() -> None:
    plan = "Filter raise_error(concat(<moldau-failure>topic , topic#10, , partition , offset: no</moldau-failure>))"
    assert cause_of(f"disk full\n{plan}") is None


def test_other_exceptions_are_not_ours_to_explain() -> None:
    assert cause_of(ValueError("disk full")) is None


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), marking_failures():
        _ = 1 / 0
