"""DescribeTransactions (65), version 0: the owner of a transactional id and the state of its transaction.

Start at `handle`.
"""

from __future__ import annotations

from itertools import groupby

from moldau.broker.context import Broker, RequestContext
from moldau.coordinator.transaction.transaction import Transaction
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    return Message(transaction_states=[_describe(one, broker) for one in request.transactional_ids])


def _describe(transactional_id: str, broker: Broker) -> Message:
    found = broker.coordinators.transactions.find(transactional_id) if transactional_id else ErrorCode.INVALID_REQUEST
    if isinstance(found, ErrorCode):
        return Message(
            error_code=found,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return Message(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=found.state.display_name,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=_topics(found),
    )


def _topics(transaction: Transaction) -> list[Message]:
    grouped = groupby(sorted(transaction.partitions), key=lambda partition: partition.topic)
    return [Message(topic=topic, partitions=[one.partition for one in of_topic]) for topic, of_topic in grouped]
