"""Traverse a pipeline and replace nodes. Start at `rebuild`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from moldau.pipeline.ir.nodes import Cogroup, Join, Merge, Node, OneInput, inputs_of

__all__ = ["rebuild", "with_inputs"]


def rebuild(nodes: Iterable[Node], rewrite: Callable[[Node], tuple[Node, ...]]) -> tuple[Node, ...]:
    """Replace every node by what `rewrite` returns for it; nodes downstream get the last of those as their input.

    `nodes` are in topological order; `rewrite` gets each node with its inputs already replaced.
    """
    replacement: dict[str, Node] = {}
    result: list[Node] = []
    for node in nodes:
        new = rewrite(with_inputs(node, tuple(replacement[source.name] for source in inputs_of(node))))
        result.extend(new)
        replacement[node.name] = new[-1]
    return tuple(result)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The node with other inputs; the same object where they are unchanged."""
    if all(one is other for one, other in zip(inputs_of(node), inputs, strict=True)):
        return node
    return replace_fields(node, **_by_field(node, inputs))


def _by_field(node: Node, inputs: tuple[Node, ...]) -> dict[str, Any]:
    match node:
        case OneInput():
            return {"input": inputs[0]}
        case Join():
            return {"left": inputs[0], "right": inputs[1]}
        case Merge() | Cogroup():
            return {"inputs": inputs}
        case _:
            return {}


def replace_fields(node: Node, **changes: Any) -> Node:
    """`dataclasses.replace` for nodes."""
    new: Node = replace(node, **changes)
    return new
