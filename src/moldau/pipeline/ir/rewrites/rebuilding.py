"""Walk a pipeline and put other nodes in the place of some. Start at `rebuilt`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from moldau.pipeline.ir.nodes import Cogroup, Join, Merge, Node, OneInput, inputs_of

__all__ = ["rebuilt", "with_inputs"]


def rebuilt(nodes: Iterable[Node], rewrite: Callable[[Node], tuple[Node, ...]]) -> tuple[Node, ...]:
    """Replace every node by what `rewrite` makes of it, the last of which takes its place for those it feeds.

    `nodes` has inputs before what they feed; `rewrite` sees a node whose inputs are already the new ones.
    """
    replacement: dict[str, Node] = {}
    result: list[Node] = []
    for node in nodes:
        new = rewrite(with_inputs(node, tuple(replacement[source.name] for source in inputs_of(node))))
        result.extend(new)
        replacement[node.name] = new[-1]
    return tuple(result)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node fed by others, itself where they are the ones it has."""
    if all(one is other for one, other in zip(inputs_of(node), inputs, strict=True)):
        return node
    return replaced(node, **_by_field(node, inputs))


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


def replaced(node: Node, **changes: Any) -> Node:
    """`dataclasses.replace` for nodes."""
    new: Node = replace(node, **changes)
    return new
