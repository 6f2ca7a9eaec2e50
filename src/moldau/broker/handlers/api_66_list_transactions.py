"""ListTransactions (66): the transactions this broker coordinates.

    versions 0 to 2: v1 filters by duration, v2 by a pattern for the transactional id

Patterns use RE2, which runs in linear time for any input; Kafka uses the same. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.context import Broker, RequestContext
from moldau.coordinator.transaction.listing import STATES_BY_NAME, list_transactions
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_DURATION = 1
FIRST_WITH_PATTERN = 2


class _BadPatternError(Exception):
    """A pattern that RE2 does not accept."""


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    unknown = [name for name in request.state_filters if name not in STATES_BY_NAME]
    if broker.coordinators.transactions.is_loading:
        return _answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, unknown)
    pattern = request.transactional_id_pattern if call.api_version >= FIRST_WITH_PATTERN else None
    try:
        is_wanted = _matcher(pattern) if pattern else None
    except _BadPatternError:
        return _answer(ErrorCode.INVALID_REGULAR_EXPRESSION, unknown)
    found = list_transactions(
        broker.coordinators.transactions.all(),
        states=frozenset(request.state_filters),
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter if call.api_version >= FIRST_WITH_DURATION else -1,
        is_wanted=is_wanted,
        now_ms=broker.coordinators.now_ms(),
    )
    return _answer(
        ErrorCode.NONE,
        unknown,
        [
            Message(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                transaction_state=one.state.display_name,
            )
            for one in found
        ],
    )


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a whole transactional id matches."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options=options)
    except re2.error as error:
        raise _BadPatternError from error
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None


def _answer(error: ErrorCode, unknown: list[str], found: list[Message] | None = None) -> Message:
    return Message(error_code=error, unknown_state_filters=unknown, transaction_states=found or [])
