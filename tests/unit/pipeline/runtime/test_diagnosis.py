"""Pages of Spark's traces become one sentence, and it is known whether waiting helps."""

from __future__ import annotations

import json

import pytest

from moldau.client.errors import ClientError, UnreachableError
from moldau.pipeline.runtime.diagnosis import diagnose
from moldau.pipeline.runtime.errors import StateLostError

TIMEOUT = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted
JVM stacktrace:
org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.sql.X.run(X.scala:1)
Caused by: java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.TimeoutException: Timed out
\tat java.base/x
Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: listOffsets
"""
LOSS = """org.apache.spark.SparkException: [KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost because
they are not available in Kafka any more: partition clicks-1's starting offset was changed from 3 to 9"""


def test_a_users_mistake_has_its_line() -> None:
    facts = {"kind": "ProcessingError", "message": "app.py:12: oh no", "node": "n", "file": "app.py", "line": 12}
    found = diagnose(RuntimeError(f"pages <moldau-failure>{json.dumps(facts)}</moldau-failure> of text"))

    assert str(found.error) == "app.py:12: oh no"
    assert not found.is_passing


def test_a_cluster_that_does_not_answer_is_waited_for() -> None:
    found = diagnose(TIMEOUT)

    assert found.is_passing
    assert str(found.error).startswith("org.apache.kafka.common.errors.TimeoutException: Timed out waiting")


@pytest.mark.parametrize("error", [UnreachableError("nobody"), ClientError("busy")])
def test_a_client_that_may_try_again_does(error: ClientError) -> None:
    error.is_retriable = True

    assert diagnose(error).is_passing


def test_what_python_raised_has_its_kind() -> None:
    try:
        {}["missing"]
    except KeyError as error:
        found = diagnose(error)

    assert str(found.error) == "KeyError: 'missing'"
    assert not found.is_passing


def test_what_we_refuse_ourselves_stays_refused() -> None:
    refusal = StateLostError("state is gone")

    assert diagnose(refusal) == (refusal, False, False)


def test_deleted_records_are_told_with_the_way_out() -> None:
    found = diagnose(LOSS)

    assert not found.is_passing
    assert "records of clicks-1 were deleted" in str(found.error)
    assert "moldau.fail.on.data.loss=false" in str(found.error)


def test_a_dead_java_process_is_replaced() -> None:
    found = diagnose(ConnectionRefusedError("[Errno 111] Connection refused"))

    assert found.is_passing
    assert found.is_spark_gone


def test_an_unknown_failure_ends_the_application_with_its_innermost_cause() -> None:
    found = diagnose("java.lang.A Exception\nCaused by: java.lang.IllegalStateException: the reason\n\tat x")

    assert str(found.error) == "java.lang.IllegalStateException: the reason"
    assert not found.is_passing


def test_state_on_a_file_system_that_does_not_answer_is_waited_for_by_its_name() -> None:
    text = "java.net.ConnectException: Call From vm/10.0.0.1 to name-node:9000 failed on connection exception: java.net"
    found = diagnose(f"{text}.ConnectException: Connection refused; For more details see: http")

    assert found.is_passing
    assert str(found.error).startswith("state.dir cannot be used: Call From vm/10.0.0.1 to name-node:9000 failed")
    assert not found.is_spark_gone


def test_a_context_that_was_stopped_is_started_again() -> None:
    assert diagnose("java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.").is_spark_gone


def test_a_worker_that_starts_too_slowly_is_started_again() -> None:
    found = diagnose("org.apache.spark.SparkException: Python worker failed to connect back.")
    assert found.is_passing
    assert "Python worker failed to connect back" in str(found.error)
