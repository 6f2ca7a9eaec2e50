"""Graphs of pipelines: topics, operators, connectors and stores as nodes, and what flows between them as edges.

A graph is a JSON document, `{"nodes": [...], "edges": [...]}`: services tell theirs over HTTP, and a program draws
all of them as one. A topic has the same id in every graph: where one pipeline writes and another reads, they connect.
Start at `merged` and `mermaid`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Graph", "edge", "merged", "mermaid", "topic_id", "topic_node"]

Graph = Mapping[str, Any]

SHAPES = {"topic": ('(["', '"])', "t"), "store": ('[("', '")]', "s"), "connector": ('{{"', '"}}', "c")}
"""How Mermaid writes a kind of node, and the letter of its identifiers; operators are boxes."""
OPERATOR = ('["', '"]', "n")


def topic_id(name: str) -> str:
    return f"topic:{name}"


def topic_node(name: str) -> dict[str, Any]:
    return {"id": topic_id(name), "kind": "topic", "name": name}


def edge(begin: str, end: str, kind: str = "flow") -> dict[str, str]:
    """`flow` is the way of records, `use` connects an operator and its store."""
    return {"from": begin, "to": end, "kind": kind}


def merged(graphs: Iterable[Graph]) -> dict[str, Any]:
    """One graph of several; what several of them have is in it once."""
    nodes: dict[str, Any] = {}
    edges: dict[tuple[str, str, str], Any] = {}
    for graph in graphs:
        for node in graph["nodes"]:
            nodes.setdefault(node["id"], node)
        for one in graph["edges"]:
            edges.setdefault((one["from"], one["to"], one["kind"]), one)
    return {"nodes": list(nodes.values()), "edges": list(edges.values())}


def mermaid(graph: Graph) -> str:
    """A Mermaid flowchart: topics are rounded, stores are cylinders, connectors hexagons, operators boxes.

    The operators of a pipeline, and those of each of its groups, are in a box of their own.
    """
    marks = _marks(graph["nodes"])
    shown = {node["id"]: _shape(node, marks[node["id"]]) for node in graph["nodes"]}
    lines = ["flowchart TD"]
    lines += [f"  {shown[node['id']]}" for node in graph["nodes"] if node["kind"] in ("topic", "connector")]
    has_several = len({node["pipeline"] for node in graph["nodes"] if node.get("pipeline")}) > 1
    for number, (title, members) in enumerate(_boxes(graph["nodes"], has_several=has_several).items()):
        lines.append(f'  subgraph box{number}["{_without_quotes(title)}"]')
        lines += [f"    {shown[member]}" for member in members]
        lines.append("  end")
    lines += [f"  {shown[node['id']]}" for node in graph["nodes"] if node["kind"] == "store"]
    for one in graph["edges"]:
        arrow = "-->" if one["kind"] == "flow" else "-.-"
        lines.append(f"  {marks[one['from']]} {arrow} {marks[one['to']]}")
    return "\n".join(lines) + "\n"


def _marks(nodes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Short identifiers: what Mermaid takes as one is narrower than the names of topics."""
    marks: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for node in nodes:
        letter = SHAPES.get(node["kind"], OPERATOR)[2]
        marks[node["id"]] = f"{letter}{numbers.get(letter, 0)}"
        numbers[letter] = numbers.get(letter, 0) + 1
    return marks


def _shape(node: Mapping[str, Any], mark: str) -> str:
    opening, closing, _ = SHAPES.get(node["kind"], OPERATOR)
    return f"{mark}{opening}{_without_quotes(node['name'])}{closing}"


def _boxes(nodes: Iterable[Mapping[str, Any]], *, has_several: bool) -> dict[str, list[str]]:
    boxes: dict[str, list[str]] = {}
    for node in nodes:
        if node["kind"] != "operator":
            continue
        words = [node.get("pipeline", "") if has_several else "", node.get("group", "")]
        boxes.setdefault(" · ".join(word for word in words if word), []).append(node["id"])
    return boxes


def _without_quotes(label: str) -> str:
    """The label with quotes, which a topic pattern may contain, escaped as Mermaid entities."""
    return label.replace('"', "#quot;")
