"""Limits on replication, so that moving replicas leaves room for clients.

Each broker limits what it sends as a leader and what it receives as a follower, for the replicas that topics name, and
never for those in sync. Start at `ReplicationThrottle`; `RateLimit` is its pure part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from moldau.core.ids import INT64_MAX

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.partition import Partition

__all__ = ["RateLimit", "ReplicationThrottle"]

EVERY_REPLICA: Final = "*"
LONGEST_PAUSE_MS: Final = 5_000
"""After it the rate is looked at again: it may have been raised."""


class RateLimit:
    """Lets bytes through until a second's worth is used up; a large batch is paid for by a longer pause."""

    __slots__ = ("_balance", "_updated_ms")

    def __init__(self) -> None:
        self._balance = 0.0
        self._updated_ms: int | None = None

    def pause_ms(self, rate: int, now_ms: int) -> int:
        """How long to wait until bytes may pass again, at `rate` bytes a second."""
        passed_ms = 1000 if self._updated_ms is None else max(0, now_ms - self._updated_ms)
        self._balance = min(float(rate), self._balance + rate * passed_ms / 1000)
        self._updated_ms = now_ms
        return 0 if self._balance > 0 else min(LONGEST_PAUSE_MS, int(-self._balance * 1000 / max(rate, 1)) + 1)

    def use(self, size: int) -> None:
        self._balance -= size


class ReplicationThrottle:
    """One side of a broker's replication; used on the loop."""

    def __init__(self, broker: Broker, side: Literal["leader", "follower"]) -> None:
        self._broker = broker
        self._rate_key = f"{side}.replication.throttled.rate"
        self._replicas_key = f"{side}.replication.throttled.replicas"
        self._limit = RateLimit()

    @property
    def is_on(self) -> bool:
        return self._rate < INT64_MAX

    @property
    def _rate(self) -> int:
        rate: int = self._broker.config.value(self._rate_key)
        return rate

    def concerns(self, partition: Partition) -> bool:
        """Whether the topic names this broker's replica of the partition."""
        text = self._broker.image.topic_config(partition.topic.name).get(self._replicas_key, "")
        named = [one.strip() for one in text.split(",")]
        return EVERY_REPLICA in named or f"{partition.index}:{self._broker.node_id}" in named

    def pause_ms(self, partition: Partition) -> int:
        """How long this partition has to wait from now on."""
        if not self.concerns(partition):
            return 0
        return self._limit.pause_ms(self._rate, self._broker.clock.monotonic_ms())

    def note(self, partition: Partition, size: int) -> None:
        """These bytes were replicated."""
        if size and self.is_on and self.concerns(partition):
            self._limit.use(size)
