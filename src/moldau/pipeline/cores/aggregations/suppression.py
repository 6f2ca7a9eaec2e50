"""Suppression (KIP-328): hold back changes of a table until their window closes or a time limit passes.

Time is the largest timestamp this operator has seen. Each record first releases the changes that are due, earliest
first; then, if the buffer is over its limits, the earliest are emitted early or the pipeline stops. Start at
`SuppressProcessor`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import BufferFullError
from moldau.pipeline.cores.processor import Processor, TableView
from moldau.pipeline.cores.records import NO_TIMESTAMP, Change, InputRecord, Record, ValueAndTimestamp
from moldau.pipeline.cores.stores.suppression_buffer import HeldChange, SuppressionBuffer
from moldau.pipeline.ir import nodes as ir

__all__ = ["SuppressProcessor"]


class SuppressProcessor(Processor):
    """The suppressed form of a table."""

    def __init__(self, node: ir.Suppress, context: TaskContext) -> None:
        super().__init__(node, context)
        self._is_final = node.until_window_close
        self._wait_ms = node.grace_ms if self._is_final else node.wait_ms
        self._max_records, self._max_bytes = node.max_records, node.max_bytes
        self._is_strict = node.is_strict
        self._codec = context.codec(node.buffer)
        self._buffer = SuppressionBuffer(context.backend(node.buffer.store))
        self._observed = context.cell(f"time of {node.name}", NO_TIMESTAMP)
        context.at_flush.append(self._buffer.flush)
        if node.input.name in context.views:
            context.views[node.name] = _SuppressedView(self._buffer, context, node)

    def process(self, record: Record) -> None:
        self._observed.value = max(self._observed.value, record.timestamp)
        self._hold(record)
        due = self._observed.value - self._wait_ms
        buffer = self._buffer
        while (earliest := buffer.earliest_time) is not None and earliest <= due:
            self._release_first()
        if self._is_too_full():
            self._make_room()

    def _hold(self, record: Record) -> None:
        key, change, timestamp, headers = record
        new, old = change[0], change[1]
        encode = self._codec.encode_value
        old_bytes = None if old is None else encode(old)
        topic, partition, offset = self.context.place or ("", -1, -1)
        change = HeldChange(
            time=key.window.end if self._is_final else timestamp,
            prior=old_bytes,
            old=old_bytes,
            new=None if new is None else encode(new),
            timestamp=timestamp,
            headers=headers,
            topic=topic,
            partition=partition,
            offset=offset,
        )
        self._buffer.put(self._codec.encode_key(key), change)

    def _release_first(self) -> None:
        key_bytes, held = self._buffer.first()
        # The tombstone of a closed window is dropped: nothing was emitted downstream for that window.
        if held.new is not None or not self._is_final:
            decode = self._codec.decode_value
            new = None if held.new is None else decode(held.new)
            old = None if held.old is None else decode(held.old)
            at_hand = self.context.current
            self.context.current = InputRecord(
                held.topic, held.partition, held.offset, held.timestamp, held.headers, None, None
            )
            self.forward(Record(self._codec.decode_key(key_bytes), Change(new, old), held.timestamp, held.headers))
            self.context.current = at_hand
        self._buffer.remove_first()

    def _is_too_full(self) -> bool:
        return (self._max_records is not None and len(self._buffer) > self._max_records) or (
            self._max_bytes is not None and self._buffer.bytes_held > self._max_bytes
        )

    def _make_room(self) -> None:
        if self._is_strict:
            raise BufferFullError(
                f"{self.node.name} ({self.node.origin}): the buffer holds {len(self._buffer)} records "
                f"(at most {self._max_records}) and {self._buffer.bytes_held} bytes (at most {self._max_bytes}); "
                "raise the limit, or use emit_early_when_full",
                self.context.place,
                self.node.name,
                self.node.origin,
            )
        while self._is_too_full():
            self._release_first()


class _SuppressedView:
    """The table as seen downstream: of a held key, the last emitted value."""

    def __init__(self, buffer: SuppressionBuffer, context: TaskContext, node: ir.Suppress) -> None:
        self._buffer = buffer
        self._codec = context.codec(node.buffer)
        self._source: TableView = context.view(node.input)

    def get(self, key: Any) -> ValueAndTimestamp | None:
        held = self._buffer.get(self._codec.encode_key(key))
        if held is None:
            return self._source.get(key)
        return None if held.prior is None else ValueAndTimestamp(self._codec.decode_value(held.prior), NO_TIMESTAMP)
