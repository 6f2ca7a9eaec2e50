"""A query while it is being planned: the node that gives its rows so far, and what is in them.

Start at `Relation`; `Graph` collects the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from moldau.formats.columns import Column
from moldau.formats.format import RowFormat
from moldau.formats.internal_rows import InternalRowSerde
from moldau.pipeline.ir import nodes as ir
from moldau.pipeline.ir.naming import Names
from moldau.pipeline.ir.row_functions import KeyOfRow, NamedExpression
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ksql.catalogue.sources import KeyWindow, WindowKind
from moldau.pipeline.ksql.planning.internal_keys import internal_key_serde
from moldau.serdes.serde import Serde
from moldau.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde

__all__ = ["Graph", "Relation", "windowed_serde"]

NodeT = TypeVar("NodeT", bound=ir.Node)


def windowed_serde(inner: Serde, window: KeyWindow | None) -> Serde:
    """The serde of keys with that window."""
    if window is None:
        return inner
    if window.kind is WindowKind.SESSION or window.size_ms is None:
        return SessionWindowedSerde(inner)
    return TimeWindowedSerde(inner, window.size_ms)


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows of a query at some step."""

    node: ir.Node
    is_table: bool
    columns: tuple[Column, ...]
    """The columns of a row, by position; names are unique."""
    key: tuple[Column, ...]
    """The columns of the records' key; those of the row with the same names have the same values."""
    key_format: RowFormat
    value_format: RowFormat
    """The format that the result has unless the statement gives another."""
    window: KeyWindow | None = None

    @property
    def key_serde(self) -> Serde:
        """The serde of keys in stores and internal topics."""
        return windowed_serde(internal_key_serde(self.key_format, self.key), self.window)

    @property
    def value_serde(self) -> Serde:
        """The serde of rows in stores and internal topics."""
        return InternalRowSerde(self.columns)

    def key_of_row(self, columns: Sequence[NamedExpression], *, drops_nulls: bool = False) -> KeyOfRow:
        """A new key of this relation's rows."""
        positions = {column.name: position for position, column in enumerate(self.columns)}
        places = tuple(positions.get(column.name, -1) for column in self.key)
        return KeyOfRow(tuple(columns), len(self.columns), places, drops_nulls)

    def with_node(self, node: ir.Node) -> Relation:
        """The same rows, given by another node."""
        return replace(self, node=node)


class Graph:
    """The nodes of one query, with names as Kafka Streams numbers them."""

    def __init__(self) -> None:
        self.names = Names()
        self.nodes: list[ir.Node] = []

    def name(self, prefix: str) -> str:
        """The next name of that prefix."""
        return self.names.processor(prefix)

    def add(self, node: NodeT) -> NodeT:
        """Append a node whose inputs are there already."""
        self.nodes.append(node)
        return node

    def take_back(self, node: ir.Node) -> None:
        """Remove the node that was added last, whose work another one takes over."""
        assert self.nodes[-1] is node, "only the last node has no readers"
        self.nodes.pop()

    def store(self, prefix: str, relation: Relation, *, is_queryable: bool = False) -> ir.Materialization:
        """A store of this relation's rows by key."""
        return ir.Materialization(
            store=self.names.store(prefix),
            key_serde=relation.key_serde,
            value_serde=relation.value_serde,
            is_queryable=is_queryable,
        )

    def topology(self) -> Topology:
        """All nodes as a pipeline."""
        return Topology(self.nodes)
