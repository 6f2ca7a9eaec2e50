"""What a core decides: records to append, replies to give once they are committed.

Nothing here acts; `runtime.shard` carries outcomes out. Start at `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["CoordinatorRecord", "Outcome", "Producer", "Ticket"]

Ticket = int
"""Stands for a request that is to be answered, now or later; handed in with the request."""


class CoordinatorRecord(NamedTuple):
    key: bytes
    value: bytes | None
    """`None` deletes what was known under the key."""


class Producer(NamedTuple):
    """Whose transaction a record belongs to: it counts only once that one's commit marker is there."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class Outcome:
    """Appended as one batch or not at all."""

    records: list[CoordinatorRecord] = field(default_factory=list)
    replies: list[tuple[Ticket, Any]] = field(default_factory=list)
    """Given when everything the core has decided so far is committed; an `ErrorCode` each if the append fails."""
    producer: Producer | None = None
    then: Callable[[], None] | None = None
    """Soft state that goes with the records: changed after they were replayed, left alone if they were not appended."""

    def reply(self, ticket: Ticket | None, answer: Any) -> None:
        if ticket is not None:
            self.replies.append((ticket, answer))
