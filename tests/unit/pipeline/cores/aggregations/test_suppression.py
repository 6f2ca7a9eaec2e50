"""Suppression: results held until their window closes, for a while, or while there is room."""

from __future__ import annotations

import pytest
from tests.unit.pipeline.cores.piped_tables import Build, Pipe

from moldau.pipeline.cores.failures import BufferFullError
from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.stores.suppression_buffer import HeldChange, SuppressionBuffer
from moldau.pipeline.dsl.options.suppressed import BufferConfig, Suppressed
from moldau.pipeline.dsl.options.windows import SessionWindows, TimeWindows


def until_close(windows: TimeWindows | SessionWindows) -> Build:
    held = Suppressed.until_window_closes(BufferConfig.unbounded())
    return lambda stream: stream.group_by_key().windowed_by(windows).count().suppress(held)


def for_time(wait_ms: int, buffer: BufferConfig) -> Build:
    return lambda stream: stream.group_by_key().count().suppress(Suppressed.until_time_limit(wait_ms, buffer))


def test_a_window_is_told_once_when_it_has_closed() -> None:
    pipe = Pipe(until_close(TimeWindows.of_size_and_grace(10, 2)))

    assert pipe("b", "x", 1) + pipe("a", "x", 2) + pipe("a", "x", 3) + pipe("c", "x", 11) == []
    assert pipe("c", "x", 12) == [("a@0-10", 2, 3), ("b@0-10", 1, 1)]
    assert pipe("c", "x", 13) == []


def test_a_session_is_told_without_the_tombstones_of_what_it_grew_from() -> None:
    pipe = Pipe(until_close(SessionWindows.of_inactivity_gap_and_grace(5, 0)))
    pipe("a", "x", 1)
    pipe("a", "x", 4)

    assert pipe("b", "x", 30) == [("a@1-4", 2, 4)]


def test_a_change_waits_as_long_as_the_first_of_its_key() -> None:
    pipe = Pipe(for_time(10, BufferConfig.unbounded()))

    assert pipe("a", "x", 1) + pipe("a", "x", 9) == []
    assert pipe("b", "x", 11) == [("a", 2, 9)]


def test_a_full_buffer_lets_the_oldest_go_early() -> None:
    pipe = Pipe(for_time(1000, BufferConfig.max_records(2).emit_early_when_full()))
    pipe("b", "x", 1)
    pipe("a", "x", 2)

    assert pipe("c", "x", 3) == [("b", 1, 1)]


def test_a_full_buffer_may_end_the_pipeline() -> None:
    pipe = Pipe(for_time(1000, BufferConfig.max_records(1).shut_down_when_full()))
    pipe("a", "x", 1)

    with pytest.raises(BufferFullError, match=r"holds 2 records \(at most 1\).*raise the limit, or use emit_early"):
        pipe("b", "x", 2)


def test_bytes_are_counted_as_kafka_counts_them() -> None:
    buffer = SuppressionBuffer(MemoryBackend())
    change = HeldChange(5, b"pp", b"old", b"new!", 5, (("h", b"12"),), "topic", 0, 7)
    buffer.put(b"key", change)

    assert buffer.bytes_held == 28 + len(b"key") + len(b"pp") + len(b"old") + len(b"new!") + len("topic") + len("h12")
    buffer.remove_first()
    assert buffer.bytes_held == 0


def test_a_buffer_made_anew_holds_the_same() -> None:
    backend = MemoryBackend()
    buffer = SuppressionBuffer(backend)
    changes = {
        b"b": HeldChange(5, None, None, b"x", 6, (("h", None), ("g", b"")), "topic", 1, 2),
        b"a": HeldChange(5, b"p", b"o", None, 7, (), "ü", 0, -1),
        b"": HeldChange(4, b"", b"", b"", 8, (), "", 0, 0),
    }
    for key, change in changes.items():
        buffer.put(key, change)
    buffer.flush()

    again = SuppressionBuffer(backend)
    order = []
    while len(again):
        key, change = again.first()
        assert change == changes[key]
        order.append(key)
        again.remove_first()
    assert order == [b"", b"a", b"b"]
    again.flush()
    assert not backend.entries
