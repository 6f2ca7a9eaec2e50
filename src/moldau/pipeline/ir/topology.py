"""A whole pipeline: its nodes, and what follows from them.

Nothing runs here. `subtopologies` splits it, `describing` and `drawing` print it. Start at `Topology`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from moldau.pipeline.ir.describing import description
from moldau.pipeline.ir.drawing import dot, graph, mermaid
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import GlobalTableSource, Materialization, Node, Process, Sink, Source, inputs_of
from moldau.pipeline.ir.rewrites.foreign_key import lower_foreign_key_joins
from moldau.pipeline.ir.rewrites.serde_places import SerdeChange, with_default_serdes, with_serdes
from moldau.pipeline.ir.subtopologies import SubTopology
from moldau.pipeline.ir.subtopologies import split as cut
from moldau.serdes.serde import Serde

__all__ = ["SubTopology", "Topology", "split"]


class Topology:
    """The nodes of a pipeline in the order of their creation, inputs first."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = tuple(nodes)
        known: set[str] = set()
        for node in self.nodes:
            if node.name in known:
                raise TopologyError(f"two nodes are called {node.name}", node.origin)
            for source in inputs_of(node):
                if source.name not in known:
                    raise TopologyError(f"the input {source.name} of {node.name} is not before it", node.origin)
            known.add(node.name)

    def node(self, name: str) -> Node:
        """The node of this name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise TopologyError(f"no node is called {name}")

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources except global tables."""
        return tuple(n for n in self.nodes if isinstance(n, Source) and not isinstance(n, GlobalTableSource))

    @property
    def global_tables(self) -> tuple[GlobalTableSource, ...]:
        return tuple(node for node in self.nodes if isinstance(node, GlobalTableSource))

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Sink))

    @cached_property
    def subtopologies(self) -> tuple[SubTopology, ...]:
        """The sub-topologies that run per partition; foreign-key joins are lowered first."""
        return split(self)

    @cached_property
    def stores(self) -> dict[str, Materialization]:
        """The stores of all nodes, by name."""
        found: dict[str, Materialization] = {}
        for node in self.nodes:
            for name in getattr(type(node), "__dataclass_fields__", ()):
                part = getattr(node, name)
                if isinstance(part, Materialization):
                    found[part.store] = part
            if isinstance(node, Process):
                found.update({store.table.store: store.table for store in node.stores})
        return found

    def describe(self) -> str:
        """The topology as Kafka Streams prints it, and which internal topics stay inside Spark."""
        return description(self.nodes)

    def to_mermaid(self) -> str:
        """The topology as a Mermaid flowchart, for Markdown."""
        return mermaid(self.nodes, self.subtopologies)

    def to_graph(self, pipeline: str = "") -> dict[str, Any]:
        """Topics, operators and stores as nodes and edges; with the name of its pipeline, ids differ from others'."""
        return graph(pipeline, self.nodes, self.subtopologies)

    def to_dot(self) -> str:
        """The topology as a Graphviz drawing."""
        return dot(self.nodes, self.subtopologies)

    def with_default_serdes(self, *, key: Serde | None, value: Serde | None) -> Topology:
        """The same pipeline with these serdes where it names none."""
        return Topology(with_default_serdes(self.nodes, key=key, value=value))

    def with_prepared_serdes(self, prepare: SerdeChange) -> Topology:
        """The same pipeline with each serde replaced by what `prepare` returns, such as a configured one."""
        return Topology(with_serdes(self.nodes, prepare))


def split(topology: Topology) -> tuple[SubTopology, ...]:
    """Split a topology into sub-topologies; foreign-key joins are lowered first."""
    return cut(lower_foreign_key_joins(topology.nodes))
