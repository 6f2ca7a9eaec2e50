"""Buffers grow with what has arrived, never because a length says so."""

from __future__ import annotations

from moldau.net.buffers import FIRST_BYTES, STEP_BYTES, FrameBuffers, next_capacity

HUGE = 100 * 1024 * 1024


def test_a_stranger_with_a_large_length_gets_little() -> None:
    assert next_capacity(HUGE, arrived_bytes=20, earned_bytes=0) == FIRST_BYTES


def test_capacity_follows_what_arrived() -> None:
    arrived, steps = 20, 0
    while arrived < HUGE:
        capacity = next_capacity(HUGE, arrived, earned_bytes=0)
        assert arrived < capacity <= max(FIRST_BYTES, 2 * arrived)
        arrived, steps = capacity, steps + 1
    assert steps < 20


def test_who_sent_a_large_frame_before_gets_a_step_at_once() -> None:
    assert next_capacity(HUGE, arrived_bytes=20, earned_bytes=5 * STEP_BYTES) == STEP_BYTES


def test_capacity_is_never_more_than_the_frame() -> None:
    assert next_capacity(70_000, arrived_bytes=60_000, earned_bytes=STEP_BYTES) == 70_000


def test_buffers_of_the_common_size_are_used_again() -> None:
    buffers = FrameBuffers()
    first = buffers.lend(STEP_BYTES)
    assert buffers.lent_bytes == STEP_BYTES
    buffers.give_back(first)
    assert buffers.lent_bytes == 0
    assert buffers.lend(STEP_BYTES - 1) is first


def test_the_pool_does_not_hoard() -> None:
    buffers = FrameBuffers()
    lent = [buffers.lend(STEP_BYTES) for _ in range(50)]
    for buffer in lent:
        buffers.give_back(buffer)
    again = [buffers.lend(STEP_BYTES) for _ in range(50)]
    assert len({id(buffer) for buffer in lent} & {id(buffer) for buffer in again}) <= 16


def test_a_grown_buffer_keeps_its_bytes() -> None:
    buffers = FrameBuffers()
    small = buffers.lend(10)
    small[:] = b"0123456789"
    large = buffers.grow(small, 7, 100)
    assert bytes(large[:7]) == b"0123456"
    assert buffers.lent_bytes == len(large) == 100
