"""Transactions during cleaning: whose records may be removed, and when their marker may be.

A marker is removable once a pass finds no batch of its transaction, so a marker always outlives its data by at least
one round. Start at `CleanedTransactions.is_removable`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import NamedTuple

from moldau.protocol.record_batch import BatchHeader
from moldau.protocol.records import ControlType

__all__ = ["AbortedRange", "CleanedTransactions"]


class AbortedRange(NamedTuple):
    """An aborted transaction, with the fields of a transaction index entry."""

    first_offset: int
    producer_id: int
    last_offset: int
    last_stable_offset: int


class CleanedTransactions:
    """Follows the batches of a log in offset order."""

    def __init__(self) -> None:
        self._coming: list[AbortedRange] = []
        self._aborting: dict[int, AbortedRange] = {}
        self._seen_aborting: set[int] = set()
        self._seen_committing: set[int] = set()
        self.kept_aborted: list[AbortedRange] = []
        """Aborted transactions whose marker is kept, for the index of the cleaned segment; the caller empties it."""

    def expect(self, aborted: Iterable[AbortedRange]) -> None:
        """Add the aborted transactions of the batches that follow."""
        for entry in aborted:
            heapq.heappush(self._coming, entry)

    def is_removable(self, header: BatchHeader, marker: int | None) -> bool:
        """Whether transactions allow to remove all records of this batch.

        `marker` is the type of a control batch's record, `None` where the batch has lost it.
        """
        self._begin_up_to(header.last_offset)
        if header.is_control:
            return self._is_removable_marker(header.producer_id, marker)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborting:
            self._seen_aborting.add(header.producer_id)
            return True
        self._seen_committing.add(header.producer_id)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            entry = heapq.heappop(self._coming)
            self._aborting.setdefault(entry.producer_id, entry)

    def _is_removable_marker(self, producer_id: int, marker: int | None) -> bool:
        if marker is None:
            return True
        if marker == ControlType.COMMIT:
            if producer_id not in self._seen_committing:
                return True
            self._seen_committing.discard(producer_id)
            return False
        if marker == ControlType.ABORT:
            entry = self._aborting.pop(producer_id, None)
            if entry is None or producer_id not in self._seen_aborting:
                return True
            self._seen_aborting.discard(producer_id)
            self.kept_aborted.append(entry)
        return False
