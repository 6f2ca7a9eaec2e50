"""What a core decides: records to append, and replies to send once they are committed.

Data only; `runtime.shard` carries outcomes out. Start at `Outcome`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["CoordinatorRecord", "Outcome", "Producer", "Ticket"]

Ticket = int
"""Identifies a request that is answered now or later; passed in with the request."""


class CoordinatorRecord(NamedTuple):
    key: bytes
    value: bytes | None
    """`None` is a tombstone: it deletes the key's value."""


class Producer(NamedTuple):
    """The producer whose transaction a record belongs to: it takes effect with that transaction's commit marker."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class Outcome:
    """Appended as one batch or not at all."""

    records: list[CoordinatorRecord] = field(default_factory=list)
    replies: list[tuple[Ticket, Any]] = field(default_factory=list)
    """Sent when everything the core has decided so far is committed; an `ErrorCode` each if the append fails."""
    producer: Producer | None = None
    then: Callable[[], None] | None = None
    """Changes of soft state that go with the records: run after the replay, not run if the append failed."""

    def reply(self, ticket: Ticket | None, answer: Any) -> None:
        if ticket is not None:
            self.replies.append((ticket, answer))
