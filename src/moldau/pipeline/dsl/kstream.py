"""A stream of records, and its operators.

Operators that may change the key mark the stream: its records are repartitioned by the new key before they are grouped
or joined by key. Operators on single records are in `record_operators`, joins in `stream_joins`, aggregations of
grouped streams in `grouped`. Start at `KStream`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from moldau.pipeline.dsl.branching import BranchedKStream
from moldau.pipeline.dsl.functions import Described, WithKey, callable_of
from moldau.pipeline.dsl.graph import Graph, Part, repartition_node
from moldau.pipeline.dsl.grouped import KGroupedStream
from moldau.pipeline.dsl.ktable import GlobalKTable, KTable
from moldau.pipeline.dsl.options.given import option_of
from moldau.pipeline.dsl.options.joins import Joined, StreamJoined
from moldau.pipeline.dsl.options.materialized import Materialized
from moldau.pipeline.dsl.options.named import Named, name_of
from moldau.pipeline.dsl.options.operators import Grouped, Produced, Repartitioned, partitioner_of
from moldau.pipeline.dsl.options.windows import JoinWindows
from moldau.pipeline.dsl.processing import stores_of, supplier_of
from moldau.pipeline.dsl.record_operators import RecordOperators
from moldau.pipeline.dsl.stream_joins import StreamJoin, join_global_table, join_streams, join_table
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import JoinKind, Merge, Node, Process, Repartition, Sink, ToTable
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import KR, VO, VR, K, V

__all__ = ["KStream"]

GROUP_FIRST = "group the records first, with group_by_key() or group_by(...)"


class KStream(RecordOperators[K, V]):
    """A stream of records from one or more topics; each record is an independent event.

    For a type checker it is a `KStream[K, V]`; the types come from its serdes and functions.
    """

    hints: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("count", "reduce", "aggregate", "windowed_by", "cogroup"), GROUP_FIRST),
        "suppress": "a table has it: aggregate the stream first, or use to_table()",
        "through": "use repartition(), or to(...) and read the topic again",
        "branch": "use split().branch(...)",
        "transform": "use process(...)",
        "transform_values": "use process_values(...)",
        "to_stream": "it is one already",
    }

    def __init__(self, graph: Graph, node: Node, keys: Part, values: Part, *, has_new_keys: bool) -> None:
        super().__init__(graph, node, keys, values, has_new_keys=has_new_keys)
        self._repartition: Repartition | None = None

    # --- merge, split, repartition ---------------------------------------------------------------------------

    def merge(self, other: KStream[K, V], named: Named | str | None = None) -> KStream[K, V]:
        """The records of both streams as one stream, in the order in which they arrive."""
        self._same_builder(other)
        name = self.graph.names.given_or_next(name_of(named), "KSTREAM-MERGE-")
        node = Merge(name=name, origin=callers_origin(), inputs=(self.node, other.node))
        keys = self.keys if self.keys == other.keys else Part()
        values = self.values if self.values == other.values else Part()
        return self._then(node, keys, values, has_new_keys=self.has_new_keys or other.has_new_keys)

    def split(self, named: Named | str | None = None) -> BranchedKStream[K, V]:
        """Split the stream into branches; each record goes to the first branch whose predicate is true.

        `orders.split("orders-").branch(is_big, Branched.as_("big")).default_branch()` returns a dict of two streams,
        `orders-big` and `orders-0`.
        """
        return BranchedKStream(self, name_of(named))

    def repartition(self, repartitioned_by: Repartitioned | None = None) -> KStream[K, V]:
        """Repartition the stream by key at this point, through an explicit repartition step.

        `clicks.select_key(by_user).repartition(Repartitioned.as_("by-user").with_number_of_partitions(8))`
        """
        options = option_of(repartitioned_by, Repartitioned)
        prefix = options.name or self.graph.names.processor("KSTREAM-REPARTITION-")
        keys, values = self.keys.or_of(options.key_serde), self.values.or_of(options.value_serde)
        node = repartition_node(
            self.graph,
            self.node,
            prefix,
            keys=keys,
            values=values,
            partitions=options.number_of_partitions,
            partitioner=partitioner_of(options.partitioner),
            is_automatic=False,
        )
        return KStream(self.graph, self.graph.add(node), keys, values, has_new_keys=False)

    def repartitioned_for_join(self, prefix: str, keys: Part, values: Part) -> KStream[K, V]:
        """This stream repartitioned by key; two joins that use the stream's own name share one repartition node."""
        node = repartition_node(self.graph, self.node, prefix, keys=keys, values=values)
        if self._repartition is None or prefix != self.name:
            self._repartition = self.graph.add(node)
        return KStream(self.graph, self._repartition, keys, values, has_new_keys=False)

    # --- output ----------------------------------------------------------------------------------------------

    def to(self, topic: str | Callable[[K, V, Any], str], produced: Produced | None = None) -> None:
        """Write the records to a topic; a function (key, value, record context) may choose the topic per record.

        `counts.to_stream().to("counts", Produced.with_(Serdes.string(), Serdes.long()))`
        """
        options = option_of(produced, Produced)
        chooser = None if isinstance(topic, str) else callable_of(topic, "to", "key", "value", "record context")
        name = self.graph.names.given_or_next(options.name, "KSTREAM-SINK-")
        self.graph.add(
            Sink(
                name=name,
                origin=callers_origin(),
                input=self.node,
                topic=topic if isinstance(topic, str) else None,
                chooser=chooser,
                key_serde=self.keys.or_of(options.key_serde).key_serde(),
                value_serde=self.values.or_of(options.value_serde).value_serde(),
                partitioner=partitioner_of(options.partitioner),
            )
        )

    def to_table(self, materialized: Materialized | None = None, named: Named | str | None = None) -> KTable[K, V]:
        """Convert the stream to a table: each record replaces the row of its key, a null value deletes the row."""
        graph = self.graph
        name = graph.names.given_or_next(name_of(named), "KSTREAM-TOTABLE-")
        options = option_of(materialized, Materialized).or_serdes(self.keys.serde, self.values.serde)
        store = graph.claim_store(options.store_name or graph.names.store("KSTREAM-TOTABLE-"))
        keys, values = self.keys.or_of(options.key_serde), self.values.or_of(options.value_serde)
        source: Node = self.node
        if self.has_new_keys:
            source = graph.add(repartition_node(graph, self.node, name, keys=keys, values=values))
        table = options.under(store)
        node = graph.add(ToTable(name=name, origin=callers_origin(), input=source, table=table))
        return KTable(graph, node, keys, values, store=table.store if table.is_queryable else None)

    # --- by key ----------------------------------------------------------------------------------------------

    def group_by_key(self, grouped: Grouped | None = None) -> KGroupedStream[K, V]:
        """Group records by their key, to count, reduce or aggregate them."""
        options = option_of(grouped, Grouped)
        return KGroupedStream(
            self.graph,
            self.node,
            self.keys.or_of(options.key_serde),
            self.values.or_of(options.value_serde),
            has_new_keys=self.has_new_keys,
            name=options.name,
        )

    def group_by(
        self, selector: Callable[[K, V], KR] | Described, grouped: Grouped | None = None
    ) -> KGroupedStream[KR, V]:
        """Group records by the new key that `selector` (key, value) returns.

        `words.group_by(lambda key, word: word, Grouped.with_(Serdes.string(), Serdes.string())).count()`
        """
        options = option_of(grouped, Grouped)
        return self._select_key(selector, "group_by", options.name).group_by_key(options)

    def join(
        self,
        other: KStream[K, VO] | KTable[K, VO] | GlobalKTable[Any, VO],
        joiner: Callable[[V, VO], VR] | WithKey[VR] | Described,
        windows: JoinWindows | None = None,
        *,
        key_selector: Callable[[K, V], object] | Described | None = None,
        joined: StreamJoined | Joined | Named | str | None = None,
    ) -> KStream[K, VR]:
        """Inner join with a stream, a table or a global table; a record without a match gives no result.

        `joiner` is called with (left value, right value); `with_key(joiner)` also gets the key. A stream needs
        `windows`, which limit the time difference of two records. A global table needs `key_selector` (key, value),
        which returns the key of the table's row.

            windows = JoinWindows.of_time_difference_and_grace(timedelta(minutes=5), timedelta(seconds=30))
            clicks.join(views, lambda click, view: {**view, **click}, windows)
            orders.join(customers, lambda order, customer: {**order, "name": customer["name"]})
        """
        join = StreamJoin(kind=JoinKind.INNER, joiner=joiner, windows=windows, key_selector=key_selector, joined=joined)
        return self._join(other, join)

    def left_join(
        self,
        other: KStream[K, VO] | KTable[K, VO] | GlobalKTable[Any, VO],
        joiner: Callable[[V, VO | None], VR] | WithKey[VR] | Described,
        windows: JoinWindows | None = None,
        *,
        key_selector: Callable[[K, V], object] | Described | None = None,
        joined: StreamJoined | Joined | Named | str | None = None,
    ) -> KStream[K, VR]:
        """Like `join`, but a left record without a match is joined with None."""
        join = StreamJoin(kind=JoinKind.LEFT, joiner=joiner, windows=windows, key_selector=key_selector, joined=joined)
        return self._join(other, join)

    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[V | None, VO | None], VR] | WithKey[VR] | Described,
        windows: JoinWindows,
        *,
        joined: StreamJoined | Named | str | None = None,
    ) -> KStream[K, VR]:
        """Like `join` of two streams, but a record of either stream without a match is joined with None."""
        return self._join(other, StreamJoin(kind=JoinKind.OUTER, joiner=joiner, windows=windows, joined=joined))

    def _join(self, other: KStream | KTable | GlobalKTable, join: StreamJoin) -> KStream[K, Any]:
        match other:
            case KStream():
                self._same_builder(other)
                return join_streams(self, other, join)
            case KTable():
                return join_table(self, other, join)
            case GlobalKTable():
                return join_global_table(self, other, join)
            case _:
                raise TopologyError(
                    f"a stream joins a stream, a table or a global table, not {type(other).__name__}", callers_origin()
                )

    # --- processors ------------------------------------------------------------------------------------------

    def process(self, supplier: Callable[[], Any], *stores: str, named: Named | str | None = None) -> KStream:
        """Process records with your own processor; `supplier` () is called to create one per partition.

        A processor has process(record), and may have init(context) and close(). `stores` are the names of the stores it
        uses, created by `add_state_store` or by the supplier's own `stores()`.

            class Deduplicating:
                def init(self, context: ProcessorContext) -> None:
                    self.context, self.seen = context, context.get_state_store("seen")

                def process(self, record: Record[str, str]) -> None:
                    if self.seen.put_if_absent(record.key, record.value) is None:
                        self.context.forward(record)

            events.process(Deduplicating, "seen")
        """
        node = self._process(supplier, stores, named, "KSTREAM-PROCESSOR-", keeps_key=False)
        return self._then(node, Part(), Part(), has_new_keys=True)

    def process_values(
        self, supplier: Callable[[], Any], *stores: str, named: Named | str | None = None
    ) -> KStream[K, Any]:
        """Like `process`, for a processor that does not change keys, so that no repartitioning is needed."""
        node = self._process(supplier, stores, named, "KSTREAM-PROCESSVALUES-", keeps_key=True)
        return self._then(node, self.keys, Part())

    def _process(
        self,
        supplier: Callable[[], Any],
        stores: tuple[str, ...],
        named: Named | str | None,
        prefix: str,
        *,
        keeps_key: bool,
    ) -> Process:
        name = name_of(named) or self.graph.names.processor(prefix)
        owned, connected = stores_of(self.graph, supplier, stores)
        return Process(
            name=name,
            origin=callers_origin(),
            input=self.node,
            supplier=supplier_of(supplier, "process", "process"),
            stores=owned,
            connected=connected,
            keeps_key=keeps_key,
        )

    def _same_builder(self, other: KStream) -> None:
        if not isinstance(other, KStream) or other.graph is not self.graph:
            raise TopologyError("both streams must come from the same StreamsBuilder", callers_origin())
