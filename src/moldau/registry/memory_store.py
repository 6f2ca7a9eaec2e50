"""A store without a topic: records become true at once, after a trip through their bytes. For tests and previews."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from moldau.core.clock import Clock, SystemClock
from moldau.registry.errors import SchemaTooLargeError
from moldau.registry.records import Record, decode, encode_key, encode_value
from moldau.registry.state import State

__all__ = ["AloneLeadership", "MemoryStore"]

MAX_RECORD_BYTES = 1024 * 1024


class MemoryStore:
    is_ready = True

    def __init__(self, clock: Clock | None = None) -> None:
        self.state = State()
        self.log: list[tuple[bytes, bytes | None]] = []
        """What a topic would hold."""
        self._clock = clock or SystemClock()

    @property
    def applied_offset(self) -> int:
        return len(self.log) - 1

    def frozen(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def catch_up(self) -> None:
        return None

    async def append(self, records: Sequence[Record]) -> None:
        written = [(encode_key(record.key), encode_value(record)) for record in records]
        if any(value is not None and len(value) > MAX_RECORD_BYTES for _, value in written):
            raise SchemaTooLargeError("The schema is larger than the topic accepts")
        for key, value in written:
            record = decode(key, value, self._clock.now_ms())
            assert record is not None
            self.log.append((key, value))
            self.state.apply(record)

    async def reached(self, offset: int) -> None:
        return None


class AloneLeadership:
    """The only instance there is leads."""

    is_leader = True
    own_url = "http://localhost:8081"
    leader_url: str | None = None
    cluster_id = "moldau"

    async def settled(self, timeout_s: float) -> None:
        return None
