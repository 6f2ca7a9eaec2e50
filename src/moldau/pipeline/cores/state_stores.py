"""The stores that users' processors ask for, by kind. Start at `open_store`."""

from __future__ import annotations

from moldau.pipeline.cores.context import TaskContext
from moldau.pipeline.cores.failures import StateError
from moldau.pipeline.cores.store import Store
from moldau.pipeline.ir.nodes import StateStore, StoreKind

__all__ = ["open_store"]


def open_store(wanted: StateStore, context: TaskContext) -> Store:
    """The store, made the first time somebody asks: several processors may share one."""
    match wanted.kind:
        case StoreKind.KEY_VALUE:
            return context.key_value_store(wanted.table)
        case StoreKind.TIMESTAMPED_KEY_VALUE:
            return context.timestamped_store(wanted.table)
        case _:
            raise StateError(f"store {wanted.table.store!r}: there are no {wanted.kind.value} stores")
