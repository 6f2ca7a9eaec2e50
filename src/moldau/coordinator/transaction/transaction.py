"""One transactional id: its owner and the state of its transaction.

Immutable; each step below returns the next value, and `Transaction.record_value` is its record. Whether a step is
allowed is decided by `coordinator.transaction.requests` and `coordinator.transaction.endings`. Start at `Transaction`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from moldau.coordinator.transaction.states import FOLLOWS, TransactionState
from moldau.core.ids import TopicPartition
from moldau.protocol.coordinator_records import TransactionLogValue, TransactionPartitions
from moldau.protocol.record_schemas import MalformedRecordError

__all__ = ["EPOCH_BUMPED_AT_END", "LAST_EPOCH", "NO_EPOCH", "NO_PRODUCER_ID", "NO_TIME", "Transaction", "Version"]

Version = int
"""A client's transaction version: 0 and 1 are the older forms, 2 is KIP-890's."""

EPOCH_BUMPED_AT_END: Final[Version] = 2
NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
_WRITTEN_STATES: Final = frozenset(map(int, FOLLOWS))
LAST_EPOCH: Final = 32766
"""The last epoch a client may have; the one above is reserved for a fence or the markers of the last transaction."""


@dataclass(frozen=True, slots=True)
class Transaction:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: TransactionState
    timeout_ms: int
    last_update_ms: int
    start_ms: int = NO_TIME
    partitions: frozenset[TopicPartition] = frozenset()
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """While ending: the id that takes over because this one's epochs are exhausted."""
    version: Version = 0

    # --- steps ------------------------------------------------------------------------------------------

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH

    @property
    def is_commit(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    def initialized(self, producer_id: int, producer_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """After InitProducerId: this producer owns the id from now on."""
        return replace(
            self,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            state=TransactionState.EMPTY,
            timeout_ms=timeout_ms,
            last_update_ms=now_ms,
            start_ms=NO_TIME,
            partitions=frozenset(),
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    def joined_by(self, partitions: Iterable[TopicPartition], version: Version, now_ms: int) -> Transaction:
        """With more partitions; the first ones begin the transaction."""
        begins = self.state is not TransactionState.ONGOING
        return replace(
            self,
            state=TransactionState.ONGOING,
            partitions=frozenset(partitions) if begins else self.partitions.union(partitions),
            start_ms=now_ms if begins else self.start_ms,
            last_update_ms=now_ms,
            previous_producer_id=self.producer_id,
            version=version,
        )

    def prepared(self, *, is_commit: bool, version: Version, next_producer_id: int, now_ms: int) -> Transaction:
        """With its end decided: from here on it can only end that way.

        For clients of version 2 the epoch increases by one, and markers carry the new one: late batches of the
        producer with the old epoch are rejected.
        """
        bump = 1 if version >= EPOCH_BUMPED_AT_END else 0
        return replace(
            self,
            state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + bump,
            start_ms=now_ms if self.state is not TransactionState.ONGOING else self.start_ms,
            partitions=self.partitions if self.state is TransactionState.ONGOING else frozenset(),
            last_update_ms=now_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            version=version,
        )

    def fenced(self, now_ms: int) -> Transaction:
        """Aborted by the coordinator: the owner of the current epoch is fenced."""
        bumped = self.prepared(
            is_commit=False, version=EPOCH_BUMPED_AT_END, next_producer_id=NO_PRODUCER_ID, now_ms=now_ms
        )
        return replace(bumped, version=self.version)

    def completed(self, now_ms: int) -> Transaction:
        """With every marker written: the transaction is over."""
        is_replaced = self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            state=TransactionState.COMPLETE_COMMIT if self.is_commit else TransactionState.COMPLETE_ABORT,
            producer_id=self.next_producer_id if is_replaced else self.producer_id,
            producer_epoch=0 if is_replaced else self.producer_epoch,
            partitions=frozenset(),
            last_update_ms=now_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    # --- records ----------------------------------------------------------------------------------------

    def record_value(self) -> TransactionLogValue:
        is_empty = self.state is TransactionState.EMPTY
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None if is_empty else _by_topic(self.partitions),
            last_update_timestamp_ms=self.last_update_ms,
            start_timestamp_ms=self.start_ms,
            client_transaction_version=self.version,
        )

    @classmethod
    def of_record(cls, transactional_id: str, value: TransactionLogValue) -> Transaction:
        if value.transaction_status not in _WRITTEN_STATES:
            raise MalformedRecordError(f"{transactional_id}: no transaction has status {value.transaction_status}")
        return cls(
            transactional_id,
            value.producer_id,
            value.producer_epoch,
            TransactionState(value.transaction_status),
            value.transaction_timeout_ms,
            value.last_update_timestamp_ms,
            value.start_timestamp_ms,
            frozenset(
                TopicPartition(topic.topic, partition)
                for topic in value.transaction_partitions or ()
                for partition in topic.partition_ids
            ),
            value.previous_producer_id,
            value.next_producer_id,
            value.client_transaction_version,
        )


def _by_topic(partitions: frozenset[TopicPartition]) -> tuple[TransactionPartitions, ...]:
    grouped = groupby(sorted(partitions), key=lambda partition: partition.topic)
    return tuple(
        TransactionPartitions(topic=topic, partition_ids=tuple(partition.partition for partition in of_topic))
        for topic, of_topic in grouped
    )
