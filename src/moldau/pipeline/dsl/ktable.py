"""A table, and its operators.

A table is a stream of row changes: a new value replaces the row of its key, a null value deletes it. Operators without
a store of their own compute a row when it is read; a store with a name can be queried. Operators on single rows are in
`row_operators`, joins by key and by foreign key in `table_joins`, aggregations of grouped tables in `grouped_table`.
Start at `KTable`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, overload

from moldau.pipeline.dsl.functions import Described, Given, WithKey, function_of
from moldau.pipeline.dsl.graph import Graph, Part
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.joins import TableJoined
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.named import Named, name_of
from moldau.pipeline.dsl.options.operators import Grouped
from moldau.pipeline.dsl.options.suppressed import Suppressed
from moldau.pipeline.dsl.row_operators import RowOperators
from moldau.pipeline.dsl.table_joins import join_on_foreign_key, join_tables
from moldau.pipeline.dsl.versions import is_versioned
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.grace import close_delay_ms
from moldau.pipeline.ir.nodes import GlobalTableSource, GroupTable, JoinKind, Materialization, Suppress, ToStream
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import KO, KR, VO, VR, K, V

if TYPE_CHECKING:
    from moldau.pipeline.dsl.grouped_table import KGroupedTable
    from moldau.pipeline.dsl.kstream import KStream

__all__ = ["GlobalKTable", "KTable"]


class GlobalKTable(Generic[K, V]):
    """A table of which every task has all rows; a stream can join it by any field, without repartitioning."""

    def __init__(self, graph: Graph, node: GlobalTableSource, keys: Part, values: Part) -> None:
        self.graph = graph
        self.node = node
        self.keys = keys
        self.values = values

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store in which the rows can be queried, or None."""
        return self.node.table.store if self.node.table.is_queryable else None


STREAM_FIRST = "make it a stream first, with to_stream()"


class KTable(RowOperators[K, V]):
    """A table: the latest value of each key, updated by a stream of changes.

    For a type checker it is a `KTable[K, V]`; the types come from its serdes and functions.
    """

    hints: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("to", "peek", "for_each", "map", "flat_map", "select_key", "merge", "split"), STREAM_FIRST),
        **dict.fromkeys(("process", "process_values", "print", "repartition"), STREAM_FIRST),
        **dict.fromkeys(("count", "reduce", "aggregate"), "group its rows first, with group_by(...)"),
        "group_by_key": "its rows are one per key already: use group_by(...)",
        "windowed_by": "only streams have windows: to_stream().group_by_key().windowed_by(...)",
        "to_table": "it is one already",
    }

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Hold changes back until their window closes, or for a time limit, so that fewer updates are emitted.

        `per_minute.count().suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))`
        """
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

    @overload
    def to_stream(self, *, named: Named | str | None = None) -> KStream[K, V]: ...

    @overload
    def to_stream(
        self, selector: Callable[[K, V], KR] | Described, named: Named | str | None = None
    ) -> KStream[KR, V]: ...

    def to_stream(self, selector: Given | None = None, named: Named | str | None = None) -> KStream[Any, V]:
        """The changes as a stream of new values, null for a deleted row; `selector` (key, value) returns a new key."""
        from moldau.pipeline.dsl.kstream import KStream

        name = self.graph.names.given_or_next(name_of(named), "KTABLE-TOSTREAM-")
        node = self.graph.add(ToStream(name=name, origin=callers_origin(), input=self.node))
        stream = KStream[Any, V](self.graph, node, self.keys, self.values, has_new_keys=False)
        return stream if selector is None else stream.select_key(selector)

    # --- grouping --------------------------------------------------------------------------------------------

    def group_by(
        self, selector: Callable[[K, V], tuple[KR, VR]] | Described, grouped: Grouped | None = None
    ) -> KGroupedTable[KR, VR]:
        """Group rows by another key: `selector` (key, value) returns a pair (new key, new value).

        `users.group_by(lambda user, city: (city, user), Grouped.with_(Serdes.string(), Serdes.string())).count()`
        """
        from moldau.pipeline.dsl.grouped_table import KGroupedTable

        options = option_of(grouped, Grouped)
        function = self._with_types(function_of(selector, "group_by", "key", "value"))
        node = GroupTable(
            name=self.graph.names.given_or_next(options.name, "KTABLE-SELECT-"),
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
        other: KTable[K, VO],
        joiner: Callable[[V, VO], VR] | WithKey[VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, VR]:
        """Inner join of two tables by key: a key needs a row in both.

        `joiner` is called with (left value, right value); `with_key(joiner)` also gets the key.

        `users.join(addresses, lambda user, address: {**user, "city": address["city"]})`
        """
        return join_tables(self, other, joiner, JoinKind.INNER, materialized=materialized, name=name_of(named))

    def left_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V, VO | None], VR] | WithKey[VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, VR]:
        """Like `join`, but a row of this table without a match is joined with None."""
        return join_tables(self, other, joiner, JoinKind.LEFT, materialized=materialized, name=name_of(named))

    def outer_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V | None, VO | None], VR] | WithKey[VR] | Described,
        materialized: Materialized | None = None,
        named: Named | str | None = None,
    ) -> KTable[K, VR]:
        """Like `join`, but a row of either table without a match is joined with None."""
        return join_tables(self, other, joiner, JoinKind.OUTER, materialized=materialized, name=name_of(named))

    def foreign_key_join(
        self,
        other: KTable[KO, VO],
        extractor: Callable[[V], KO | None] | WithKey[KO | None] | Described,
        joiner: Callable[[V, VO], VR] | WithKey[VR] | Described,
        table_joined: TableJoined | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, VR]:
        """Inner join by a foreign key: `extractor` (value) returns the key of the row in `other`.

        Many rows may refer to the same row of `other`; a change of that row updates all their results.

        `orders.foreign_key_join(customers, lambda order: order["customer"], lambda order, customer: ...)`
        """
        return join_on_foreign_key(
            self, other, extractor, joiner, kind=JoinKind.INNER, table_joined=table_joined, materialized=materialized
        )

    def foreign_key_left_join(
        self,
        other: KTable[KO, VO],
        extractor: Callable[[V], KO | None] | WithKey[KO | None] | Described,
        joiner: Callable[[V, VO | None], VR] | WithKey[VR] | Described,
        table_joined: TableJoined | None = None,
        materialized: Materialized | None = None,
    ) -> KTable[K, VR]:
        """Like `foreign_key_join`, but a row without a match in `other` is joined with None."""
        return join_on_foreign_key(
            self, other, extractor, joiner, kind=JoinKind.LEFT, table_joined=table_joined, materialized=materialized
        )
