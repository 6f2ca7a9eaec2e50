"""The lock that a run holds in Spark's Java process, between the runs of one process and of two."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.pipeline.spark.driver.process_lock import ProcessLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 30


def test_the_next_run_of_a_process_has_the_lock_when_the_last_one_lets_go(spark: SparkSession, tmp_path: Path) -> None:
    first, second = (ProcessLock(spark, tmp_path / "lock") for _ in range(2))
    assert first.acquire(PATIENCE_S)

    assert not second.acquire(0.1)
    assert not is_free(tmp_path / "lock"), "whoever waits in vain must not lose it for its holder"
    first.release()
    assert second.acquire(PATIENCE_S)

    second.release()
    assert is_free(tmp_path / "lock")


def test_another_process_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as ours:
        fcntl.lockf(ours, fcntl.LOCK_EX)
        lock = ProcessLock(spark, tmp_path / "lock")
        assert not lock.acquire(0.1)

    assert lock.acquire(PATIENCE_S)
    lock.release()


def is_free(file: Path) -> bool:
    """For this process, which is not Java's."""
    with file.open("r+") as ours:
        try:
            fcntl.lockf(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
