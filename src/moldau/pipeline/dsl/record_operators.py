"""The operators of a stream that handle one record at a time: filter, map, select_key, peek, for_each, print.

An expression (`expressions`) can replace a function, except in `peek` and `for_each`. A function is called with key and
value; that of an operator which only changes values gets the value, and in the variant ending in `_with_key` both.
Start at `RecordOperators`, the base class of `KStream`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic

from moldau.pipeline.dsl.functions import Described, Given, callable_of, function_of
from moldau.pipeline.dsl.graph import Graph, Part
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.dsl.options.named import Named, name_of
from moldau.pipeline.ir.expressions import Call, Expression
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.inference import with_types
from moldau.pipeline.ir.nodes import Filter, FlatMap, FlatMapValues, ForEach, Map, MapValues, Node, Peek, SelectKey
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.type_variables import KR, VR, K, V
from moldau.pipeline.ir.types import Array

__all__ = ["RecordOperators", "StreamBase"]

if TYPE_CHECKING:
    from moldau.pipeline.dsl.kstream import KStream


class StreamBase(Hinting, Generic[K, V]):
    """A node of a graph, with the serdes and types of the records that it emits."""

    def __init__(self, graph: Graph, node: Node, keys: Part, values: Part, *, has_new_keys: bool) -> None:
        self.graph = graph
        self.node = node
        self.keys = keys
        self.values = values
        self.has_new_keys = has_new_keys
        """Whether the key may have changed, so that records may not be in the partition of their key."""

    @property
    def name(self) -> str:
        """The name of the node that this stream comes from."""
        return self.node.name

    def with_types(self, function: Function) -> Function:
        """The function with its types filled in if it is an expression, from the types of keys and values."""
        if not isinstance(function, Expression):
            return function
        return with_types(function, {"key": self.keys.type, "value": self.values.type})

    def branch_of(self, node: Node) -> KStream[K, V]:
        """The stream of a node that forwards records of this one unchanged."""
        return _stream(self.graph, node, self.keys, self.values, has_new_keys=self.has_new_keys)

    def _function(self, given: Given, what: str, *parameters: str) -> Function:
        return self.with_types(function_of(given, what, *parameters))

    def _then(self, node: Node, keys: Part, values: Part, *, has_new_keys: bool = False) -> KStream:
        """Add a node after this one and return its stream; `has_new_keys` stays true until a repartitioning."""
        self.graph.add(node)
        return _stream(self.graph, node, keys, values, has_new_keys=self.has_new_keys or has_new_keys)


def _stream(graph: Graph, node: Node, keys: Part, values: Part, *, has_new_keys: bool) -> KStream[Any, Any]:
    from moldau.pipeline.dsl.kstream import KStream

    return KStream(graph, node, keys, values, has_new_keys=has_new_keys)


class RecordOperators(StreamBase[K, V]):
    """The operators of a stream that handle one record at a time, without state."""

    def filter(
        self, predicate: Callable[[K, V], object] | Described, named: Named | str | None = None
    ) -> KStream[K, V]:
        """Keep the records for which `predicate` (key, value) is true.

        `orders.filter(lambda customer, order: order["total"] > 100)`
        """
        return self._filter(predicate, named, is_negated=False)

    def filter_not(
        self, predicate: Callable[[K, V], object] | Described, named: Named | str | None = None
    ) -> KStream[K, V]:
        """Drop the records for which `predicate` (key, value) is true."""
        return self._filter(predicate, named, is_negated=True)

    def _filter(self, predicate: Given, named: Named | str | None, *, is_negated: bool) -> KStream[K, V]:
        function = self._function(predicate, "filter", "key", "value")
        name = self.graph.names.given_or_next(name_of(named), "KSTREAM-FILTER-")
        return self._then(
            Filter(name=name, origin=callers_origin(), input=self.node, predicate=function, is_negated=is_negated),
            self.keys,
            self.values,
        )

    def map(
        self, mapper: Callable[[K, V], tuple[KR, VR]] | Described, named: Named | str | None = None
    ) -> KStream[KR, VR]:
        """Replace key and value by the pair (new key, new value) that `mapper` (key, value) returns.

        If the key does not change, use `map_values`: it avoids a repartitioning before a later grouping or join.

        `orders.map(lambda order_id, order: (order["customer"], order["total"]))`
        """
        function = self._function(mapper, "map", "key", "value")
        name = self.graph.names.given_or_next(name_of(named), "KSTREAM-MAP-")
        keys, values = _pair_of(function)
        node = Map(name=name, origin=callers_origin(), input=self.node, mapper=function)
        return self._then(node, keys, values, has_new_keys=True)

    def map_values(self, mapper: Callable[[V], VR] | Described, named: Named | str | None = None) -> KStream[K, VR]:
        """Replace the value by the result of `mapper` (value); an expression may also read the key.

        `orders.map_values(lambda order: order["total"])`, or as an expression, `orders.map_values(value["total"])`
        """
        return self._map_values(mapper, named, ("value",))

    def map_values_with_key(
        self, mapper: Callable[[K, V], VR] | Described, named: Named | str | None = None
    ) -> KStream[K, VR]:
        """Replace the value by the result of `mapper` (key, value)."""
        return self._map_values(mapper, named, ("key", "value"))

    def _map_values(self, mapper: Given, named: Named | str | None, parameters: tuple[str, ...]) -> KStream[K, Any]:
        function, has_key = self._value_function(mapper, "map_values", parameters)
        name = self.graph.names.given_or_next(name_of(named), "KSTREAM-MAPVALUES-")
        node = MapValues(name=name, origin=callers_origin(), input=self.node, mapper=function, has_key=has_key)
        return self._then(node, self.keys, Part.made_by(function))

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[KR, VR]]] | Described, named: Named | str | None = None
    ) -> KStream[KR, VR]:
        """Replace each record by zero or more records: `mapper` (key, value) returns pairs (new key, new value).

        `orders.flat_map(lambda order_id, order: [(item["product"], item) for item in order["items"]])`
        """
        function = self._function(mapper, "flat_map", "key", "value")
        name = self.graph.names.given_or_next(name_of(named), "KSTREAM-FLATMAP-")
        node = FlatMap(name=name, origin=callers_origin(), input=self.node, mapper=function)
        return self._then(node, Part(), Part(), has_new_keys=True)

    def flat_map_values(
        self, mapper: Callable[[V], Iterable[VR]] | Described, named: Named | str | None = None
    ) -> KStream[K, VR]:
        """Replace each record by one record per value that `mapper` (value) returns; the key stays the same.

        `lines.flat_map_values(str.split)`
        """
        return self._flat_map_values(mapper, named, ("value",))

    def flat_map_values_with_key(
        self, mapper: Callable[[K, V], Iterable[VR]] | Described, named: Named | str | None = None
    ) -> KStream[K, VR]:
        """Replace each record by one record per value that `mapper` (key, value) returns; the key stays the same."""
        return self._flat_map_values(mapper, named, ("key", "value"))

    def _flat_map_values(
        self, mapper: Given, named: Named | str | None, parameters: tuple[str, ...]
    ) -> KStream[K, Any]:
        function, has_key = self._value_function(mapper, "flat_map_values", parameters)
        name = self.graph.names.given_or_next(name_of(named), "KSTREAM-FLATMAPVALUES-")
        node = FlatMapValues(name=name, origin=callers_origin(), input=self.node, mapper=function, has_key=has_key)
        made = Part.made_by(function).type
        return self._then(node, self.keys, Part(None, made.items if isinstance(made, Array) else None))

    def select_key(
        self, selector: Callable[[K, V], KR] | Described, named: Named | str | None = None
    ) -> KStream[KR, V]:
        """Replace the key by the result of `selector` (key, value); a later grouping or join by key repartitions.

        `clicks.select_key(lambda session, click: click["user"])`
        """
        return self._select_key(selector, "select_key", name_of(named))

    def _select_key(self, selector: Given, what: str, name: str | None) -> KStream[Any, V]:
        function = self._function(selector, what, "key", "value")
        chosen = self.graph.names.given_or_next(name, "KSTREAM-KEY-SELECT-")
        node = SelectKey(name=chosen, origin=callers_origin(), input=self.node, selector=function)
        return self._then(node, Part.made_by(function), self.values, has_new_keys=True)

    def peek(self, action: Callable[[K, V], object], named: Named | str | None = None) -> KStream[K, V]:
        """Call `action` (key, value) for each record, for example to log it, and forward the record unchanged.

        After a failure `action` may be called again for the same record, whatever the processing guarantee.
        """
        name = self.graph.names.given_or_next(name_of(named), "KSTREAM-PEEK-")
        function = callable_of(action, "peek", "key", "value")
        node = Peek(name=name, origin=callers_origin(), input=self.node, action=function)
        return self._then(node, self.keys, self.values)

    def for_each(self, action: Callable[[K, V], object], named: Named | str | None = None) -> None:
        """Call `action` (key, value) for each record; nothing follows this operator."""
        self._end(callable_of(action, "for_each", "key", "value"), name_of(named), "KSTREAM-FOREACH-")

    def print(self, label: str | None = None, named: Named | str | None = None) -> None:
        """Write each record to the standard output of the process that handles it."""
        shown = self.name if label is None else label

        def write(key: Any, value: Any) -> None:
            sys.stdout.write(f"[{shown}]: {key}, {value}\n")

        self._end(PythonFunction(write, callers_origin()), name_of(named), "KSTREAM-PRINTER-")

    def _end(self, action: PythonFunction, name: str | None, prefix: str) -> None:
        chosen = self.graph.names.given_or_next(name, prefix)
        self.graph.add(ForEach(name=chosen, origin=callers_origin(), input=self.node, action=action))

    def _value_function(self, given: Given, what: str, parameters: tuple[str, ...]) -> tuple[Function, bool]:
        if callable(given):
            return self._function(given, what, *parameters), "key" in parameters
        return self._function(given, what, "key", "value"), True


def _pair_of(function: Function) -> tuple[Part, Part]:
    if isinstance(function, Call) and function.function == "PAIR":
        key, value = function.arguments
        return Part(None, key.type), Part(None, value.type)
    return Part(), Part()
