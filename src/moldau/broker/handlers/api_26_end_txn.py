"""EndTxn (26): commit or abort a transaction.

    versions 0 to 5: v2 returns PRODUCER_FENCED where older versions return INVALID_PRODUCER_EPOCH; v5 increases the
    epoch with every end and returns the producer id and epoch to use next (KIP-890)

The reply is sent once the decision is in the log; markers follow. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.broker.coordination.transactions import version_of
from moldau.coordinator.transaction.requests import Owner
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_FENCED = 2
FIRST_WITH_BUMP = 5


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    if not request.transactional_id:
        return Message(error_code=ErrorCode.INVALID_REQUEST)
    granted = await broker.coordinators.transactions.end_transaction(
        request.transactional_id,
        Owner(request.producer_id, request.producer_epoch),
        is_commit=request.committed,
        version=version_of(call.api_version >= FIRST_WITH_BUMP),
    )
    error = granted.error
    if error is ErrorCode.PRODUCER_FENCED and call.api_version < FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return Message(error_code=error, producer_id=granted.producer_id, producer_epoch=granted.producer_epoch)
