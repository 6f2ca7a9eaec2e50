"""WriteTxnMarkers (27), versions 1 to 2: write the end markers of transactions into partitions.

Sent by coordinators on other brokers, and by operators to end a hanging transaction (`kafka-transactions abort`). Start
at `handle`.
"""

from __future__ import annotations

import asyncio
from functools import partial

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.transaction_markers import Marker
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.messages import Message

__all__ = ["handle"]


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    return Message(
        markers=[
            Message(producer_id=one.producer_id, topics=[await _topic(topic, one, broker) for topic in one.topics])
            for one in request.markers
        ]
    )


async def _topic(topic: Message, request: Message, broker: Broker) -> Message:
    marker = Marker(
        request.producer_id,
        request.producer_epoch,
        request.coordinator_epoch,
        is_commit=request.transaction_result,
        version=request.transaction_version,
    )
    codes = [await _write_marker(TopicPartition(topic.name, one), marker, broker) for one in topic.partition_indexes]
    return Message(
        name=topic.name,
        partitions=[
            Message(partition_index=index, error_code=code)
            for index, code in zip(topic.partition_indexes, codes, strict=True)
        ],
    )


async def _write_marker(topic_partition: TopicPartition, marker: Marker, broker: Broker) -> ErrorCode:
    written: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    # A coordinator on another broker sends a marker again if it did not hear the answer.
    may_be_there = broker.remote_transactions is not None
    markers = broker.coordinators.transactions.markers
    markers.write(topic_partition, marker, partial(_resolve, written), may_be_there=may_be_there)
    return await written


def _resolve(written: asyncio.Future[ErrorCode], code: ErrorCode) -> None:
    if not written.done():
        written.set_result(code)
