"""Where a topology is cut, and in which order its pieces can run."""

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
    pieces = split((one, two, sink("a", one), sink("b", two)))
    assert [names(piece.nodes) for piece in pieces] == [["one", "a"], ["two", "b"]]


def test_processors_that_share_a_store_run_together() -> None:
    one, two = stream("one"), stream("two")
    (piece,) = split((one, two, process("p", one, "seen"), process("q", two, "seen")))
    assert names(piece.inputs) == ["one", "two"]


def test_a_processor_runs_with_the_table_whose_store_it_reads() -> None:
    rows, records = table("rows"), stream("records")
    (piece,) = split((rows, records, process("p", records, connected=("rows-store",))))
    assert names(piece.nodes) == ["rows", "records", "p"]


def test_a_global_table_connects_nothing_and_is_known_where_it_is_used() -> None:
    everywhere, one, two = global_table("everywhere"), stream("one"), stream("two")
    joined, other = join_global("joined", one, everywhere), join_global("other", two, everywhere)
    third = stream("three")
    pieces = split((everywhere, one, two, joined, other, third))
    assert [names(piece.global_tables) for piece in pieces] == [["everywhere"], ["everywhere"], []]
    assert all("everywhere" not in names(piece.nodes) for piece in pieces)


def chain() -> tuple[SubTopology, ...]:
    source = stream("in")
    first = repartition("first", source)
    second = repartition("second", map_values("between", first))
    return split((source, first, second.input, second, count("counted", second)))


def test_pieces_run_after_those_that_feed_them() -> None:
    pieces = chain()
    backwards = tuple(reversed(pieces))
    assert waves(backwards) == tuple((piece,) for piece in pieces)


def test_a_piece_that_feeds_itself_is_a_circle_of_one() -> None:
    source = stream("in")
    moved = repartition("moved", select_key("keyed", source))
    counted = count("counted", moved)
    (piece,) = split((source, moved.input, moved, counted, join_table("joined", source, counted)))
    assert moved in piece.inputs
    assert moved in piece.outputs
    assert waves((piece,)) == ((piece,),)


def test_pieces_in_a_circle_come_together() -> None:
    left, right = stream("left"), stream("right")
    to_right, to_left = repartition("to-right", left), repartition("to-left", right)
    here = join_table("here", left, count("from-right", to_left))
    there = join_table("there", right, count("from-left", to_right))
    after = repartition("after", here)
    nodes = (left, right, to_right, to_left, here.right, there.right, here, there, after, sink("out", after))
    pieces = split(nodes)
    assert [[piece.index for piece in wave] for wave in waves(pieces)] == [[0, 1], [2]]
