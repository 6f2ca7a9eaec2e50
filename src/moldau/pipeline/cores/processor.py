"""The base of all operators at run time: process a record, and forward results to the children.

A builder creates a processor for one node of one task, and it is linked to its children afterwards. Forwarding is
synchronous: `forward` returns when everything downstream has processed the record. Start at `Processor`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from moldau.pipeline.cores.records import Record, ValueAndTimestamp
from moldau.pipeline.ir.nodes import Node

if TYPE_CHECKING:
    from moldau.pipeline.cores.context import TaskContext

__all__ = ["Builder", "Forward", "Link", "Processor", "TableView", "to_each"]

Forward = Callable[[Record], None]


class Link(NamedTuple):
    """A child node and how to call it; `take_value` is set where it needs only new values instead of changes."""

    node: Node
    take: Forward
    take_value: Forward | None
    processor: Processor


def _nowhere(record: Record) -> None:
    """The forward of a node without children."""


def to_each(targets: Sequence[Forward]) -> Forward:
    """One function that gives a record to every target in order."""
    if not targets:
        return _nowhere
    if len(targets) == 1:
        return targets[0]
    fixed = tuple(targets)

    def forward(record: Record) -> None:
        for target in fixed:
            target(record)

    return forward


class Processor:
    """Processes records one by one; subclasses implement `process`."""

    def __init__(self, node: Node, context: TaskContext) -> None:
        self.node = node
        self.context = context
        self.forward: Forward = _nowhere

    def process(self, record: Record) -> None:
        """Do this operator's work on a record."""
        raise NotImplementedError

    @property
    def take(self) -> Forward:
        """The function that upstream nodes call; read when they are linked, after the nodes downstream of this one."""
        return self.process

    @property
    def take_value(self) -> Forward | None:
        """The same for a record whose value is a table's new value instead of a change; None if not supported."""
        return None

    def link(self, children: Sequence[Link]) -> None:
        """Set the children; called once, before `start`."""
        self.forward = to_each([child.take for child in children])

    def problem_with(self, record: Record) -> str | None:
        """Why this node, and not a user's function, failed on a record; None where the reason is unknown."""
        return None

    def start(self) -> None:
        """Called once when the whole task is linked and its stores are open."""

    def close(self) -> None:
        """Called once when the task ends."""


class TableView(Protocol):
    """A table as other nodes read it, whether or not it is stored."""

    def get(self, key: Any, /) -> ValueAndTimestamp | None: ...


Builder = Callable[[Any, "TaskContext"], "Processor | tuple[Processor, ...]"]
"""Creates the processor of a node, or one for each of its inputs in the order of `ir.nodes.inputs_of`."""
