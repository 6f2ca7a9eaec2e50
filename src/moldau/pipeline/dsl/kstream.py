"""A stream of records, and what can be done with it.

Operators that may change the key mark the stream: before records are grouped or joined by key they go to the partition
of the new one. Joins are in `stream_joins`, grouping leads to `grouped`. Wherever a function is taken, an expression
will do (`expressions`); a function gets key and value, unless its operator changes values only, where it gets the value
(and the variant ending in `_with_key` gives it both). Start at `KStream`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar

from moldau.pipeline.dsl.branching import BranchedKStream
from moldau.pipeline.dsl.functions import Given, WithKey, callable_of, function_of
from moldau.pipeline.dsl.given_options import option_of
from moldau.pipeline.dsl.graph import Graph, Part, repartitioned
from moldau.pipeline.dsl.grouped import KGroupedStream
from moldau.pipeline.dsl.hints import Hinting
from moldau.pipeline.dsl.ktable import GlobalKTable, KTable
from moldau.pipeline.dsl.materialized import Materialized
from moldau.pipeline.dsl.options import Grouped, Joined, Named, Produced, Repartitioned, StreamJoined, name_of
from moldau.pipeline.dsl.processing import stores_of, supplier_of
from moldau.pipeline.dsl.stream_joins import StreamJoin, join_global_table, join_streams, join_table
from moldau.pipeline.dsl.windows import JoinWindows
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import Call
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.inference import typed
from moldau.pipeline.ir.nodes import (
    Filter,
    FlatMap,
    FlatMapValues,
    ForEach,
    JoinKind,
    Map,
    MapValues,
    Merge,
    Node,
    Peek,
    Process,
    Repartition,
    SelectKey,
    Sink,
    ToTable,
)
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.types import Array

__all__ = ["KStream"]


GROUP_FIRST = "group the records first, with group_by_key() or group_by(...)"


class KStream(Hinting):
    """Records of one or more topics, each of them an event of its own."""

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
        self.graph = graph
        self.node = node
        self.keys = keys
        self.values = values
        self.has_new_keys = has_new_keys
        """Whether records may lie in another partition than the one of their key."""
        self._repartition: Repartition | None = None

    @property
    def name(self) -> str:
        """The name of the node that this stream comes from."""
        return self.node.name

    # --- one record at a time --------------------------------------------------------------------------------

    def filter(self, predicate: Given, named: Named | str | None = None) -> KStream:
        """Keep the records for which `predicate` (key, value) is true."""
        return self._filtered(predicate, named, is_negated=False)

    def filter_not(self, predicate: Given, named: Named | str | None = None) -> KStream:
        """Drop the records for which `predicate` (key, value) is true."""
        return self._filtered(predicate, named, is_negated=True)

    def _filtered(self, predicate: Given, named: Named | str | None, *, is_negated: bool) -> KStream:
        function = self._function(predicate, "filter", "key", "value")
        name = self.graph.names.chosen(name_of(named), "KSTREAM-FILTER-")
        return self._then(
            Filter(name=name, origin=callers_origin(), input=self.node, predicate=function, is_negated=is_negated),
            self.keys,
            self.values,
        )

    def map(self, mapper: Given, named: Named | str | None = None) -> KStream:
        """Replace key and value by what `mapper` (key, value) returns, a pair of both.

        If the key stays, `map_values` says so and saves a repartitioning.
        """
        function = self._function(mapper, "map", "key", "value")
        name = self.graph.names.chosen(name_of(named), "KSTREAM-MAP-")
        keys, values = _pair_of(function)
        node = Map(name=name, origin=callers_origin(), input=self.node, mapper=function)
        return self._then(node, keys, values, has_new_keys=True)

    def map_values(self, mapper: Given, named: Named | str | None = None) -> KStream:
        """Replace the value by what `mapper` (value) returns; an expression may read the key as well."""
        return self._mapped(mapper, named, ("value",))

    def map_values_with_key(self, mapper: Given, named: Named | str | None = None) -> KStream:
        """Replace the value by what `mapper` (key, value) returns."""
        return self._mapped(mapper, named, ("key", "value"))

    def _mapped(self, mapper: Given, named: Named | str | None, parameters: tuple[str, ...]) -> KStream:
        function, has_key = self._value_function(mapper, "map_values", parameters)
        name = self.graph.names.chosen(name_of(named), "KSTREAM-MAPVALUES-")
        node = MapValues(name=name, origin=callers_origin(), input=self.node, mapper=function, has_key=has_key)
        return self._then(node, self.keys, Part.made_by(function))

    def flat_map(self, mapper: Given, named: Named | str | None = None) -> KStream:
        """Replace each record by any number: `mapper` (key, value) returns pairs of key and value."""
        function = self._function(mapper, "flat_map", "key", "value")
        name = self.graph.names.chosen(name_of(named), "KSTREAM-FLATMAP-")
        node = FlatMap(name=name, origin=callers_origin(), input=self.node, mapper=function)
        return self._then(node, Part(), Part(), has_new_keys=True)

    def flat_map_values(self, mapper: Given, named: Named | str | None = None) -> KStream:
        """Replace each record by one for each value that `mapper` (value) returns."""
        return self._flat_mapped(mapper, named, ("value",))

    def flat_map_values_with_key(self, mapper: Given, named: Named | str | None = None) -> KStream:
        """Replace each record by one for each value that `mapper` (key, value) returns."""
        return self._flat_mapped(mapper, named, ("key", "value"))

    def _flat_mapped(self, mapper: Given, named: Named | str | None, parameters: tuple[str, ...]) -> KStream:
        function, has_key = self._value_function(mapper, "flat_map_values", parameters)
        name = self.graph.names.chosen(name_of(named), "KSTREAM-FLATMAPVALUES-")
        node = FlatMapValues(name=name, origin=callers_origin(), input=self.node, mapper=function, has_key=has_key)
        made = Part.made_by(function).type
        return self._then(node, self.keys, Part(None, made.items if isinstance(made, Array) else None))

    def select_key(self, selector: Given, named: Named | str | None = None) -> KStream:
        """Replace the key by what `selector` (key, value) returns."""
        return self._selected(selector, "select_key", name_of(named))

    def _selected(self, selector: Given, what: str, name: str | None) -> KStream:
        function = self._function(selector, what, "key", "value")
        chosen = self.graph.names.chosen(name, "KSTREAM-KEY-SELECT-")
        node = SelectKey(name=chosen, origin=callers_origin(), input=self.node, selector=function)
        return self._then(node, Part.made_by(function), self.values, has_new_keys=True)

    def peek(self, action: Callable[[Any, Any], object], named: Named | str | None = None) -> KStream:
        """Call `action` (key, value) for each record and pass the record on.

        A record may be seen again after a failure, whatever the processing guarantee.
        """
        name = self.graph.names.chosen(name_of(named), "KSTREAM-PEEK-")
        function = callable_of(action, "peek", "key", "value")
        node = Peek(name=name, origin=callers_origin(), input=self.node, action=function)
        return self._then(node, self.keys, self.values)

    def for_each(self, action: Callable[[Any, Any], object], named: Named | str | None = None) -> None:
        """Call `action` (key, value) for each record, and be done with it."""
        self._end(callable_of(action, "for_each", "key", "value"), name_of(named), "KSTREAM-FOREACH-")

    def print(self, label: str | None = None, named: Named | str | None = None) -> None:
        """Write each record to standard output, of whichever process it is in."""
        shown = self.name if label is None else label

        def write(key: Any, value: Any) -> None:
            sys.stdout.write(f"[{shown}]: {key}, {value}\n")

        self._end(PythonFunction(write, callers_origin()), name_of(named), "KSTREAM-PRINTER-")

    def _end(self, action: PythonFunction, name: str | None, prefix: str) -> None:
        chosen = self.graph.names.chosen(name, prefix)
        self.graph.add(ForEach(name=chosen, origin=callers_origin(), input=self.node, action=action))

    # --- several streams, other partitions -------------------------------------------------------------------

    def merge(self, other: KStream, named: Named | str | None = None) -> KStream:
        """The records of both streams, as they come."""
        self._same_builder(other)
        name = self.graph.names.chosen(name_of(named), "KSTREAM-MERGE-")
        node = Merge(name=name, origin=callers_origin(), inputs=(self.node, other.node))
        keys = self.keys if self.keys == other.keys else Part()
        values = self.values if self.values == other.values else Part()
        return self._then(node, keys, values, has_new_keys=self.has_new_keys or other.has_new_keys)

    def split(self, named: Named | str | None = None) -> BranchedKStream:
        """Give each record to the first branch whose predicate holds; `branch` adds one."""
        return BranchedKStream(self, name_of(named))

    def repartition(self, repartitioned_by: Repartitioned | None = None) -> KStream:
        """Send each record to the partition of its key, here and now."""
        options = option_of(repartitioned_by, Repartitioned)
        prefix = options.name or self.graph.names.processor("KSTREAM-REPARTITION-")
        keys, values = self.keys.or_of(options.key_serde), self.values.or_of(options.value_serde)
        node = repartitioned(
            self.graph,
            self.node,
            prefix,
            keys=keys,
            values=values,
            partitions=options.number_of_partitions,
            partitioner=_partitioner(options.partitioner),
            is_automatic=False,
        )
        return KStream(self.graph, self.graph.add(node), keys, values, has_new_keys=False)

    def repartitioned_for_join(self, prefix: str, keys: Part, values: Part) -> KStream:
        """This stream where its keys belong; joining it twice under its own name repartitions it once."""
        node = repartitioned(self.graph, self.node, prefix, keys=keys, values=values)
        if self._repartition is None or prefix != self.name:
            self._repartition = self.graph.add(node)
        return KStream(self.graph, self._repartition, keys, values, has_new_keys=False)

    # --- out -------------------------------------------------------------------------------------------------

    def to(self, topic: str | Callable[[Any, Any, Any], str], produced: Produced | None = None) -> None:
        """Write to a topic, or to the one that a function (key, value, record context) names for each record."""
        options = option_of(produced, Produced)
        chooser = None if isinstance(topic, str) else callable_of(topic, "to", "key", "value", "record context")
        name = self.graph.names.chosen(options.name, "KSTREAM-SINK-")
        self.graph.add(
            Sink(
                name=name,
                origin=callers_origin(),
                input=self.node,
                topic=topic if isinstance(topic, str) else None,
                chooser=chooser,
                key_serde=self.keys.or_of(options.key_serde).key_serde(),
                value_serde=self.values.or_of(options.value_serde).value_serde(),
                partitioner=_partitioner(options.partitioner),
            )
        )

    def to_table(self, materialized: Materialized | None = None, named: Named | str | None = None) -> KTable:
        """Read the stream as a table: a record replaces the one before of its key, a null value deletes it."""
        graph = self.graph
        name = graph.names.chosen(name_of(named), "KSTREAM-TOTABLE-")
        options = option_of(materialized, Materialized).or_serdes(self.keys.serde, self.values.serde)
        store = graph.claim_store(options.store_name or graph.names.store("KSTREAM-TOTABLE-"))
        keys, values = self.keys.or_of(options.key_serde), self.values.or_of(options.value_serde)
        source: Node = self.node
        if self.has_new_keys:
            source = graph.add(repartitioned(graph, self.node, name, keys=keys, values=values))
        table = options.under(store)
        node = graph.add(ToTable(name=name, origin=callers_origin(), input=source, table=table))
        return KTable(graph, node, keys, values, store=table.store if table.is_queryable else None)

    # --- by key ----------------------------------------------------------------------------------------------

    def group_by_key(self, grouped: Grouped | None = None) -> KGroupedStream:
        """Group records by their key."""
        options = option_of(grouped, Grouped)
        return KGroupedStream(
            self.graph,
            self.node,
            self.keys.or_of(options.key_serde),
            self.values.or_of(options.value_serde),
            has_new_keys=self.has_new_keys,
            name=options.name,
        )

    def group_by(self, selector: Given, grouped: Grouped | None = None) -> KGroupedStream:
        """Group records by what `selector` (key, value) returns."""
        options = option_of(grouped, Grouped)
        return self._selected(selector, "group_by", options.name).group_by_key(options)

    def join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Given | WithKey,
        windows: JoinWindows | None = None,
        *,
        key_selector: Given | None = None,
        joined: StreamJoined | Joined | Named | str | None = None,
    ) -> KStream:
        """Join with records of another stream near in time, or with the row of a table, where there is one.

        `joiner` is (left value, right value); `with_key(joiner)` also gets the key. A stream needs `windows`, a global
        table a `key_selector` (key, value) that finds its key.
        """
        join = StreamJoin(kind=JoinKind.INNER, joiner=joiner, windows=windows, key_selector=key_selector, joined=joined)
        return self._joined(other, join)

    def left_join(
        self,
        other: KStream | KTable | GlobalKTable,
        joiner: Given | WithKey,
        windows: JoinWindows | None = None,
        *,
        key_selector: Given | None = None,
        joined: StreamJoined | Joined | Named | str | None = None,
    ) -> KStream:
        """As `join`; a record without a partner is joined with None."""
        join = StreamJoin(kind=JoinKind.LEFT, joiner=joiner, windows=windows, key_selector=key_selector, joined=joined)
        return self._joined(other, join)

    def outer_join(
        self,
        other: KStream,
        joiner: Given | WithKey,
        windows: JoinWindows,
        *,
        joined: StreamJoined | str | None = None,
    ) -> KStream:
        """As `join`; a record of either stream without a partner is joined with None."""
        return self._joined(other, StreamJoin(kind=JoinKind.OUTER, joiner=joiner, windows=windows, joined=joined))

    def _joined(self, other: KStream | KTable | GlobalKTable, join: StreamJoin) -> KStream:
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
        """Give records to a processor of your own: `supplier` () returns one per partition.

        A processor has process(record), and may have init(context) and close(). `stores` names those it uses, made by
        `add_state_store` or by the supplier's own `stores()`.
        """
        node = self._process(supplier, stores, named, "KSTREAM-PROCESSOR-", keeps_key=False)
        return self._then(node, Part(), Part(), has_new_keys=True)

    def process_values(self, supplier: Callable[[], Any], *stores: str, named: Named | str | None = None) -> KStream:
        """As `process`, for a processor that leaves keys alone; so nothing needs to be repartitioned."""
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

    # --- shared ----------------------------------------------------------------------------------------------

    def branch_of(self, node: Node) -> KStream:
        """The stream of a node that passes records of this one on as they are."""
        return KStream(self.graph, node, self.keys, self.values, has_new_keys=self.has_new_keys)

    def _then(self, node: Node, keys: Part, values: Part, *, has_new_keys: bool = False) -> KStream:
        self.graph.add(node)
        return KStream(self.graph, node, keys, values, has_new_keys=self.has_new_keys or has_new_keys)

    def _function(self, given: Given, what: str, *parameters: str) -> Function:
        function = function_of(given, what, *parameters)
        return self.typed(function)

    def _value_function(self, given: Given, what: str, parameters: tuple[str, ...]) -> tuple[Function, bool]:
        if callable(given):
            return self._function(given, what, *parameters), "key" in parameters
        return self._function(given, what, "key", "value"), True

    def typed(self, function: Function) -> Function:
        """A function's types, where it is an expression, from what is known of keys and values."""
        if isinstance(function, PythonFunction):
            return function
        return typed(function, {"key": self.keys.type, "value": self.values.type})

    def _same_builder(self, other: KStream) -> None:
        if not isinstance(other, KStream) or other.graph is not self.graph:
            raise TopologyError("both streams must come from the same StreamsBuilder", callers_origin())


def _pair_of(function: Function) -> tuple[Part, Part]:
    if isinstance(function, Call) and function.function == "PAIR":
        key, value = function.arguments
        return Part(None, key.type), Part(None, value.type)
    return Part(), Part()


def _partitioner(given: Callable[..., Any] | None) -> PythonFunction | None:
    return None if given is None else callable_of(given, "the partitioner", "topic", "key", "value", "partition count")
