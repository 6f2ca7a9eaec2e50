"""Where a topology is cut, and in which order its sub-topologies can run."""

from __future__ import annotations

from tests.unit.pipeline.ir.small_nodes import (
    count,
    global_table,
    join_global,
    join_table,
    map_values,
    process,
    repartition,
    select_key,
    sink,
    stream,
    table,
)

from moldau.pipeline.ir.nodes import Node
from moldau.pipeline.ir.subtopologies import SubTopology, split, waves


def names(nodes: tuple[Node, ...]) -> list[str]:
    return [node.name for node in nodes]


def test_a_repartitioning_is_the_end_of_one_piece_and_the_beginning_of_the_next() -> None:
    source = stream("in")
    keyed = select_key("keyed", source)
    moved = repartition("moved", keyed)
    counted = count("counted", moved)
    out = sink("out", counted)
    first, second = split((source, keyed, moved, counted, out))
    assert (names(first.nodes), names(first.inputs), names(first.outputs)) == (
        ["in", "keyed", "moved"],
        ["in"],
        ["moved"],
    )
    assert (names(second.nodes), names(second.inputs)) == (["moved", "counted", "out"], ["moved"])


def test_what_is_not_connected_runs_apart() -> None:
    one, two = stream("one"), stream("two")
    sub_topologies = split((one, two, sink("a", one), sink("b", two)))
    assert [names(sub_topology.nodes) for sub_topology in sub_topologies] == [["one", "a"], ["two", "b"]]


def test_processors_that_share_a_store_run_together() -> None:
    one, two = stream("one"), stream("two")
    (sub_topology,) = split((one, two, process("p", one, "seen"), process("q", two, "seen")))
    assert names(sub_topology.inputs) == ["one", "two"]


def test_a_processor_runs_with_the_table_whose_store_it_reads() -> None:
    rows, records = table("rows"), stream("records")
    (sub_topology,) = split((rows, records, process("p", records, connected=("rows-store",))))
    assert names(sub_topology.nodes) == ["rows", "records", "p"]


def test_a_global_table_connects_nothing_and_is_known_where_it_is_used() -> None:
    everywhere, one, two = global_table("everywhere"), stream("one"), stream("two")
    joined, other = join_global("joined", one, everywhere), join_global("other", two, everywhere)
    third = stream("three")
    sub_topologies = split((everywhere, one, two, joined, other, third))
    assert [names(sub_topology.global_tables) for sub_topology in sub_topologies] == [
        ["everywhere"],
        ["everywhere"],
        [],
    ]
    assert all("everywhere" not in names(sub_topology.nodes) for sub_topology in sub_topologies)


def chain() -> tuple[SubTopology, ...]:
    source = stream("in")
    first = repartition("first", source)
    second = repartition("second", map_values("between", first))
    return split((source, first, second.input, second, count("counted", second)))


def test_pieces_run_after_those_that_feed_them() -> None:
    sub_topologies = chain()
    backwards = tuple(reversed(sub_topologies))
    assert waves(backwards) == tuple((sub_topology,) for sub_topology in sub_topologies)


def test_a_piece_that_feeds_itself_is_a_circle_of_one() -> None:
    source = stream("in")
    moved = repartition("moved", select_key("keyed", source))
    counted = count("counted", moved)
    (sub_topology,) = split((source, moved.input, moved, counted, join_table("joined", source, counted)))
    assert moved in sub_topology.inputs
    assert moved in sub_topology.outputs
    assert waves((sub_topology,)) == ((sub_topology,),)


def test_pieces_in_a_circle_come_together() -> None:
    left, right = stream("left"), stream("right")
    to_right, to_left = repartition("to-right", left), repartition("to-left", right)
    here = join_table("here", left, count("from-right", to_left))
    there = join_table("there", right, count("from-left", to_right))
    after = repartition("after", here)
    nodes = (left, right, to_right, to_left, here.right, there.right, here, there, after, sink("out", after))
    sub_topologies = split(nodes)
    assert [[sub_topology.index for sub_topology in wave] for wave in waves(sub_topologies)] == [[0, 1], [2]]
