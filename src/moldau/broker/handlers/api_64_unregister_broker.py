"""UnregisterBroker (64), version 0: forget a broker that will not come back. Start at `handle`."""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.controller.errors import refusal_of
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.messages import Message

__all__ = ["handle"]


async def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    error, why = ErrorCode.NONE, None
    try:
        await broker.controller.unregister(request.broker_id)
    except MoldauError as refused:
        error, why = refusal_of(refused)
    return Message(error_code=error, error_message=why)
