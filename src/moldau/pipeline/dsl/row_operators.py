"""The operators of a table that handle one row at a time: filter, map_values, transform_values.

A table without a store of its own is computed when it is read. Start at `RowOperators`, the base class of `KTable`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

from moldau.pipeline.dsl.functions import Described, Given, function_of
from moldau.pipeline.dsl.graph import Graph, Part
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.named import Named, name_of
from moldau.pipeline.dsl.processing import stores_of, supplier_of
from moldau.pipeline.ir.expressions import Expression
from moldau.pipeline.ir.functions import Function
from moldau.pipeline.ir.inference import with_types
from moldau.pipeline.ir.nodes import Materialization, Node, TableFilter, TableMapValues, TableTransformValues
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import VR, K, V

if TYPE_CHECKING:
    from moldau.pipeline.dsl.ktable import KTable

__all__ = ["RowOperators"]


class RowOperators(Hinting, Generic[K, V]):
    """A node of a graph that emits a table, and the operators that handle one row at a time."""

    def __init__(self, graph: Graph, node: Node, keys: Part, values: Part, *, store: str | None) -> None:
        self.graph = graph
        self.node = node
        self.keys = keys
        self.values = values
        self._store = store

    @property
    def name(self) -> str:
        """The name of the node that this table comes from."""
        return self.node.name

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store in which the rows can be queried, or None."""
        return self._store

    def filter(
        self,
        predicate: Callable[[K, V], object] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, V]:
        """Keep the rows for which `predicate` (key, value) is true; a row for which it becomes false is deleted.

        `accounts.filter(lambda owner, balance: balance < 0, Materialized.as_("overdrawn"))`
        """
        return self._filter(predicate, materialized, named, is_negated=False)

    def filter_not(
        self,
        predicate: Callable[[K, V], object] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, V]:
        """Drop the rows for which `predicate` (key, value) is true; the opposite of `filter`."""
        return self._filter(predicate, materialized, named, is_negated=True)

    def _filter(
        self, predicate: Given, materialized: Materialized | None, named: Named | str | None, *, is_negated: bool
    ) -> KTable[K, V]:
        function = self._with_types(function_of(predicate, "filter", "key", "value"))
        table = self._store_for(materialized, self.values, burn="KTABLE-FILTER-")
        name = self.graph.names.given_or_next(name_of(named), "KTABLE-FILTER-")
        node = TableFilter(
            name=name,
            origin=callers_origin(),
            input=self.node,
            predicate=function,
            is_negated=is_negated,
            table=table,
            forgets_history=_forgets_history(materialized),
        )
        return self._then(node, materialized, self.values, table)

    def map_values(
        self,
        mapper: Callable[[V], VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, VR]:
        """Replace each row's value by the result of `mapper` (value); an expression may also read the key."""
        return self._map_values(mapper, ("value",), materialized, named)

    def map_values_with_key(
        self,
        mapper: Callable[[K, V], VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, VR]:
        """Replace each row's value by the result of `mapper` (key, value)."""
        return self._map_values(mapper, ("key", "value"), materialized, named)

    def _map_values(
        self, mapper: Given, parameters: tuple[str, ...], materialized: Materialized | None, named: Named | str | None
    ) -> KTable[K, Any]:
        has_key = not callable(mapper) or "key" in parameters
        function = self._with_types(function_of(mapper, "map_values", *(("key", "value") if has_key else parameters)))
        values = Part.made_by(function)
        table = self._store_for(materialized, values, burn="KTABLE-MAPVALUES-")
        name = self.graph.names.given_or_next(name_of(named), "KTABLE-MAPVALUES-")
        node = TableMapValues(
            name=name,
            origin=callers_origin(),
            input=self.node,
            mapper=function,
            has_key=has_key,
            table=table,
            forgets_history=_forgets_history(materialized),
        )
        return self._then(node, materialized, values, table)

    def transform_values(
        self,
        supplier: Callable[[], Any],
        *stores: str,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, Any]:
        """Replace each row's value with your own transformer; `supplier` () is called to create one per partition.

        A transformer has transform(key, value), which returns the new value, and may have init(context) and close().
        """
        owned, connected = stores_of(self.graph, supplier, stores)
        table = self._store_for(materialized, Part(), burn=None)
        node = TableTransformValues(
            name=self.graph.names.given_or_next(name_of(named), "KTABLE-TRANSFORMVALUES-"),
            origin=callers_origin(),
            input=self.node,
            supplier=supplier_of(supplier, "transform_values", "transform"),
            stores=owned,
            connected=connected,
            table=table,
            forgets_history=_forgets_history(materialized),
        )
        return self._then(node, materialized, Part(), table)

    def _with_types(self, function: Function) -> Function:
        if not isinstance(function, Expression):
            return function
        return with_types(function, {"key": self.keys.type, "value": self.values.type})

    def _store_for(
        self, materialized: Materialized | None, values: Part, *, burn: str | None
    ) -> Materialization | None:
        """The requested store; None if it has no name, but then `burn` consumes a number, as in Kafka Streams."""
        if materialized is None:
            return None
        options = option_of(materialized, Materialized)
        if options.store_name is None:
            if burn is not None:
                self.graph.names.store(burn)
            return None
        store = self.graph.claim_store(options.store_name)
        return options.or_serdes(self.keys.serde, values.serde).under(store)

    def _then(
        self, node: Node, materialized: Materialized | None, values: Part, table: Materialization | None
    ) -> KTable[K, Any]:
        from moldau.pipeline.dsl.ktable import KTable

        self.graph.add(node)
        options = option_of(materialized, Materialized)
        keys, values = self.keys.or_of(options.key_serde), values.or_of(options.value_serde)
        return KTable(self.graph, node, keys, values, store=None if table is None else table.store)


def _forgets_history(materialized: Materialized | None) -> bool:
    """Whether the table was given a `Materialized` that is not versioned, with a store name or without."""
    return materialized is not None and materialized.history_ms is None
