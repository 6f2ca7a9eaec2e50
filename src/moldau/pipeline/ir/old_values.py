"""Which tables of a topology are stored, and which send the old value along with each change.

A table is stored only if the user named its store or something reads from it, and sends old values only if something
downstream needs them. Both affect the output: a filter that has the old row emits nothing for rows that never passed,
one that has not emits a tombstone. In Kafka Streams the result depends on the order of definition (a filter requests
old values once, when it is created), so the nodes are replayed in the order of their creation. Start at `table_plan`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.foreign_key import ForeignKeyLookup, ForeignKeyResolve, ForeignKeySubscribe
from moldau.pipeline.ir.nodes import (
    Aggregate,
    AggregateTable,
    Cogroup,
    ForeignKeyJoin,
    GroupTable,
    JoinKind,
    Node,
    StreamTableJoin,
    Suppress,
    TableFilter,
    TableMapValues,
    TableSource,
    TableTableJoin,
    TableTransformValues,
    ToTable,
)

__all__ = ["TableTraits", "table_plan"]


@dataclass(frozen=True, slots=True)
class TableTraits:
    """How one table is computed and stored."""

    is_materialized: bool
    """Whether its rows are in a store of its own."""
    sends_old_values: bool
    """Whether `Change.old` is filled in."""
    is_versioned: bool = False
    """Whether it keeps old versions of its rows, which late records can change."""


def table_plan(nodes: Iterable[Node]) -> dict[str, TableTraits]:
    """The traits of every table by its node's name; `nodes` are in the order of creation."""
    plan = _Plan()
    for node in nodes:
        plan.declare(node)
    return {
        name: TableTraits(name in plan.materialized, name in plan.sending, name in plan.versioned)
        for name in plan.tables
    }


class _Plan:
    def __init__(self) -> None:
        self.tables: list[str] = []
        self.materialized: set[str] = set()
        self.sending: set[str] = set()
        self.versioned: set[str] = set()

    def declare(self, node: Node) -> None:
        """Add a node, and what it requires of the tables upstream."""
        match node:
            case TableFilter():
                self._table(node, is_materialized=node.table is not None and node.table.is_queryable)
                if self._send_old_values(node.input, must_store=False):
                    self.sending.add(node.name)
            case TableMapValues() | TableTransformValues():
                self._table(node, is_materialized=node.table is not None and node.table.is_queryable)
            case TableSource() | ToTable() | ForeignKeyResolve():
                self._table(node, is_materialized=node.table.is_queryable)
            case Aggregate() | AggregateTable() | Cogroup():
                self._table(node, is_materialized=True)
            case TableTableJoin():
                self._declare_join(node)
            case ForeignKeyJoin():
                self._send_old_values(node.right)
                self._send_old_values(node.left)
                self._read(node.right)
                self._table(node, is_materialized=node.table.is_queryable)
            case ForeignKeyLookup():
                self._send_old_values(node.right)
                self._read(node.right)
            case GroupTable() | ForeignKeySubscribe():
                self._send_old_values(node.input)
            case Suppress():
                if node.input.name in self.versioned:
                    raise TopologyError(
                        f"{node.name}: the changes of a versioned table cannot be suppressed", node.origin
                    )
                self._table(node, is_materialized=False)
                if self._send_old_values(node.input):
                    self.sending.add(node.name)
            case StreamTableJoin():
                self._read(node.right)
            case _:
                pass

    def _declare_join(self, node: TableTableJoin) -> None:
        # An outer side needs old values to know whether there was a result before, and emit a tombstone for it.
        if node.kind is not JoinKind.INNER:
            self._send_old_values(node.left)
        if node.kind is JoinKind.OUTER:
            self._send_old_values(node.right)
        self._read(node.left)
        self._read(node.right)
        self._table(node, is_materialized=node.table is not None)

    def _table(self, node: Node, *, is_materialized: bool) -> None:
        self.tables.append(node.name)
        if is_materialized:
            self.materialized.add(node.name)
        if self._is_versioned(node):
            self.versioned.add(node.name)

    def _is_versioned(self, node: Node) -> bool:
        """Whether a table keeps old versions; one without a store of its own inherits it from its input."""
        match node:
            case TableSource() | ToTable() | ForeignKeyJoin() | ForeignKeyResolve():
                return node.table.history_ms is not None
            case TableFilter() | TableMapValues() | TableTransformValues():
                if node.table is None:
                    return node.input.name in self.versioned and not node.forgets_history
                return node.table.history_ms is not None
            case _:
                return False

    def _send_old_values(self, node: Node, *, must_store: bool = True) -> bool:
        """Make a table send old values; returns false where it would have to be stored and `must_store` is false."""
        match node:
            case TableSource() | ToTable() | ForeignKeyJoin() | ForeignKeyResolve():
                if not must_store and node.name not in self.materialized:
                    return False
                self.materialized.add(node.name)
            case TableFilter() | TableMapValues() | TableTransformValues():
                if node.name not in self.materialized and not self._send_old_values(node.input, must_store=must_store):
                    return node.name in self.sending
            case TableTableJoin():
                self._send_old_values(node.left)
                self._send_old_values(node.right)
            case Suppress():
                if not self._send_old_values(node.input, must_store=must_store):
                    return False
            case _:
                pass
        self.sending.add(node.name)
        return True

    def _read(self, node: Node) -> None:
        """Make the rows of a table available for lookups, by storing it or its inputs."""
        match node:
            case TableSource() | ToTable() | ForeignKeyJoin() | ForeignKeyResolve():
                self.materialized.add(node.name)
            case TableFilter() | TableMapValues() | TableTransformValues() | Suppress():
                if node.name not in self.materialized:
                    self._read(node.input)
            case TableTableJoin():
                if node.name not in self.materialized:
                    self._read(node.left)
                    self._read(node.right)
            case _:
                pass
