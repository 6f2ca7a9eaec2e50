"""Transactions as operators see them, over `client.wire`: librdkafka has no calls for this.

Each function takes a connection to the broker that must answer: the coordinator of the transactional id, or the leader
of the partition. Start at `list_transactions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.client.wire import WireClient
from moldau.client.wire_admin import CoordinatorKey, find_coordinator, raise_for
from moldau.core.ids import TopicPartition
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

__all__ = [
    "ActiveProducer",
    "TransactionDescription",
    "TransactionListing",
    "abort_in_partition",
    "active_producers",
    "coordinator_of",
    "describe_transaction",
    "list_transactions",
    "terminate",
]

ONE_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class TransactionListing:
    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """What a partition remembers of a producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    """-1 before its first marker."""
    transaction_start: int | None
    """The offset its open transaction begins at."""


def coordinator_of(client: WireClient, transactional_id: str) -> int:
    """The broker that looks after a transactional id; any broker knows."""
    return find_coordinator(client, transactional_id, CoordinatorKey.TRANSACTION)


def list_transactions(
    client: WireClient, *, longer_than_ms: int = -1, pattern: str | None = None
) -> list[TransactionListing]:
    """All that this broker coordinates, or those that last long and whose id fits an RE2 pattern."""
    request = Message(
        state_filters=[], producer_id_filters=[], duration_filter=longer_than_ms, transactional_id_pattern=pattern
    )
    answer = client.send(ApiKey.LIST_TRANSACTIONS, request)
    raise_for(answer.error_code)
    return [
        TransactionListing(one.transactional_id, one.producer_id, one.transaction_state)
        for one in answer.transaction_states
    ]


def describe_transaction(client: WireClient, transactional_id: str) -> TransactionDescription:
    answer = client.send(ApiKey.DESCRIBE_TRANSACTIONS, Message(transactional_ids=[transactional_id]))
    (found,) = answer.transaction_states
    raise_for(found.error_code, about=transactional_id)
    return TransactionDescription(
        found.producer_id,
        found.producer_epoch,
        found.transaction_state,
        found.transaction_timeout_ms,
        _known(found.transaction_start_time_ms),
        tuple(TopicPartition(topic.topic, one) for topic in found.topics for one in topic.partitions),
    )


def active_producers(client: WireClient, partition: TopicPartition) -> list[ActiveProducer]:
    request = Message(topics=[Message(name=partition.topic, partition_indexes=[partition.partition])])
    answer = client.send(ApiKey.DESCRIBE_PRODUCERS, request)
    found = answer.topics[0].partitions[0]
    raise_for(found.error_code, found.error_message, about=str(partition))
    return [
        ActiveProducer(
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_timestamp,
            one.coordinator_epoch,
            _known(one.current_txn_start_offset),
        )
        for one in found.active_producers
    ]


def abort_in_partition(client: WireClient, partition: TopicPartition, producer: ActiveProducer) -> None:
    """End a producer's open transaction in one partition, whatever its coordinator knows of it."""
    marker = Message(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        coordinator_epoch=max(producer.coordinator_epoch, 0),
        topics=[Message(name=partition.topic, partition_indexes=[partition.partition])],
    )
    answer = client.send(ApiKey.WRITE_TXN_MARKERS, Message(markers=[marker]))
    raise_for(answer.markers[0].topics[0].partitions[0].error_code, about=str(partition))


def terminate(client: WireClient, transactional_id: str) -> int:
    """Take a transactional id over, which aborts its transaction; returns the code of the coordinator's answer."""
    request = Message(
        transactional_id=transactional_id, transaction_timeout_ms=ONE_MINUTE_MS, producer_id=-1, producer_epoch=-1
    )
    error_code: int = client.send(ApiKey.INIT_PRODUCER_ID, request).error_code
    return error_code


def _known(number: Any) -> int | None:
    """Kafka writes -1 for what is not known."""
    return None if number < 0 else int(number)
