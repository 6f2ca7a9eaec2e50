"""Passes rows to a stateful processor as Arrow batches, where PySpark would create a Python object per row.

PySpark passes rows to a `transformWithState` processor one by one, converted from Arrow cell by cell: 10 µs for each
row. The data already exists as Arrow batches, so `receive_groups`, called while a worker unpickles one of our
processors, makes the loader of *this* Spark task return whole groups: each looks like a batch with one row and one
cell, which is the group's part of the real batch. Other Spark tasks in the same worker keep PySpark's behaviour.

This depends on internals of PySpark, so it is used only with versions for which it was tested. With others the driver
plans the public way, `bundling`. Start at `are_known` and `receive_groups`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Group", "are_known", "pieces", "receive_groups"]

KNOWN_VERSIONS = ("4.3.",)
"""The beginnings of the PySpark versions whose workers read groups the way that `Group` imitates."""

KEY = "slot"

_tasks_with_groups: set[int] = set()
_is_installed = False


def are_known() -> bool:
    """Whether the installed PySpark is one whose processors can receive groups."""
    import pyspark
    from pyspark.sql.pandas import serializers

    return pyspark.__version__.startswith(KNOWN_VERSIONS) and hasattr(serializers, "ArrowStreamSerializer")


def receive_groups() -> None:
    """Make the current Spark task's processor get rows whose only cell is a `RecordBatch`; no effect on the driver."""
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:
        return
    _install()
    _tasks_with_groups.clear()
    _tasks_with_groups.add(task.taskAttemptId())


def _wants_groups() -> bool:
    from pyspark import TaskContext

    task = TaskContext.get()
    return task is not None and task.taskAttemptId() in _tasks_with_groups


def _install() -> None:
    global _is_installed
    if _is_installed:
        return
    from pyspark.sql.pandas import serializers

    _is_installed = True
    Batches: Any = serializers.ArrowStreamSerializer  # noqa: N806
    Batches.load_stream = _loading(Batches.load_stream)


def _loading(load_batches: Callable[..., Any]) -> Callable[..., Any]:
    def load_stream(self: Any, stream: Any) -> Iterator[Any]:
        batches = load_batches(self, stream)
        return (Group(*piece) for piece in pieces(batches)) if _wants_groups() else batches

    return load_stream


class Group:
    """Rows of one group in the shape of a record batch with one row; PySpark's worker sees no difference."""

    num_rows = 1
    num_columns = 1
    schema: ClassVar[Any] = SimpleNamespace(names=["group"])

    def __init__(self, slot: int, rows: pa.RecordBatch) -> None:
        self._slot = (_Cell(slot),)
        self._rows = (_Cell(rows),)

    def __getitem__(self, column: int) -> tuple[_Cell]:
        """A grouping column; there is one."""
        return self._slot

    def column(self, column: int) -> tuple[_Cell]:
        return self._rows


class _Cell:
    """A cell of a `Group`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def as_py(self) -> Any:
        return self._value


def pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each batch split where the slot changes; rows of one slot are contiguous."""
    for batch in batches:
        keys = batch.column(batch.schema.get_field_index(KEY)).to_numpy()
        start = 0
        while start < len(keys):
            end = start + int((keys[start:] != keys[start]).argmax()) if keys[-1] != keys[start] else len(keys)
            yield int(keys[start]), batch.slice(start, end - start)
            start = end
