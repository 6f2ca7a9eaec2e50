"""A topology as a diagram: topics, operators and stores, and a box around each sub-topology.

All output formats are rendered from one `_Picture`. Start at `mermaid`, `dot` or `graph`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.core import graphs
from moldau.pipeline.ir.nodes import Materialization, Node, Repartition, Sink, Source, TableSource, inputs_of
from moldau.pipeline.ir.subtopologies import SubTopology

__all__ = ["dot", "graph", "mermaid"]


@dataclass(slots=True)
class _Picture:
    topics: dict[str, str] = field(default_factory=dict)
    """Topics by their identifier in the diagram."""
    stores: dict[str, str] = field(default_factory=dict)
    boxes: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """The title of each box, and its operators by their identifier."""
    flows: list[tuple[str, str]] = field(default_factory=list)
    uses: list[tuple[str, str]] = field(default_factory=list)


def mermaid(nodes: Sequence[Node], sub_topologies: Iterable[SubTopology]) -> str:
    """A Mermaid flowchart: topics are rounded, stores are cylinders, operators are boxes."""
    return graphs.mermaid(graph("", nodes, sub_topologies))


def dot(nodes: Sequence[Node], sub_topologies: Iterable[SubTopology]) -> str:
    """A Graphviz digraph with the same shapes."""
    picture = _picture(nodes, sub_topologies)
    lines = ["digraph topology {", "  node [shape=box];"]
    lines += [f"  {mark} [label={json.dumps(topic)}, shape=ellipse];" for mark, topic in picture.topics.items()]
    for number, (title, operators) in enumerate(picture.boxes):
        lines.append(f'  subgraph cluster_{number} {{ label="{title}";')
        lines += [f'    {mark} [label="{name}"];' for mark, name in operators.items()]
        lines.append("  }")
    lines += [f'  {mark} [label="{store}", shape=cylinder];' for mark, store in picture.stores.items()]
    lines += [f"  {one} -> {other};" for one, other in picture.flows]
    lines += [f"  {one} -> {other} [style=dashed, dir=none];" for one, other in picture.uses]
    return "\n".join(lines) + "\n}\n"


def graph(pipeline: str, nodes: Sequence[Node], sub_topologies: Iterable[SubTopology]) -> dict[str, Any]:
    """Nodes and edges as `core.graphs` has them, for programs that draw several pipelines as one graph.

    A topic has the same id in every pipeline; operators and stores have that of their pipeline before them.
    """
    picture = _picture(nodes, sub_topologies)
    owner = {"pipeline": pipeline} if pipeline else {}
    prefix = f"{pipeline}/" if pipeline else ""
    ids = {mark: graphs.topic_id(topic) for mark, topic in picture.topics.items()}
    ids |= {mark: f"store:{prefix}{store}" for mark, store in picture.stores.items()}
    ids |= {mark: f"node:{prefix}{name}" for _, operators in picture.boxes for mark, name in operators.items()}
    shown = [graphs.topic_node(topic) for topic in picture.topics.values()]
    for title, operators in picture.boxes:
        shown += [
            {"id": ids[mark], "kind": "operator", "name": name, "group": title, **owner}
            for mark, name in operators.items()
        ]
    shown += [{"id": ids[mark], "kind": "store", "name": store, **owner} for mark, store in picture.stores.items()]
    edges = [graphs.edge(ids[one], ids[other]) for one, other in picture.flows]
    edges += [graphs.edge(ids[one], ids[other], "use") for one, other in picture.uses]
    return {"nodes": shown, "edges": edges}


def _picture(nodes: Sequence[Node], sub_topologies: Iterable[SubTopology]) -> _Picture:
    picture = _Picture()
    known = {node.name: node for node in nodes}
    marks = {name: f"n{number}" for number, name in enumerate(known)}
    placed: set[str] = set()
    for sub_topology in sub_topologies:
        inside = [node.name for node in sub_topology.nodes if node.name in known and not _is_read(node, sub_topology)]
        picture.boxes.append((f"Sub-topology: {sub_topology.index}", {marks[name]: name for name in inside}))
        placed.update(inside)
    # A global table is in no sub-topology; nodes added by rewrites are not drawn, except under the original's name.
    others = {marks[name]: name for name in known if name not in placed}
    if others:
        picture.boxes.append(("in every task", others))
    for node in nodes:
        picture.flows += [(marks[source.name], marks[node.name]) for source in inputs_of(node)]
        _draw_topics(node, marks[node.name], picture)
        for store in _stores(node):
            picture.uses.append((marks[node.name], _mark(picture.stores, store, "s")))
    return picture


def _is_read(node: Node, sub_topology: SubTopology) -> bool:
    """Whether a sub-topology only reads a repartitioning, which is drawn in the sub-topology that writes it."""
    return isinstance(node, Repartition) and node in sub_topology.inputs and node not in sub_topology.outputs


def _draw_topics(node: Node, mark: str, picture: _Picture) -> None:
    if isinstance(node, Source):
        topics = node.topics or (f"like {node.topic_pattern}",)
        picture.flows += [(_mark(picture.topics, topic, "t"), mark) for topic in topics]
    elif isinstance(node, Sink):
        picture.flows.append((mark, _mark(picture.topics, node.topic or "chosen for each record", "t")))


def _stores(node: Node) -> list[str]:
    names = ("table", "left_store", "right_store", "buffer")
    parts = [getattr(node, name, None) for name in names]
    stores = [part.store for part in parts if isinstance(part, Materialization)]
    stores += [store.table.store for store in getattr(node, "stores", ())]
    # A table without a store name is stored only if something reads it; only describe() shows those.
    return [] if isinstance(node, TableSource) and not node.table.is_queryable else stores


def _mark(marks: dict[str, str], label: str, letter: str) -> str:
    for mark, known in marks.items():
        if known == label:
            return mark
    mark = f"{letter}{len(marks)}"
    marks[mark] = label
    return mark
