"""The suppliers of user-defined processors, and the stores that these processors use."""

from __future__ import annotations

from typing import Any

from moldau.pipeline.dsl.functions import callable_of
from moldau.pipeline.dsl.graph import Graph
from moldau.pipeline.dsl.options.stores import StoreBuilder
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.functions import PythonFunction
from moldau.pipeline.ir.nodes import StateStore
from moldau.pipeline.ir.origin import callers_origin

__all__ = ["stores_of", "supplier_of"]


def supplier_of(given: Any, what: str, method: str) -> PythonFunction:
    """The supplier of an operator's processors; refuses an instance, and a class without the method `method`."""
    if not callable(given) and hasattr(given, method):
        name = type(given).__name__
        raise TopologyError(
            f"{what} makes a processor of its own for each partition: give it the class {name} or a function that"
            f" returns one, not {name}(...)",
            callers_origin(),
        )
    if isinstance(given, type) and not hasattr(given, method):
        raise TopologyError(
            f"{what} needs a processor with a method {method}, and {given.__name__} has none", callers_origin()
        )
    return callable_of(given, what)


def stores_of(graph: Graph, supplier: Any, names: tuple[str, ...]) -> tuple[tuple[StateStore, ...], tuple[str, ...]]:
    """The state stores that a processor uses, and the names of the stores it uses that other operators own."""
    owned: dict[str, StateStore] = {}
    for builder in _own_stores(supplier):
        if builder.name not in graph.state_stores:
            graph.state_stores[graph.claim_store(builder.name)] = builder.store
        owned[builder.name] = graph.state_stores[builder.name]
    connected = []
    for name in names:
        if not isinstance(name, str):
            raise TopologyError(f"stores are given by name, one after the other, not as {name!r}", callers_origin())
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
