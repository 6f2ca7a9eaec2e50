"""Records without a key end before a repartitioning, unless a lenient join wants them."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.pipeline.ir.small_nodes import count, join_streams, join_table, repartition, stream, table

from moldau.pipeline.ir.nodes import JoinKind, Node, Repartition
from moldau.pipeline.ir.rewrites.null_keys import drop_null_keys


def dropping(*nodes: Node) -> dict[str, bool]:
    return {node.name: node.drops_null_keys for node in drop_null_keys(nodes) if isinstance(node, Repartition)}


def test_an_aggregation_takes_none() -> None:
    source = stream("in")
    moved = repartition("moved", source)
    assert dropping(source, moved, count("counted", moved)) == {"moved": True}


def test_a_left_join_of_streams_takes_them_on_both_sides() -> None:
    one, two = stream("one"), stream("two")
    left, right = repartition("left", one), repartition("right", two)
    assert dropping(one, two, left, right, join_streams("j", left, right, JoinKind.LEFT)) == {
        "left": False,
        "right": False,
    }
    assert dropping(one, two, left, right, join_streams("j", left, right)) == {"left": True, "right": True}


def test_a_left_join_with_a_table_takes_those_of_the_stream_only() -> None:
    one, two = stream("one"), stream("two")
    left, right = repartition("left", one), repartition("right", two)
    rows = count("rows", right)
    assert dropping(one, two, left, right, rows, join_table("j", left, rows, JoinKind.LEFT)) == {
        "left": False,
        "right": True,
    }


def test_changes_of_a_table_are_left_alone() -> None:
    rows = table("rows")
    moved = replace(repartition("moved", rows), carries_changes=True)
    assert dropping(rows, moved) == {"moved": False}
