"""InitProducerId (22): an id for an idempotent producer, or the ownership of a transactional id.

    versions 0 to 5: v3 sends the producer's current id and epoch, v4 returns PRODUCER_FENCED where older versions
    return INVALID_PRODUCER_EPOCH, v5 supports TRANSACTION_ABORTABLE

A producer without a transactional id always gets a new id with epoch 0, whatever it had before. With one it takes over
the transactional id: the epoch increases, and the previous owner is fenced. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]

NO_PRODUCER_ID = -1
NO_EPOCH = -1
FIRST_WITH_FENCED = 4


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    if request.transactional_id is None:
        return _new_producer_id(broker)
    if request.transactional_id == "":
        return _error_response(ErrorCode.INVALID_REQUEST)
    return _take_ownership(request, call, broker)


async def _new_producer_id(broker: Broker) -> Message:
    try:
        producer_id = await broker.producer_ids.next()
    except MoldauError as error:
        return _error_response(error.code)
    return Message(error_code=0, producer_id=producer_id, producer_epoch=0)


async def _take_ownership(request: Message, call: RequestContext, broker: Broker) -> Message:
    # Imported here: most producers have no transactional id.
    from moldau.coordinator.transaction.requests import Owner

    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return _error_response(ErrorCode.INVALID_REQUEST)
    expected = None if request.producer_id == NO_PRODUCER_ID else Owner(request.producer_id, request.producer_epoch)
    granted = await broker.coordinators.transactions.init_producer_id(
        request.transactional_id, request.transaction_timeout_ms, expected
    )
    error = granted.error
    if error is ErrorCode.PRODUCER_FENCED and call.api_version < FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return Message(error_code=error, producer_id=granted.producer_id, producer_epoch=granted.producer_epoch)


def _error_response(code: ErrorCode) -> Message:
    return Message(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
