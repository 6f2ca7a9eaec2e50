"""Open the stores of users' processors, by kind; those of global tables are read-only.

Start at `open_store`.
"""

from __future__ import annotations

from typing import Any

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import StateError
from moldau.pipeline.cores.stores.store import Store
from moldau.pipeline.cores.stores.versioned_store import versioned_store
from moldau.pipeline.ir.nodes import StateStore, StoreKind

__all__ = ["ReadOnlyStore", "open_store"]

READING = frozenset(
    {
        "all",
        "approximate_num_entries",
        "backward_fetch",
        "fetch",
        "fetch_all",
        "fetch_at",
        "fetch_key_range",
        "fetch_session",
        "find_sessions",
        "get",
        "get_as_of",
        "name",
        "prefix_scan",
        "range",
        "reverse_all",
        "reverse_range",
    }
)


def open_store(wanted: StateStore, context: TaskContext) -> Store:
    """The store, created on first use: several processors may share one."""
    table = wanted.table
    match wanted.kind:
        case StoreKind.KEY_VALUE:
            return context.key_value_store(table)
        case StoreKind.TIMESTAMPED_KEY_VALUE:
            return context.timestamped_store(table)
        case StoreKind.VERSIONED_KEY_VALUE:
            return versioned_store(table, context)
        case StoreKind.SESSION:
            return context.session_store(table, retention_ms=_retention_ms(wanted))
        case StoreKind.WINDOW:
            return context.window_store(
                table,
                retention_ms=_retention_ms(wanted),
                window_size_ms=wanted.window_size_ms or 0,
                retain_duplicates=wanted.retain_duplicates,
            )
        case StoreKind.TIMESTAMPED_WINDOW:
            return context.timestamped_window_store(
                table, retention_ms=_retention_ms(wanted), window_size_ms=wanted.window_size_ms or 0
            )


def _retention_ms(wanted: StateStore) -> int:
    if wanted.table.retention_ms is None:
        raise StateError(f"store {wanted.table.store!r} is of kind {wanted.kind.value} and needs a retention")
    return wanted.table.retention_ms


class ReadOnlyStore:
    """A store that only another processor may write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in READING:
            return getattr(self._store, name)
        raise StateError(f"store {self._store.name!r} is global and read-only here: {name} is not allowed")
