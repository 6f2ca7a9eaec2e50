"""The states of a transactional id and their allowed transitions.

`PREPARE_EPOCH_FENCE` and `DEAD` exist in Kafka's list and are never written to the log, by Kafka or here: fencing
and removal are single steps. Start at `TransactionState`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["FOLLOWS", "TransactionState"]


class TransactionState(IntEnum):
    """With the numbers of the transaction log; `display_name` is what clients and tools see."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def display_name(self) -> str:
        return self.name.title().replace("_", "")

    @property
    def is_ending(self) -> bool:
        """The end is decided, but some partition may not have its marker yet."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_over(self) -> bool:
        """No transaction is in progress, so a new one may begin and the id may expire."""
        return self in _OVER


_OVER: Final = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})

FOLLOWS: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    TransactionState.EMPTY: _OVER,
    TransactionState.ONGOING: _OVER | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _OVER | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}
"""For each state the allowed previous states. An abort of an empty transaction exists since KIP-890: it only
increases the epoch, and no partition is involved."""
