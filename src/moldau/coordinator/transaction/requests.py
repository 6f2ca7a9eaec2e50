"""InitProducerId, AddPartitionsToTxn and AddOffsetsToTxn: who owns a transactional id, and its partitions.

Pure: takes the current transaction and a request's fields, returns the next transaction or an error; the same
transaction means that nothing changes. `coordinator.transaction.endings` ends transactions. Start at `initialize`.
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
    """Whether InitProducerId needs a new producer id."""
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
    """The transaction after InitProducerId. An ongoing transaction is aborted first.

    `expected` is the id and epoch that the producer reports, `last_epoch` the previous epoch if its owner asked for the
    current one: a producer that still reports it has missed the response and gets the same one again. `fresh_id` is
    used if `needs_producer_id` returns true.
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
    """Whether the id is the current one, or the previous one with exhausted epochs."""
    return expected.producer_id == transaction.producer_id or (
        expected.producer_id == transaction.previous_producer_id and expected.producer_epoch >= LAST_EPOCH
    )


def ownership_error(transaction: Transaction | None, owner: Owner) -> ErrorCode | None:
    """Why a producer may not act on a transaction, if so. A higher epoch is as invalid as a lower one."""
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
    """The transaction after AddPartitionsToTxn or AddOffsetsToTxn."""
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
    """For each partition whether this producer may write to it: it has to be part of the transaction."""
    error = ownership_error(transaction, owner)
    if transaction is None or error is not None:
        return dict.fromkeys(partitions, error or ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    members = transaction.partitions if transaction.state is TransactionState.ONGOING else frozenset()
    return {
        partition: ErrorCode.NONE if partition in members else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }
