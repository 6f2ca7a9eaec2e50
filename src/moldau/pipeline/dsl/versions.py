"""Checks for versioned tables, which keep the history of their rows: some operators need it, others refuse it."""

from __future__ import annotations

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import Materialization, Node, inputs_of
from moldau.pipeline.ir.origin import callers_origin

__all__ = ["check_history", "is_versioned"]


def is_versioned(node: Node) -> bool:
    """Whether this table, or every table it is computed from, keeps the history of its rows."""
    return all(history is not None for _, history in _histories(node))


def check_history(node: Node, grace_ms: int) -> None:
    """Raise `TopologyError` for a join with grace if the table keeps no history, or less than the grace period."""
    for name, history_ms in _histories(node):
        if history_ms is None:
            raise TopologyError(
                f"a join with a grace period looks rows up as of the past, but the table {name} keeps only their last "
                "values: materialize it with Stores.persistent_versioned_key_value_store",
                callers_origin(),
            )
        if history_ms < grace_ms:
            raise TopologyError(
                f"a grace period of {grace_ms} ms needs as much history, but the table {name} keeps {history_ms} ms",
                callers_origin(),
            )


def _histories(node: Node) -> list[tuple[str, int | None]]:
    table = getattr(node, "table", None)
    if isinstance(table, Materialization):
        return [(node.name, table.history_ms)]
    if getattr(node, "forgets_history", False):
        return [(node.name, None)]
    inputs = inputs_of(node)
    return [found for source in inputs for found in _histories(source)] if inputs else [(node.name, None)]
