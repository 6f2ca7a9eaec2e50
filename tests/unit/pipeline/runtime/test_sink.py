"""The rows of a batch on the driver: taken as they come, gone through again, and split by store."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from moldau.pipeline.runtime.sink import Results
from moldau.pipeline.spark.plan import OutputPoint

POINTS = [
    OutputPoint(0, "sink", "out", None),
    OutputPoint(1, "store:counts", None, "counts"),
    OutputPoint(2, "store:sums", None, "sums"),
]


def rows(*outputs: int) -> pa.RecordBatch:
    keys = [f"{number}".encode() for number in range(len(outputs))]
    return pa.record_batch({"output": pa.array(outputs, pa.int32()), "key": pa.array(keys, pa.binary())})


def test_rows_are_handed_on_before_the_last_task_has_ended() -> None:
    ended: list[str] = []

    def tasks() -> Iterator[pa.RecordBatch]:
        yield rows(0)
        ended.append("first")
        yield rows(0, 0)

    results = Results(tasks(), POINTS)
    assert next(iter(results)).num_rows == 1
    assert not ended
    results.wait_for_all()
    assert ended == ["first"]


def test_rows_can_be_gone_through_again() -> None:
    results = Results(iter([rows(0), rows(0, 1)]), POINTS)
    assert results.wait_for_first_row()
    assert [batch.num_rows for batch in results] == [1, 2]
    assert [batch.num_rows for batch in results] == [1, 2]


def test_batches_without_rows_are_nothing() -> None:
    assert not Results([rows(), rows()], POINTS).wait_for_first_row()
    assert Results([rows(), rows(0)], POINTS).wait_for_first_row()


def test_changes_are_split_by_store() -> None:
    found = dict(Results([rows(1, 0, 1), rows(0, 1)], POINTS).store_changes())
    assert {store: table["key"].to_pylist() for store, table in found.items()} == {"counts": [b"0", b"2", b"1"]}


def test_what_a_task_fails_with_reaches_whoever_waits() -> None:
    def tasks() -> Iterator[pa.RecordBatch]:
        yield rows(0)
        raise ValueError("a task failed")

    results = Results(tasks(), POINTS)
    assert results.wait_for_first_row()
    with pytest.raises(ValueError, match="a task failed"):
        results.wait_for_all()
