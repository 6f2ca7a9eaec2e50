"""Which stores of a topology are queryable, and the kind of each. Start at `queryable_stores`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from moldau.pipeline.ir.nodes import GlobalStoreSource, Materialization, Node, StateStore, StoreKind
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ir.windows import SessionWindow

__all__ = ["QueryableStore", "Shape", "queryable_stores"]


class Shape(Enum):
    """How entries of a store are looked up."""

    KEY_VALUE = "key-value"
    WINDOW = "window"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class QueryableStore:
    """A store that the user has named."""

    name: str
    shape: Shape
    table: Materialization

    @property
    def retention_ms(self) -> int | None:
        return None if self.shape is Shape.KEY_VALUE else self.table.retention_ms


def queryable_stores(topology: Topology) -> dict[str, QueryableStore]:
    """The queryable stores, by name."""
    found = (store for node in topology.nodes for store in _of(node))
    return {store.name: store for store in found if store.table.is_queryable}


def _of(node: Node) -> Iterator[QueryableStore]:
    if isinstance(node, GlobalStoreSource):
        yield QueryableStore(node.table.store, _SHAPES.get(node.kind, Shape.KEY_VALUE), node.table)
        return
    for name in getattr(type(node), "__dataclass_fields__", ()):
        part = getattr(node, name)
        if isinstance(part, Materialization):
            yield QueryableStore(part.store, _shape(getattr(node, "window", None)), part)
        elif isinstance(part, tuple):
            for one in part:
                if isinstance(one, StateStore):
                    yield QueryableStore(one.table.store, _SHAPES.get(one.kind, Shape.KEY_VALUE), one.table)


_SHAPES = {
    StoreKind.WINDOW: Shape.WINDOW,
    StoreKind.TIMESTAMPED_WINDOW: Shape.WINDOW,
    StoreKind.SESSION: Shape.SESSION,
}


def _shape(window: object) -> Shape:
    if window is None:
        return Shape.KEY_VALUE
    return Shape.SESSION if isinstance(window, SessionWindow) else Shape.WINDOW
