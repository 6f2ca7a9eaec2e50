"""What every stream is made of, and how the next one comes of it. Start at `StreamBase`; operators are in `kstream`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from moldau.pipeline.dsl.functions import Given, function_of
from moldau.pipeline.dsl.graph import Graph, Part
from moldau.pipeline.dsl.hints import Hinting
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.inference import typed
from moldau.pipeline.ir.nodes import Node
from moldau.pipeline.ir.type_variables import K, V

if TYPE_CHECKING:
    from moldau.pipeline.dsl.kstream import KStream

__all__ = ["StreamBase"]


class StreamBase(Hinting, Generic[K, V]):
    """A node of a graph, and what is known of the records that come out of it."""

    def __init__(self, graph: Graph, node: Node, keys: Part, values: Part, *, has_new_keys: bool) -> None:
        self.graph = graph
        self.node = node
        self.keys = keys
        self.values = values
        self.has_new_keys = has_new_keys
        """Whether records may lie in another partition than the one of their key."""

    @property
    def name(self) -> str:
        """The name of the node that this stream comes from."""
        return self.node.name

    def typed(self, function: Function) -> Function:
        """A function's types, where it is an expression, from what is known of keys and values."""
        if isinstance(function, PythonFunction):
            return function
        return typed(function, {"key": self.keys.type, "value": self.values.type})

    def branch_of(self, node: Node) -> KStream[K, V]:
        """The stream of a node that passes records of this one on as they are."""
        return _stream(self.graph, node, self.keys, self.values, has_new_keys=self.has_new_keys)

    def _function(self, given: Given, what: str, *parameters: str) -> Function:
        return self.typed(function_of(given, what, *parameters))

    def _then(self, node: Node, keys: Part, values: Part, *, has_new_keys: bool = False) -> KStream:
        """The stream of a node that follows this one's; new keys stay new until records are repartitioned."""
        self.graph.add(node)
        return _stream(self.graph, node, keys, values, has_new_keys=self.has_new_keys or has_new_keys)


def _stream(graph: Graph, node: Node, keys: Part, values: Part, *, has_new_keys: bool) -> KStream[Any, Any]:
    from moldau.pipeline.dsl.kstream import KStream

    return KStream(graph, node, keys, values, has_new_keys=has_new_keys)
