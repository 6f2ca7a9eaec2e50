"""The nodes of a topology that is being built, and the serdes and types of the records between them.

A `StreamsBuilder` and all its streams and tables share one `Graph`. Start at `Graph`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.expressions import Expression
from moldau.pipeline.ir.functions import Function, PythonFunction
from moldau.pipeline.ir.naming import Names
from moldau.pipeline.ir.nodes import Node, Repartition, StateStore
from moldau.pipeline.ir.origin import Origin, callers_origin
from moldau.pipeline.ir.serdes import DefaultSerde, type_of
from moldau.pipeline.ir.types import DataType
from moldau.serdes.serde import Serde

__all__ = ["Graph", "Part", "repartition_node"]

AnyNode = TypeVar("AnyNode", bound=Node)
GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")
REPARTITION_SUFFIX = "-repartition"


@dataclass(frozen=True, slots=True)
class Part:
    """The serde and the data type of the keys, or of the values, of a stream or table; None where unknown."""

    serde: Serde | None = None
    type: DataType | None = None

    @classmethod
    def of(cls, serde: Serde | None) -> Part:
        return cls() if serde is None else cls(serde, type_of(serde))

    @classmethod
    def made_by(cls, function: Function) -> Part:
        """The part of a function's result: an expression's type, or nothing for a Python function; never a serde."""
        return cls(None, function.type) if isinstance(function, Expression) else cls()

    def or_of(self, serde: Serde | None) -> Part:
        """The part of `serde`, or this part if `serde` is None."""
        return self if serde is None else Part.of(serde)

    def key_serde(self) -> Serde:
        return self.serde or DefaultSerde("key")

    def value_serde(self) -> Serde:
        return self.serde or DefaultSerde("value")


class Graph:
    """The nodes of a topology in the order of their creation, and the names of its operators and stores."""

    def __init__(self) -> None:
        self.names = Names()
        self.nodes: list[Node] = []
        self.state_stores: dict[str, StateStore] = {}
        self.branches: dict[str, list[Function]] = {}
        """The predicates per `Split`, by its name: a branch may be added after the operators of an earlier branch."""
        self.default_branches: set[str] = set()
        self._owners: dict[str, Origin] = {}
        self._node_names: set[str] = set()

    def add(self, node: AnyNode) -> AnyNode:
        """Add a node and return it; raises `TopologyError` if its name is taken."""
        if node.name in self._node_names:
            way_out = "name one of them with Grouped.as_" if isinstance(node, Repartition) else "choose another"
            raise TopologyError(f"the name {node.name} is taken by another operator; {way_out}", node.origin)
        self._node_names.add(node.name)
        self.nodes.append(node)
        return node

    def claim_store(self, name: str) -> str:
        """Reserve the name of a store and return it; raises `TopologyError` if it is taken."""
        if name in self._owners:
            raise TopologyError(
                f"a store called {name} exists already ({self._owners[name]}); choose another name", callers_origin()
            )
        self._owners[name] = callers_origin()
        return name

    def has_store(self, name: str) -> bool:
        """Whether an operator or `add_state_store` has a store of this name."""
        return name in self._owners


def repartition_node(
    graph: Graph,
    source: Node,
    prefix: str,
    *,
    keys: Part,
    values: Part,
    partitions: int | None = None,
    partitioner: PythonFunction | None = None,
    is_automatic: bool = True,
) -> Repartition:
    """A repartition node after `source`, not yet in the graph: some callers only need to consume its numbers."""
    topic = prefix if prefix.endswith(REPARTITION_SUFFIX) else prefix + REPARTITION_SUFFIX
    generated = (
        graph.names.processor("KSTREAM-SINK-"),
        graph.names.processor("KSTREAM-FILTER-"),
        graph.names.processor("KSTREAM-SOURCE-"),
    )
    sink, null_filter, source_name = (
        generated if GENERATED.fullmatch(prefix) else (f"{topic}-sink", f"{topic}-filter", f"{topic}-source")
    )
    return Repartition(
        name=source_name,
        origin=callers_origin(),
        parts=(null_filter, sink, source_name),
        input=source,
        topic=topic,
        key_serde=keys.key_serde(),
        value_serde=values.value_serde(),
        partitions=partitions,
        partitioner=partitioner,
        is_automatic=is_automatic,
    )
