"""One operator at work: what it does with a record, and whom it forwards to.

A processor is made by a builder for one node of one task and linked to its children afterwards. It pushes: `forward`
returns when everything downstream is done with the record. Start at `Processor`.
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
    """A child node and how it takes records; `take_value` where it can do without changes, given new values alone."""

    node: Node
    take: Forward
    take_value: Forward | None = None


def _nowhere(record: Record) -> None:
    """Forward of a node that nothing follows."""


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
    """Takes records one by one; subclasses say what for."""

    def __init__(self, node: Node, context: TaskContext) -> None:
        self.node = node
        self.context = context
        self.forward: Forward = _nowhere

    def process(self, record: Record) -> None:
        """Do this operator's work on a record."""
        raise NotImplementedError

    @property
    def take(self) -> Forward:
        """What whoever feeds this node calls; asked for when the nodes behind this one are linked."""
        return self.process

    @property
    def take_value(self) -> Forward | None:
        """The same for a record whose value is a table's new value instead of a change; None where that will not do."""
        return None

    def link(self, children: Sequence[Link]) -> None:
        """Learn who comes next; called once, before `start`."""
        self.forward = to_each([child.take for child in children])

    def trouble_with(self, record: Record) -> str | None:
        """What is wrong with a record that this node failed on for no fault of a user's function, if it can tell."""
        return None

    def start(self) -> None:
        """Called once when the whole task is linked and its stores are open."""

    def close(self) -> None:
        """Called once when the task ends."""


class TableView(Protocol):
    """A table as its neighbours read it, whether or not it is stored."""

    def get(self, key: Any, /) -> ValueAndTimestamp | None: ...


Builder = Callable[[Any, "TaskContext"], "Processor | tuple[Processor, ...]"]
"""Makes the processor of a node, or one for each of its inputs in the order of `ir.nodes.inputs_of`."""
