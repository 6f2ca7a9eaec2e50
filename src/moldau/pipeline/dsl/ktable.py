"""A table, and what can be done with it.

A table is the changes of its rows: a new value replaces the one of its key, a null value deletes it. Operators without
a store of their own compute rows when they are asked for one; a store with a name can be queried. Joins by key and by
foreign key are in `table_joins`, grouping leads to `grouped_table`. Start at `KTable`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from moldau.pipeline.dsl.functions import Given, WithKey, function_of
from moldau.pipeline.dsl.given_options import option_of
from moldau.pipeline.dsl.graph import Graph, Part
from moldau.pipeline.dsl.hints import Hinting
from moldau.pipeline.dsl.materialized import Materialized
from moldau.pipeline.dsl.options import Grouped, Named, TableJoined, name_of
from moldau.pipeline.dsl.processing import stores_of, supplier_of
from moldau.pipeline.dsl.suppressed import Suppressed
from moldau.pipeline.dsl.table_joins import join_on_foreign_key, join_tables
from moldau.pipeline.dsl.versions import is_versioned
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.grace import close_delay_ms
from moldau.pipeline.ir.inference import typed
from moldau.pipeline.ir.nodes import (
    GlobalTableSource,
    GroupTable,
    JoinKind,
    Materialization,
    Node,
    Suppress,
    TableFilter,
    TableMapValues,
    TableTransformValues,
    ToStream,
)
from moldau.pipeline.ir.origin import callers_origin

if TYPE_CHECKING:
    from moldau.pipeline.dsl.grouped_table import KGroupedTable
    from moldau.pipeline.dsl.kstream import KStream

__all__ = ["GlobalKTable", "KTable"]


class GlobalKTable:
    """A table of which every task knows every row; made to be joined with, by any field."""

    def __init__(self, graph: Graph, node: GlobalTableSource, keys: Part, values: Part) -> None:
        self.graph = graph
        self.node = node
        self.keys = keys
        self.values = values

    @property
    def queryable_store_name(self) -> str | None:
        """The store that can be queried for its rows, where it has one."""
        return self.node.table.store if self.node.table.is_queryable else None


STREAM_FIRST = "make it a stream first, with to_stream()"


class KTable(Hinting):
    """Rows by key, and their changes."""

    hints: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("to", "peek", "for_each", "map", "flat_map", "select_key", "merge", "split"), STREAM_FIRST),
        **dict.fromkeys(("process", "process_values", "print", "repartition"), STREAM_FIRST),
        **dict.fromkeys(("count", "reduce", "aggregate"), "group its rows first, with group_by(...)"),
        "group_by_key": "its rows are one per key already: use group_by(...)",
        "windowed_by": "only streams have windows: to_stream().group_by_key().windowed_by(...)",
        "to_table": "it is one already",
    }

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
        """The store that can be queried for its rows, where it has one."""
        return self._store

    # --- row by row ------------------------------------------------------------------------------------------

    def filter(
        self, predicate: Given, materialized: Materialized | None = None, named: Named | str | None = None
    ) -> KTable:
        """Keep the rows for which `predicate` (key, value) is true; a row that stops being so is deleted."""
        return self._filtered(predicate, materialized, named, is_negated=False)

    def filter_not(
        self, predicate: Given, materialized: Materialized | None = None, named: Named | str | None = None
    ) -> KTable:
        """Drop the rows for which `predicate` (key, value) is true."""
        return self._filtered(predicate, materialized, named, is_negated=True)

    def _filtered(
        self, predicate: Given, materialized: Materialized | None, named: Named | str | None, *, is_negated: bool
    ) -> KTable:
        function = self._typed(function_of(predicate, "filter", "key", "value"))
        table = self._stored(materialized, self.values, burn="KTABLE-FILTER-")
        name = self.graph.names.chosen(name_of(named), "KTABLE-FILTER-")
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
        self, mapper: Given, materialized: Materialized | None = None, named: Named | str | None = None
    ) -> KTable:
        """Replace each row's value by what `mapper` (value) returns; an expression may read the key as well."""
        return self._mapped(mapper, ("value",), materialized, named)

    def map_values_with_key(
        self, mapper: Given, materialized: Materialized | None = None, named: Named | str | None = None
    ) -> KTable:
        """Replace each row's value by what `mapper` (key, value) returns."""
        return self._mapped(mapper, ("key", "value"), materialized, named)

    def _mapped(
        self, mapper: Given, parameters: tuple[str, ...], materialized: Materialized | None, named: Named | str | None
    ) -> KTable:
        has_key = not callable(mapper) or "key" in parameters
        function = self._typed(function_of(mapper, "map_values", *(("key", "value") if has_key else parameters)))
        values = Part.made_by(function)
        table = self._stored(materialized, values, burn="KTABLE-MAPVALUES-")
        name = self.graph.names.chosen(name_of(named), "KTABLE-MAPVALUES-")
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
    ) -> KTable:
        """Replace each row's value with a transformer of your own: `supplier` () returns one per partition.

        A transformer has transform(key, value), and may have init(context) and close().
        """
        owned, connected = stores_of(self.graph, supplier, stores)
        table = self._stored(materialized, Part(), burn=None)
        node = TableTransformValues(
            name=self.graph.names.chosen(name_of(named), "KTABLE-TRANSFORMVALUES-"),
            origin=callers_origin(),
            input=self.node,
            supplier=supplier_of(supplier, "transform_values", "transform"),
            stores=owned,
            connected=connected,
            table=table,
            forgets_history=_forgets_history(materialized),
        )
        return self._then(node, materialized, Part(), table)

    def suppress(self, suppressed: Suppressed) -> KTable:
        """Hold changes back, until their window has closed or for some time."""
        if not isinstance(suppressed, Suppressed):
            raise TopologyError(
                f"suppress takes Suppressed.until_window_closes(...) or Suppressed.until_time_limit(...), "
                f"not {suppressed!r}",
                callers_origin(),
            )
        if is_versioned(self.node):
            raise TopologyError("the changes of a versioned table cannot be suppressed", callers_origin())
        graph, buffer = self.graph, suppressed.buffer
        name = suppressed.name or graph.names.processor("KTABLE-SUPPRESS-")
        grace_ms = close_delay_ms(self.node) if suppressed.wait_ms is None else 0
        store = f"{name}-store" if suppressed.name else graph.names.store("KTABLE-SUPPRESS-")
        node = Suppress(
            name=name,
            origin=callers_origin(),
            input=self.node,
            until_window_close=suppressed.wait_ms is None,
            wait_ms=suppressed.wait_ms or 0,
            grace_ms=grace_ms,
            max_records=buffer.records,
            max_bytes=buffer.bytes,
            is_strict=buffer.is_strict,
            buffer=Materialization(
                store=graph.claim_store(store),
                key_serde=self.keys.key_serde(),
                value_serde=self.values.value_serde(),
                is_caching=False,
                is_logging=buffer.is_logging,
            ),
        )
        graph.add(node)
        return KTable(graph, node, self.keys, self.values, store=None)

    def to_stream(self, selector: Given | None = None, named: Named | str | None = None) -> KStream:
        """The changes as a stream of new values, null where a row was deleted; `selector` (key, value) re-keys it."""
        from moldau.pipeline.dsl.kstream import KStream

        name = self.graph.names.chosen(name_of(named), "KTABLE-TOSTREAM-")
        node = self.graph.add(ToStream(name=name, origin=callers_origin(), input=self.node))
        stream = KStream(self.graph, node, self.keys, self.values, has_new_keys=False)
        return stream if selector is None else stream.select_key(selector)

    # --- by another key --------------------------------------------------------------------------------------

    def group_by(self, selector: Given, grouped: Grouped | None = None) -> KGroupedTable:
        """Group rows by another key: `selector` (key, value) returns a pair of group and value."""
        from moldau.pipeline.dsl.grouped_table import KGroupedTable

        options = option_of(grouped, Grouped)
        function = self._typed(function_of(selector, "group_by", "key", "value"))
        node = GroupTable(
            name=self.graph.names.chosen(options.name, "KTABLE-SELECT-"),
            origin=callers_origin(),
            input=self.node,
            selector=function,
        )
        self.graph.add(node)
        keys, values = Part.of(options.key_serde), Part.of(options.value_serde)
        return KGroupedTable(self.graph, node, keys, values, name=options.name)

    # --- joins -----------------------------------------------------------------------------------------------

    def join(
        self,
        other: KTable,
        joiner: Given | WithKey,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable:
        """Rows with one key in both tables: `joiner` (left value, right value); `with_key(joiner)` gets the key too."""
        return join_tables(self, other, joiner, JoinKind.INNER, materialized=materialized, name=name_of(named))

    def left_join(
        self,
        other: KTable,
        joiner: Given | WithKey,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable:
        """As `join`; a row of this table without a partner is joined with None."""
        return join_tables(self, other, joiner, JoinKind.LEFT, materialized=materialized, name=name_of(named))

    def outer_join(
        self,
        other: KTable,
        joiner: Given | WithKey,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable:
        """As `join`; a row of either table without a partner is joined with None."""
        return join_tables(self, other, joiner, JoinKind.OUTER, materialized=materialized, name=name_of(named))

    def foreign_key_join(
        self,
        other: KTable,
        extractor: Given | WithKey,
        joiner: Given | WithKey,
        table_joined: TableJoined | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """Each row with the row of `other` whose key `extractor` (value) finds in it, where there is one.

        Many rows may find the same; a change of the other row changes them all.
        """
        return join_on_foreign_key(
            self, other, extractor, joiner, kind=JoinKind.INNER, table_joined=table_joined, materialized=materialized
        )

    def foreign_key_left_join(
        self,
        other: KTable,
        extractor: Given | WithKey,
        joiner: Given | WithKey,
        table_joined: TableJoined | None = None,
        materialized: Materialized | None = None,
    ) -> KTable:
        """As `foreign_key_join`; a row that finds none is joined with None."""
        return join_on_foreign_key(
            self, other, extractor, joiner, kind=JoinKind.LEFT, table_joined=table_joined, materialized=materialized
        )

    # --- shared ----------------------------------------------------------------------------------------------

    def _typed(self, function: Function) -> Function:
        if isinstance(function, PythonFunction):
            return function
        return typed(function, {"key": self.keys.type, "value": self.values.type})

    def _stored(self, materialized: Materialized | None, values: Part, *, burn: str | None) -> Materialization | None:
        """The store that was asked for; without a name there is none, though a number may go."""
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
    ) -> KTable:
        self.graph.add(node)
        options = option_of(materialized, Materialized)
        keys, values = self.keys.or_of(options.key_serde), values.or_of(options.value_serde)
        return KTable(self.graph, node, keys, values, store=None if table is None else table.store)


def _forgets_history(materialized: Materialized | None) -> bool:
    """Whether a table was asked to be another kind than a versioned one before it, be it kept under a name or not."""
    return materialized is not None and materialized.history_ms is None
