"""Filters for ListTransactions. Patterns are passed in compiled, so this module does not depend on their syntax.

Start at `list_transactions`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from moldau.coordinator.transaction.states import TransactionState
from moldau.coordinator.transaction.transaction import Transaction

__all__ = ["STATES_BY_NAME", "list_transactions"]

STATES_BY_NAME = {state.display_name: state for state in TransactionState}


def list_transactions(
    transactions: Iterable[Transaction],
    *,
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    longer_than_ms: int = -1,
    is_wanted: Callable[[str], bool] | None = None,
    now_ms: int = 0,
) -> list[Transaction]:
    """The transactions that match every filter; an empty or negative filter matches all."""
    return [
        transaction
        for transaction in transactions
        if (not states or transaction.state.display_name in states)
        and (not producer_ids or transaction.producer_id in producer_ids)
        and (longer_than_ms < 0 or now_ms - transaction.start_ms > longer_than_ms)
        and (is_wanted is None or is_wanted(transaction.transactional_id))
    ]
