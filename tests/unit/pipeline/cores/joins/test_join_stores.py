"""What joins remember: the buffer of a side, and the records that wait for a partner."""

from __future__ import annotations

import random

import pytest

from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.cores.stores.held_records import LEFT, RIGHT, HeldRecords
from moldau.pipeline.cores.stores.join_buffer import JoinBuffer
from moldau.pipeline.cores.stores.store import Codec

TEXT = Codec(str.encode, bytes.decode, str.encode, bytes.decode, True)
OPAQUE = TEXT._replace(is_plain=False)

MINUTE = 60_000


def buffer(backend: MemoryBackend, retention_ms: int, codec: Codec = TEXT) -> JoinBuffer:
    return JoinBuffer("buffer", backend, codec, retention_ms=retention_ms)


@pytest.mark.parametrize("codec", [TEXT, OPAQUE])
def test_records_come_back_by_time_then_arrival_from_memory_and_from_the_backend(codec: Codec) -> None:
    backend = MemoryBackend()
    one = buffer(backend, 10 * MINUTE, codec)
    for value, timestamp in (("c", 3 * MINUTE), ("a", 1), ("d", 9 * MINUTE), ("b", 1)):
        one.put(b"k", value, timestamp)
    one.put(b"other", "x", 5)
    expected = [(1, "a"), (1, "b"), (3 * MINUTE, "c"), (9 * MINUTE, "d")]
    assert one.fetch(b"k", 0, 10 * MINUTE) == expected
    one.flush()
    assert buffer(backend, 10 * MINUTE, codec).fetch(b"k", 0, 10 * MINUTE) == expected
    assert buffer(backend, 10 * MINUTE, codec).fetch(b"k", 2, 3 * MINUTE) == expected[2:3]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_value_that_cannot_be_written_leaves_no_trace(is_restarted: bool) -> None:
    backend = MemoryBackend()
    one = buffer(backend, MINUTE)
    with pytest.raises(TypeError):
        one.put(b"k", 5, 10)
    one.flush()
    if is_restarted:
        one = buffer(backend, MINUTE)
    assert one.fetch(b"k", 0, MINUTE) == []
    one.put(b"k", "a", 20)
    assert one.fetch(b"k", 0, MINUTE) == [(20, "a")]

    held = HeldRecords("held", MemoryBackend(), left=TEXT, right=TEXT)
    with pytest.raises(TypeError):
        held.hold(LEFT, b"k", 5, 10)
    assert len(held) == 0


def test_a_record_is_invisible_from_the_moment_it_expires() -> None:
    one = buffer(MemoryBackend(), 100)
    one.put(b"k", "a", 1000)
    one.put(b"other", "x", 1099)
    assert one.fetch(b"k", 0, 5000) == [(1000, "a")]
    one.put(b"other", "x", 1100)
    assert one.fetch(b"k", 0, 5000) == []
    one.put(b"k", "b", 1000)
    assert one.fetch(b"k", 0, 5000) == []


def test_a_retention_of_nothing_keeps_nothing_as_in_kafka() -> None:
    one = buffer(MemoryBackend(), 0)
    one.put(b"k", "a", 10)
    assert one.fetch(b"k", 10, 10) == []


def test_expired_segments_leave_the_backend_little_by_little() -> None:
    backend = MemoryBackend()
    one = buffer(backend, MINUTE)
    for number in range(10_000):
        one.put(str(number).encode(), "a", 0)
    one.flush()
    assert len(backend.entries) > 10_000
    one.put(b"k", "b", 100 * MINUTE)
    one.flush()
    left = len(backend.entries)
    assert 0 < left < 10_000
    again = buffer(backend, MINUTE)
    for _ in range(5):
        again.put(b"k", "b", 100 * MINUTE)
        again.flush()
    assert len(backend.entries) == 3
    assert len(buffer(backend, MINUTE).fetch(b"k", 0, 200 * MINUTE)) == 6


def test_a_buffer_that_is_cut_anywhere_answers_as_one_that_is_not() -> None:
    rng = random.Random(7)
    backend = MemoryBackend()
    whole, cut = buffer(MemoryBackend(), 5 * MINUTE), buffer(backend, 5 * MINUTE)
    now = 0
    for number in range(3000):
        now += rng.randrange(MINUTE // 10)
        key, timestamp = rng.choice([b"a", b"b", b"c"]), max(0, now - rng.randrange(8 * MINUTE))
        for one in (whole, cut):
            one.put(key, str(number), timestamp)
        if rng.random() < 0.1:
            cut.flush()
        if rng.random() < 0.05:
            cut.flush()
            cut = buffer(backend, 5 * MINUTE)
        probe = (rng.choice([b"a", b"b", b"d"]), now - rng.randrange(10 * MINUTE), now)
        assert whole.fetch(*probe) == cut.fetch(*probe)


def literal_search(
    held: list[tuple[int, int, bytes, str]], left_end: int, right_end: int
) -> tuple[list[tuple[int, int, bytes, str]], int | None]:
    """Kafka Streams' search as it is written there: one record after the other."""
    taken, stop, is_open = [], None, {LEFT: False, RIGHT: False}
    for record in sorted(held, key=lambda record: record[:3]):
        timestamp, side = record[:2]
        stop = timestamp
        if all(is_open.values()):
            break
        if timestamp >= (left_end if side == LEFT else right_end):
            is_open[side] = True
        else:
            taken.append(record)
    return taken, stop


@pytest.mark.parametrize("seed", range(5))
def test_taking_closed_windows_equals_the_search_record_by_record(seed: int) -> None:
    rng = random.Random(seed)
    backend = MemoryBackend()
    held, model = HeldRecords("held", backend, left=TEXT, right=TEXT), []
    for number in range(1500):
        timestamp, side, key = rng.randrange(30), rng.choice([LEFT, RIGHT]), rng.choice([b"a", b"b", b"c"])
        action = rng.random()
        if action < 0.6:
            held.hold(side, key, str(number), timestamp)
            model.append((timestamp, side, key, str(number)))
        elif action < 0.8:
            held.release(side, key, timestamp)
            model = [record for record in model if record[:3] != (timestamp, side, key)]
        elif action < 0.9:
            ends = rng.randrange(30), rng.randrange(30)
            taken, stop = literal_search(model, *ends)
            assert held.take_before(*ends) == (taken, stop)
            model = [record for record in model if record not in taken]
        else:
            held.flush()
            held = HeldRecords("held", backend, left=TEXT, right=TEXT)
        assert bool(held) == bool(model)
