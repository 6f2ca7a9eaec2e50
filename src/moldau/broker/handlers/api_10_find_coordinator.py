"""FindCoordinator (10), versions 0-6: who looks after a group or a transactional id.

There are no coordinators yet, and Kafka's answer to that is COORDINATOR_NOT_AVAILABLE: clients keep
asking and work without one meanwhile. v1 key type, v4 many keys at once. Start at `handle`.
"""

from __future__ import annotations

from moldau.broker.context import Broker, RequestContext
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

KEY_TYPES = (0, 1, 2)
"""Group, transaction, share partition."""
FIRST_WITH_MANY_KEYS = 4


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    key_type = request.key_type if call.api_version >= 1 else 0
    if call.api_version < FIRST_WITH_MANY_KEYS:
        return _nobody(None, key_type)
    return Message(coordinators=[_nobody(key, key_type) for key in request.coordinator_keys])


def _nobody(key: str | None, key_type: int) -> Message:
    if key_type in KEY_TYPES:
        error, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, "No coordinator is available."
    else:
        error, message = ErrorCode.INVALID_REQUEST, f"Coordinators of type {key_type} are not known."
    return Message(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
