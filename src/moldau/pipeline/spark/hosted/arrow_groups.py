"""Passes groups of rows as Arrow batches to a stateful processor, where PySpark would create a Python object per row.

PySpark passes rows to a `transformWithState` processor one by one, converted from Arrow cell by cell: 10 µs for each
row in and out. The data already exists as Arrow batches, so `receive_batches`, called while a worker unpickles one of
our processors, makes the serializer of *this* Spark task pass whole batches in both directions. Other Spark tasks in
the same worker keep PySpark's behaviour. This depends on internals of the pinned PySpark version; a test fails when
they change. Start at `receive_batches`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["pieces", "receive_batches"]

_tasks_with_batches: set[int] = set()
_is_installed = False


def receive_batches() -> None:
    """Make the current Spark task's processor take and return `pyarrow.RecordBatch`es; does nothing on the driver."""
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:
        return
    _install()
    _tasks_with_batches.clear()
    _tasks_with_batches.add(task.taskAttemptId())


def _wants_batches() -> bool:
    from pyspark import TaskContext

    task = TaskContext.get()
    return task is not None and task.taskAttemptId() in _tasks_with_batches


def _install() -> None:
    global _is_installed
    if _is_installed:
        return
    from pyspark.sql.pandas import serializers

    _is_installed = True
    Rows: Any = serializers.TransformWithStateInPySparkRowSerializer  # noqa: N806
    Rows.load_stream = _loading(Rows.load_stream)
    Rows.dump_stream = _dumping(Rows.dump_stream)


def _loading(load_rows: Callable[..., Any]) -> Callable[..., Any]:
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer
    from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasFuncMode as Mode

    def load_stream(self: Any, stream: Any) -> Iterator[Any]:
        if not _wants_batches():
            yield from load_rows(self, stream)
            return
        (key_column,) = self.key_offsets
        batches = ArrowStreamSerializer.load_stream(self, stream)
        for key, group in groupby(pieces(batches, key_column), key=itemgetter(0)):
            yield Mode.PROCESS_DATA, (key,), (batch for _, batch in group)
        yield Mode.PROCESS_TIMER, None, None
        yield Mode.COMPLETE, None, None

    return load_stream


def _dumping(dump_rows: Callable[..., Any]) -> Callable[..., Any]:
    from pyspark.sql.pandas import serializers

    dump_batches: Callable[..., Any] = serializers.ArrowStreamUDFSerializer.dump_stream

    def dump_stream(self: Any, iterator: Iterator[Any], stream: Any) -> Any:
        if not _wants_batches():
            return dump_rows(self, iterator, stream)
        batches = ((batch, None) for ((results, _type),) in iterator for batch in results)
        return dump_batches(self, batches, stream)

    return dump_stream


def pieces(batches: Iterator[pa.RecordBatch], key_column: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each batch split where the key changes; rows of one key are contiguous."""
    for batch in batches:
        keys = batch.column(key_column).to_numpy()
        start = 0
        while start < len(keys):
            end = start + int((keys[start:] != keys[start]).argmax()) if keys[-1] != keys[start] else len(keys)
            yield int(keys[start]), batch.slice(start, end - start)
            start = end
