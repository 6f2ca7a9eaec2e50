"""Who may own a transactional id, and which partitions may join its transaction: InitProducerId and the two adds.

Pure: a transaction as it stands and the facts of a request go in, the next transaction or an error comes out; the
same transaction means that nothing changes. How transactions end is `coordinator.transaction.endings`. Start at
`initialize`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moldau.coordinator.transaction.states import TransactionState
from moldau.coordinator.transaction.transaction import LAST_EPOCH, NO_EPOCH, NO_PRODUCER_ID, Transaction, Version
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

__all__ = ["Owner", "initialize", "join", "needs_producer_id", "ownership_error", "verify"]


class Owner(NamedTuple):
    """A producer's claim to a transactional id."""

    producer_id: int
    producer_epoch: int


def needs_producer_id(transaction: Transaction | None, expected: Owner | None) -> bool:
    """Whether InitProducerId will hand out an id that nobody had before."""
    if transaction is None:
        return True
    return (
        transaction.state.is_over
        and transaction.is_epoch_exhausted
        and (expected is None or expected.producer_epoch == transaction.producer_epoch)
    )


def initialize(  # noqa: PLR0917
    transactional_id: str,
    transaction: Transaction | None,
    expected: Owner | None,
    last_epoch: int,
    fresh_id: int,
    timeout_ms: int,
    now_ms: int,
) -> Transaction | ErrorCode:
    """What InitProducerId makes of a transactional id. An ongoing transaction becomes one that is being aborted.

    `expected` is what a producer says it had, `last_epoch` the epoch before the current one if it was given up by its
    owner: who still claims it has missed an answer and gets the same one again. `fresh_id` is used if
    `needs_producer_id` says so.
    """
    if transaction is None:
        newcomer = Transaction(transactional_id, fresh_id, 0, TransactionState.EMPTY, timeout_ms, now_ms)
        return newcomer if fresh_id != NO_PRODUCER_ID else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if expected is not None and not _may_claim(transaction, expected):
        return ErrorCode.PRODUCER_FENCED
    if transaction.state is TransactionState.ONGOING:
        return transaction.fenced(now_ms)
    if not transaction.state.is_over:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if needs_producer_id(transaction, expected):
        if fresh_id == NO_PRODUCER_ID:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return transaction.initialized(fresh_id, 0, timeout_ms, now_ms)
    if expected is None or expected.producer_epoch == transaction.producer_epoch:
        epoch = transaction.producer_epoch + 1
    elif expected.producer_epoch == last_epoch:
        epoch = transaction.producer_epoch
    else:
        return ErrorCode.PRODUCER_FENCED
    return transaction.initialized(transaction.producer_id, epoch, timeout_ms, now_ms)


def _may_claim(transaction: Transaction, expected: Owner) -> bool:
    """The id is the current one, or the one before it and was used up."""
    return expected.producer_id == transaction.producer_id or (
        expected.producer_id == transaction.previous_producer_id and expected.producer_epoch >= LAST_EPOCH
    )


def ownership_error(transaction: Transaction | None, owner: Owner) -> ErrorCode | None:
    """Why somebody may not act on a transaction, if so. An epoch from the future is as wrong as one from the past."""
    if transaction is None or transaction.producer_id != owner.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != owner.producer_epoch or owner.producer_epoch == NO_EPOCH:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if transaction.state.is_ending else None


def join(
    transaction: Transaction | None,
    owner: Owner,
    partitions: Iterable[TopicPartition],
    version: Version,
    now_ms: int,
) -> Transaction | ErrorCode:
    """What AddPartitionsToTxn and AddOffsetsToTxn make of a transaction."""
    error = ownership_error(transaction, owner)
    if transaction is None or error is not None:
        return error or ErrorCode.INVALID_PRODUCER_ID_MAPPING
    added = frozenset(partitions)
    if transaction.state is TransactionState.ONGOING and added <= transaction.partitions:
        return transaction
    return transaction.joined_by(added, version, now_ms)


def verify(
    transaction: Transaction | None, owner: Owner, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """For each partition whether a batch of this producer may go there: it has to be part of the transaction."""
    error = ownership_error(transaction, owner)
    if transaction is None or error is not None:
        return dict.fromkeys(partitions, error or ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    members = transaction.partitions if transaction.state is TransactionState.ONGOING else frozenset()
    return {
        partition: ErrorCode.NONE if partition in members else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }
