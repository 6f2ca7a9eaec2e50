"""How a transaction ends: EndTxn before and since KIP-890.

In the older form a request may be repeated: it succeeds if the transaction ended the same way. Since KIP-890 the epoch
increases with every end, so a retry is recognised by its epoch: a request with the current epoch is about the next
transaction. Pure, like `coordinator.transaction.requests`. Start at `end_transaction`.
"""

from __future__ import annotations

from moldau.coordinator.transaction.requests import Owner
from moldau.coordinator.transaction.states import TransactionState
from moldau.coordinator.transaction.transaction import (
    EPOCH_BUMPED_AT_END,
    LAST_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    Version,
)
from moldau.core.errors import ErrorCode

__all__ = ["end_transaction", "ending_needs_producer_id"]


def ending_needs_producer_id(transaction: Transaction | None, version: Version) -> bool:
    """Whether the end uses the last epoch, so that a new producer id has to take over."""
    return transaction is not None and version >= EPOCH_BUMPED_AT_END and transaction.is_epoch_exhausted


def end_transaction(  # noqa: PLR0917
    transaction: Transaction | None,
    owner: Owner,
    is_commit: bool,
    version: Version,
    fresh_id: int,
    now_ms: int,
) -> Transaction | ErrorCode:
    """The transaction after EndTxn; the same object if this repeats a request that already succeeded."""
    if transaction is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if version >= EPOCH_BUMPED_AT_END:
        return _ended_with_bump(transaction, owner, is_commit, version, fresh_id, now_ms)
    if transaction.producer_id != owner.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != owner.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.state is TransactionState.ONGOING:
        return transaction.prepared(
            is_commit=is_commit, version=version, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
        )
    if transaction.state is TransactionState.EMPTY or transaction.is_commit is not is_commit:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.CONCURRENT_TRANSACTIONS if transaction.state.is_ending else transaction


def _ended_with_bump(  # noqa: PLR0917
    transaction: Transaction, owner: Owner, is_commit: bool, version: Version, fresh_id: int, now_ms: int
) -> Transaction | ErrorCode:
    has_rotated = _has_rotated(transaction, owner)
    if transaction.producer_id != owner.producer_id and not has_rotated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    is_repeated = has_rotated or transaction.producer_epoch == owner.producer_epoch + 1
    is_current = transaction.producer_id == owner.producer_id and transaction.producer_epoch == owner.producer_epoch
    state = transaction.state
    if state.is_ending:
        if not is_repeated:
            return ErrorCode.PRODUCER_FENCED
        is_same_end = transaction.is_commit is is_commit
        return ErrorCode.CONCURRENT_TRANSACTIONS if is_same_end else ErrorCode.INVALID_TXN_STATE
    if is_repeated and state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        return transaction if transaction.is_commit is is_commit else ErrorCode.INVALID_TXN_STATE
    if not is_current:
        return ErrorCode.PRODUCER_FENCED
    if is_commit and state is not TransactionState.ONGOING:
        return ErrorCode.INVALID_TXN_STATE
    next_producer_id = NO_PRODUCER_ID
    if transaction.is_epoch_exhausted:
        if fresh_id == NO_PRODUCER_ID:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        next_producer_id = fresh_id
    return transaction.prepared(is_commit=is_commit, version=version, next_producer_id=next_producer_id, now_ms=now_ms)


def _has_rotated(transaction: Transaction, owner: Owner) -> bool:
    """The owner's epochs were exhausted and its id was replaced, but it has not received the new one."""
    return (
        transaction.previous_producer_id == owner.producer_id
        and transaction.producer_id != owner.producer_id
        and owner.producer_epoch == LAST_EPOCH
        and transaction.producer_epoch == 0
    )
