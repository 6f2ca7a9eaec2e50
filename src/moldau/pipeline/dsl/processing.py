"""Which stores a user's processor gets."""

from __future__ import annotations

from typing import Any

from moldau.pipeline.dsl.graph import Graph
from moldau.pipeline.dsl.materialized import StoreBuilder
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import StateStore
from moldau.pipeline.ir.origin import callers_origin

__all__ = ["stores_of"]


def stores_of(graph: Graph, supplier: Any, names: tuple[str, ...]) -> tuple[tuple[StateStore, ...], tuple[str, ...]]:
    """The stores made for processors, and the names of those that other operators own."""
    owned: dict[str, StateStore] = {}
    for builder in _own_stores(supplier):
        if builder.name not in graph.state_stores:
            graph.state_stores[graph.claim_store(builder.name)] = builder.store
        owned[builder.name] = graph.state_stores[builder.name]
    connected = []
    for name in names:
        if name in graph.state_stores:
            owned[name] = graph.state_stores[name]
        elif graph.has_store(name):
            connected.append(name)
        else:
            raise TopologyError(
                f"there is no store called {name}: add it with add_state_store before the processor that uses it",
                callers_origin(),
            )
    return tuple(owned.values()), tuple(connected)


def _own_stores(supplier: Any) -> tuple[StoreBuilder, ...]:
    stores = getattr(supplier, "stores", None)
    return () if stores is None or isinstance(supplier, type) else tuple(stores())
