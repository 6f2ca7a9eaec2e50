"""InitProducerId (22): an id for an idempotent producer.

    versions 0 to 5: v3 sends the id and epoch the producer had, v4 and v5 change errors of transactions only

A producer without a transactional id always gets a fresh id with epoch 0, whatever it had before. Transactional ids
wait for a coordinator, which does not exist here yet. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]

NO_PRODUCER_ID = -1
NO_EPOCH = -1


def handle(request: Message, call: RequestContext, broker: Broker) -> Message | Awaitable[Message]:
    if request.transactional_id is None:
        return _fresh_id(broker)
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    return _refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)


async def _fresh_id(broker: Broker) -> Message:
    try:
        producer_id = await broker.producer_ids.next()
    except MoldauError as error:
        return _refused(error.code)
    return Message(error_code=0, producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> Message:
    return Message(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
