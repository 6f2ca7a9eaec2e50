"""What Spark's words about its workers come down to."""

from __future__ import annotations

from moldau.pipeline.spark.failures import worker_trouble


def test_a_missing_python_is_named() -> None:
    text = 'java.io.IOException: Cannot run program "/opt/app/bin/python3": error=2, No such file or directory'

    assert "a Spark worker has no /opt/app/bin/python3" in str(worker_trouble(text))


def test_a_worker_without_moldau_is_told_from_one_without_a_users_module() -> None:
    text = "pyspark.serializers.SerializationError: Caused by ...\nModuleNotFoundError: No module named '{}'"

    assert "install moldau there" in str(worker_trouble(text.format("moldau")))
    assert "cannot import pricing: install it there" in str(worker_trouble(text.format("pricing")))


def test_other_failures_are_not_explained_here() -> None:
    assert worker_trouble("org.apache.kafka.common.errors.TimeoutException") is None
