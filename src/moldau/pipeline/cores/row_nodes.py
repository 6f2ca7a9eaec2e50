"""Operators that only typed rows have: columns from the record around a row, and the timestamp as a column."""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Builder, Processor
from moldau.pipeline.cores.records import Headers, Record
from moldau.pipeline.cores.row_functions import compiled
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.row_nodes import AddRecordColumns, SetTimestamp

__all__ = ["ROW_BUILDERS"]

_new = tuple.__new__


class RecordColumnsProcessor(Processor):
    """Appends to each row what its record has beside the value."""

    def __init__(self, node: AddRecordColumns, context: TaskContext) -> None:
        super().__init__(node, context)
        self._headers = node.headers
        self._has_window = node.has_window
        self.no_key = (None,) * (node.key_width + (2 if node.has_window else 0))

    def process(self, record: Record) -> None:
        key, row, timestamp, headers = record
        if row is not None:
            if self._headers:
                row += tuple(_header(headers, name) for name in self._headers)
            current = self.context.current
            place = (None, None) if current is None else (current[1], current[2])
            if key is None:
                row += (timestamp, *place, *self.no_key)
            elif self._has_window:
                row += (timestamp, *place, *key[0], *key[1])
            else:
                row += (timestamp, *place, *key)
        self.forward(_new(Record, (key, row, timestamp, headers)))


def _header(headers: Headers, name: str | None) -> Any:
    if name is None:
        return list(headers)
    return next((value for key, value in reversed(headers) if key == name), None)


class SetTimestampProcessor(Processor):
    """Replaces the timestamp of each record by that of a column."""

    def __init__(self, node: SetTimestamp, context: TaskContext) -> None:
        super().__init__(node, context)
        self._timestamp = compiled(node.timestamp, context.processing_log)

    def process(self, record: Record) -> None:
        key, row, _, headers = record
        timestamp = self._timestamp(key, row) if row is not None else record[2]
        if timestamp < 0:
            self.context.drop(self.node, "no timestamp")
            return
        self.forward(_new(Record, (key, row, timestamp, headers)))


ROW_BUILDERS: dict[type[ir.Node], Builder] = {
    AddRecordColumns: RecordColumnsProcessor,
    SetTimestamp: SetTimestampProcessor,
}
