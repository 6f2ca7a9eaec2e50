"""Memory for requests: one scratch buffer shared by all connections, and a buffer of its own for each large frame.

A buffer grows with the bytes received, never because of an announced length. `queued.max.request.bytes` limits what
all of them hold together. Start at `FrameBuffers`.
"""

from __future__ import annotations

__all__ = ["LARGE_FRAME_BYTES", "SCRATCH_BYTES", "STEP_BYTES", "FrameBuffers", "next_capacity"]

SCRATCH_BYTES = 256 * 1024
"""The most that one read takes; every complete frame in it is handled in place, without a copy."""

LARGE_FRAME_BYTES = 64 * 1024
"""Larger frames that did not arrive in one read get their own buffer."""

PEEK_BYTES = 4096
"""How much of an expected large frame is read into the scratch buffer; the rest is read into its own buffer."""

FIRST_BYTES = 16 * 1024
STEP_BYTES = 1024 * 1024 + 64 * 1024
"""A request with one batch of the default maximum size fits in one step."""

POOLED_BUFFERS = 16


def next_capacity(frame_bytes: int, arrived_bytes: int, earned_bytes: int) -> int:
    """How large a buffer may be for a frame of which `arrived_bytes` are here.

    Twice what arrived, or (up to one step) as much as the connection has already sent in one frame: a client that
    only claims a large length costs little memory, and a steady producer costs one allocation.
    """
    wanted = max(FIRST_BYTES, 2 * arrived_bytes, min(earned_bytes, STEP_BYTES))
    return min(frame_bytes, wanted)


class FrameBuffers:
    """Lends buffers for large frames and keeps a few of the common size for the next."""

    def __init__(self) -> None:
        scratch = bytearray(SCRATCH_BYTES)
        self.scratch = memoryview(scratch)
        self.peek = self.scratch[:PEEK_BYTES]
        self.lent_bytes = 0
        """Gauge: capacity of all buffers in use."""
        self._pool: list[bytearray] = []

    def lend(self, capacity: int) -> bytearray:
        if capacity > STEP_BYTES // 2 and capacity <= STEP_BYTES:
            capacity = STEP_BYTES
            buffer = self._pool.pop() if self._pool else bytearray(STEP_BYTES)
        else:
            buffer = bytearray(capacity)
        self.lent_bytes += capacity
        return buffer

    def give_back(self, buffer: bytearray) -> None:
        self.lent_bytes -= len(buffer)
        if len(buffer) == STEP_BYTES and len(self._pool) < POOLED_BUFFERS:
            self._pool.append(buffer)

    def grow(self, buffer: bytearray, filled: int, capacity: int) -> bytearray:
        """Move the first `filled` bytes into a larger buffer."""
        larger = self.lend(capacity)
        larger[:filled] = memoryview(buffer)[:filled]
        self.give_back(buffer)
        return larger
