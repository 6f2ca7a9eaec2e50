"""Stream-stream joins: records with equal keys whose timestamps are within the window of each other.

A record is joined with the buffered records of the other side, then buffered itself. In a left or outer join an
unmatched record is held until the stream time of both sides is past its window and grace period, and then emitted
alone; without a grace period (deprecated windows) it is emitted at once, and again with each later match. Kafka Streams
does the same, including when it looks for closed windows. Start at `StreamJoinSide.process`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.calls import joiner_of
from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.processor import Processor
from moldau.pipeline.cores.records import NO_TIMESTAMP, Headers, Record
from moldau.pipeline.cores.stores.held_records import LEFT, RIGHT, HeldRecord, HeldRecords
from moldau.pipeline.cores.stores.join_buffer import JoinBuffer
from moldau.pipeline.ir.nodes import JoinKind, Materialization, StreamStreamJoin

__all__ = ["StreamJoinSide", "stream_join"]

_new = tuple.__new__


def stream_join(node: StreamStreamJoin, context: TaskContext) -> tuple[Processor, ...]:
    """The left and the right side of a join; the right side of a self-join does nothing."""
    shared = _Shared(node, context)
    if node.is_self_join:
        return SelfJoin(shared), _OtherSelf(node, context)
    return StreamJoinSide(shared, LEFT), StreamJoinSide(shared, RIGHT)


class _Shared:
    """The state of both sides: the buffers, the held records, and stream time."""

    def __init__(self, node: StreamStreamJoin, context: TaskContext) -> None:
        window = node.window
        self.node = node
        self.context = context
        self.joiner = joiner_of(node.joiner, has_key=node.has_key)
        self.codecs = {LEFT: context.codec(node.left_store), RIGHT: context.codec(node.right_store)}
        retention_ms = window.before_ms + window.after_ms + window.grace_ms
        self.buffers = {
            LEFT: self._buffer(LEFT, node.left_store, retention_ms),
            RIGHT: self._buffer(RIGHT, node.right_store, retention_ms),
        }
        may_wait = node.kind is not JoinKind.INNER and not node.is_self_join
        self.held = self._held_records() if may_wait and window.holds_unmatched else None
        self.stream_time = context.cell(f"{node.name}-stream-time", NO_TIMESTAMP)
        self.next_look = context.cell(f"{node.name}-next-look", None)
        """The timestamp of a held record: until its window has closed, no search for closed windows is needed."""

    def _buffer(self, side: int, store: Materialization, retention_ms: int) -> JoinBuffer:
        return self.context.open(
            store,
            JoinBuffer,
            lambda: JoinBuffer(
                store.store, self.context.backend(store.store), self.codecs[side], retention_ms=retention_ms
            ),
        )

    def _held_records(self) -> HeldRecords:
        name = self.node.outer_store or f"{self.node.left_store.store}-outer"
        held = HeldRecords(name, self.context.backend(name), left=self.codecs[LEFT], right=self.codecs[RIGHT])
        self.context.stores[name] = held
        return held


class StreamJoinSide(Processor):
    """Joins the records of one side with the buffered ones of the other."""

    def __init__(self, shared: _Shared, side: int) -> None:
        super().__init__(shared.node, shared.context)
        node, window = shared.node, shared.node.window
        self._shared = shared
        self._side = side
        self._other_side = RIGHT if side == LEFT else LEFT
        self._mine = shared.buffers[side]
        self._others = shared.buffers[self._other_side]
        self._held_records = shared.held
        self._encode_key = shared.codecs[side].encode_key
        self._may_stay_alone = node.kind is JoinKind.OUTER or (node.kind is JoinKind.LEFT and side == LEFT)
        self._before_ms, self._after_ms = (
            (window.before_ms, window.after_ms) if side == LEFT else (window.after_ms, window.before_ms)
        )
        joiner = shared.joiner
        self._joined = joiner if side == LEFT else lambda key, mine, other: joiner(key, other, mine)

    def process(self, record: Record) -> None:
        key, value, timestamp, headers = record
        time = self._shared.stream_time
        stream_time = time.value
        if timestamp > stream_time:
            stream_time = time.value = timestamp
        if key is None or value is None:
            self._process_incomplete(record)
            return
        key_bytes = self._encode_key(key)
        held = self._held_records
        if held is not None and timestamp == stream_time:
            self._emit_closed(headers)
        latest = max(0, timestamp + self._after_ms)
        found = self._others.fetch(key_bytes, max(0, timestamp - self._before_ms), latest)
        joined = self._joined
        for other_timestamp, other in found:
            if held is not None:
                held.release(self._other_side, key_bytes, other_timestamp)
            later = timestamp if timestamp > other_timestamp else other_timestamp
            self.forward(_new(Record, (key, joined(key, value, other), later, headers)))
        if self._may_stay_alone and not found:
            if held is None or latest < stream_time:
                # Any match would be late itself and dropped, so there is nothing to wait for.
                self._forward_alone(record)
            else:
                self._hold(key_bytes, record)
        self._mine.put(key_bytes, value, timestamp)

    def _process_incomplete(self, record: Record) -> None:
        if self._may_stay_alone and record.key is None and record.value is not None:
            self._forward_alone(record)
        else:
            self.context.drop(self.node, "null key or value")

    def _forward_alone(self, record: Record) -> None:
        joined = self._joined(record.key, record.value, None)
        self.forward(Record(record.key, joined, record.timestamp, record.headers))

    def _hold(self, key_bytes: bytes, record: Record) -> None:
        assert self._held_records is not None
        self._held_records.hold(self._side, key_bytes, record.value, record.timestamp)
        next_look = self._shared.next_look
        if next_look.value is None or record.timestamp < next_look.value:
            next_look.value = record.timestamp

    def _emit_closed(self, headers: Headers) -> None:
        """Emit the held records of both sides whose window has closed, with the headers of the current record."""
        shared, held = self._shared, self._held_records
        assert held is not None
        now, grace_ms = shared.stream_time.value, shared.node.window.grace_ms
        next_look = shared.next_look.value
        if next_look is not None and next_look + self._after_ms + grace_ms >= now:
            return
        window = shared.node.window
        released, shared.next_look.value = held.take_before(
            now - window.after_ms - grace_ms, now - window.before_ms - grace_ms
        )
        for number, one in enumerate(released, 1):
            key = shared.codecs[one.side].decode_key(one.key)
            left, right = (one.value, None) if one.side == LEFT else (None, one.value)
            try:
                joined = shared.joiner(key, left, right)
            except Exception:
                self._hold_again(released[number:])
                raise
            self.forward(Record(key, joined, one.timestamp, headers))

    def _hold_again(self, records: list[HeldRecord]) -> None:
        """Hold the records again that were not emitted because of a failure, in case the pipeline continues."""
        assert self._held_records is not None
        for one in records:
            self._held_records.hold(one.side, one.key, one.value, one.timestamp)
        if records:
            self._shared.next_look.value = records[0].timestamp


class SelfJoin(Processor):
    """A stream joined with itself from one buffer, with results in the order of a join with two sides.

    A record also matches itself, unless it is so late that the buffer would not have kept it.
    """

    def __init__(self, shared: _Shared) -> None:
        super().__init__(shared.node, shared.context)
        window = shared.node.window
        self._buffer = shared.buffers[LEFT]
        self._encode_key = shared.codecs[LEFT].encode_key
        self._joiner = shared.joiner
        self._stream_time = shared.stream_time
        self._before_ms, self._after_ms = window.before_ms, window.after_ms
        self._retention_ms = window.before_ms + window.after_ms + window.grace_ms

    def process(self, record: Record) -> None:
        key, value, timestamp, _ = record
        if key is None or value is None:
            self.context.drop(self.node, "null key or value")
            return
        time = self._stream_time
        time.value = max(time.value, timestamp)
        key_bytes, joiner = self._encode_key(key), self._joiner
        for other_timestamp, other in self._matches(key_bytes, timestamp, self._before_ms, self._after_ms):
            self._emit_pair(record, joiner(key, value, other), other_timestamp)
        itself = [value] if timestamp > time.value - self._retention_ms + 1 else []
        for other_timestamp, other in self._matches(key_bytes, timestamp, self._after_ms, self._before_ms):
            if other_timestamp > timestamp and itself:
                self._emit_pair(record, joiner(key, value, itself.pop()), timestamp)
            self._emit_pair(record, joiner(key, other, value), other_timestamp)
        if itself:
            self._emit_pair(record, joiner(key, value, itself.pop()), timestamp)
        self._buffer.put(key_bytes, value, timestamp)

    def _matches(self, key: bytes, timestamp: int, before_ms: int, after_ms: int) -> list[tuple[int, Any]]:
        return self._buffer.fetch(key, max(0, timestamp - before_ms), max(0, timestamp + after_ms))

    def _emit_pair(self, record: Record, joined: Any, other_timestamp: int) -> None:
        key, _, timestamp, headers = record
        self.forward(_new(Record, (key, joined, max(timestamp, other_timestamp), headers)))


class _OtherSelf(Processor):
    """The right side of a self-join: its records are joined on the left."""

    def process(self, record: Record) -> None:
        pass
