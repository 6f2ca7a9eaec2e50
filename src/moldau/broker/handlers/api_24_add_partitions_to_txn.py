"""AddPartitionsToTxn (24): add partitions to a transaction before anything is written to them.

    versions 0 to 3: from clients, one transaction; v2 returns PRODUCER_FENCED where older versions return
    INVALID_PRODUCER_EPOCH
    versions 4 and 5: from brokers, any number of transactions, and for each whether its partitions are to be added
    or only verified

If one partition does not exist, none is added. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Sequence

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.transactions import version_of
from moldau.coordinator.transaction.requests import Owner
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_BATCHED = 4
FIRST_WITH_FENCED = 2

Errors = dict[TopicPartition, ErrorCode]


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    if call.api_version >= FIRST_BATCHED:
        return Message(
            error_code=ErrorCode.NONE,
            results_by_transaction=[await _verify_or_add(transaction, broker) for transaction in request.transactions],
        )
    owner = Owner(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    partitions = _partitions(request.v3_and_below_topics)
    errors = await _add(request.v3_and_below_transactional_id, owner, partitions, broker, is_newer=False)
    if call.api_version < FIRST_WITH_FENCED:
        errors = {partition: _code_for_old_clients(code) for partition, code in errors.items()}
    return Message(results_by_topic_v3_and_below=_results(request.v3_and_below_topics, errors))


async def _verify_or_add(transaction: Message, broker: Broker) -> Message:
    owner = Owner(transaction.producer_id, transaction.producer_epoch)
    partitions = _partitions(transaction.topics)
    if transaction.verify_only:
        errors = broker.coordinators.transactions.verify(transaction.transactional_id, owner, partitions)
    else:
        errors = await _add(transaction.transactional_id, owner, partitions, broker, is_newer=True)
    return Message(transactional_id=transaction.transactional_id, topic_results=_results(transaction.topics, errors))


async def _add(
    transactional_id: str, owner: Owner, partitions: Sequence[TopicPartition], broker: Broker, *, is_newer: bool
) -> Errors:
    if not transactional_id:
        return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
    unknown = {one for one in partitions if broker.image.partition(*one) is None}
    if unknown:
        return {
            one: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if one in unknown else ErrorCode.OPERATION_NOT_ATTEMPTED
            for one in partitions
        }
    code = await broker.coordinators.transactions.add_partitions(
        transactional_id, owner, partitions, version_of(is_newer)
    )
    return dict.fromkeys(partitions, code)


def _code_for_old_clients(code: ErrorCode) -> ErrorCode:
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


def _partitions(topics: Sequence[Message]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for topic in topics for partition in topic.partitions]


def _results(topics: Sequence[Message], errors: Errors) -> list[Message]:
    return [
        Message(
            name=topic.name,
            results_by_partition=[
                Message(partition_index=partition, partition_error_code=errors[TopicPartition(topic.name, partition)])
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]
