"""Which way each kind of node takes through Spark. A test counts that every kind is in exactly one table.

Start at `path_of`.
"""

from __future__ import annotations

from moldau.pipeline.cores.task import STATELESS
from moldau.pipeline.ir import foreign_key as fk
from moldau.pipeline.ir import nodes as ir

__all__ = ["HOSTED", "NATIVE", "REWRITTEN", "path_of"]

NATIVE: dict[type[ir.Node], str] = {
    ir.StreamSource: "Kafka connector",
    ir.Filter: "where",
    ir.Map: "select",
    ir.MapValues: "select",
    ir.SelectKey: "select",
    ir.Merge: "the ways of all inputs",
    ir.Split: "where",
    ir.BranchOutput: "where",
    ir.Aggregate: "groupBy().agg(), one change per key and batch",
    ir.Repartition: "groupBy",
    ir.ToStream: "nothing to do",
    ir.Sink: "select",
}
"""What Spark can do by itself, if all of a topology can be done so; else these are hosted as well."""

HOSTED: dict[type[ir.Node], str] = {
    ir.TableSource: "table",
    ir.GlobalTableSource: "table, whole in every task",
    ir.GlobalStoreSource: "the user's processor, and its store whole in every task",
    ir.FlatMap: "Python function",
    ir.FlatMapValues: "Python function",
    ir.Peek: "Python function",
    ir.ForEach: "Python function",
    ir.ToTable: "table",
    ir.TableFilter: "table",
    ir.TableMapValues: "table",
    ir.TableTransformValues: "the user's transformer",
    ir.GroupTable: "changes of a table",
    ir.AggregateTable: "aggregation with undo",
    ir.Cogroup: "aggregation of several streams",
    ir.StreamStreamJoin: "windowed join",
    ir.StreamTableJoin: "look-up in a table",
    ir.StreamGlobalTableJoin: "look-up in a global table",
    ir.TableTableJoin: "join of tables",
    ir.Suppress: "buffer",
    ir.Process: "the user's processor",
    fk.ForeignKeySubscribe: "first step of a foreign-key join",
    fk.ForeignKeyRows: "left rows of a foreign-key join",
    fk.ForeignKeyLookup: "second step of a foreign-key join",
    fk.ForeignKeyResolve: "third step of a foreign-key join",
}
"""What only the tasks of `pipeline.cores` do, inside Spark's Python workers."""

REWRITTEN: dict[type[ir.Node], str] = {
    ir.ForeignKeyJoin: "three steps with repartitionings between them: ir.rewrites.foreign_key",
}
"""What becomes other nodes before anything runs."""


def path_of(node: ir.Node, *, is_native: bool) -> str:
    """The way of one node, in words."""
    if is_native:
        return f"native: {NATIVE[type(node)]}"
    return "Python, no state" if isinstance(node, STATELESS) else "Python, in a task with state"
