"""Aggregation of tables: a change undoes the old row, then adds the new one."""

from __future__ import annotations

from tests.unit.pipeline.cores.piped_tables import Build, Pipe

from moldau.pipeline.dsl.options.materialized import Materialized


def summed(*, is_stored: bool = True) -> Build:
    """Rows are [group, number]; numbers are summed by group."""

    def build(stream):  # type: ignore[no-untyped-def]
        rows = stream.to_table(Materialized.as_("rows") if is_stored else None)
        grouped = rows.group_by(lambda key, value: (value[0], value[1]))
        return grouped.reduce(lambda total, value: total + value, lambda total, value: total - value)

    return build


def test_a_row_that_stays_in_its_group_changes_it_in_one_step() -> None:
    pipe = Pipe(summed())
    pipe("a", ["g", 5], 1)
    pipe("b", ["g", 1], 2)

    assert pipe("a", ["g", 7], 3) == [("g", 8, 3)]


def test_a_row_that_moves_leaves_its_old_group_first() -> None:
    pipe = Pipe(summed())
    pipe("a", ["g", 5], 1)

    assert pipe("a", ["h", 5], 2) == [("g", 0, 2), ("h", 5, 2)]


def test_a_deleted_row_is_only_undone() -> None:
    pipe = Pipe(summed())
    pipe("a", ["g", 5], 1)

    assert pipe("a", None, 2) == [("g", 0, 2)]
    assert pipe("a", None, 3) == []


def test_the_table_that_is_grouped_need_not_be_named() -> None:
    pipe = Pipe(summed(is_stored=False))
    pipe("a", ["g", 5], 1)

    assert pipe("a", ["g", 6], 2) == [("g", 6, 2)]


def test_a_group_of_none_is_left_out() -> None:
    pipe = Pipe(summed())

    assert pipe("a", [None, 5], 1) == []
    assert pipe("a", ["g", 5], 2) == [("g", 5, 2)]
    assert pipe("a", [None, 5], 3) == [("g", 0, 3)]


def test_a_group_keeps_the_largest_time() -> None:
    pipe = Pipe(summed())
    pipe("a", ["g", 5], 10)

    assert pipe("b", ["g", 1], 4) == [("g", 6, 10)]


def test_counts_go_down_to_zero_and_stay() -> None:
    pipe = Pipe(lambda stream: stream.to_table().group_by(lambda key, value: (value, value)).count())

    assert pipe("a", "x", 1) == [("x", 1, 1)]
    assert pipe("a", "y", 2) == [("x", 0, 2), ("y", 1, 2)]


def test_groups_live_in_the_partition_of_their_key() -> None:
    pipe = Pipe(summed(), partitions=3)
    told = [pipe(key, value, 1) for key, value in [("a", ["g", 1]), ("b", ["g", 2]), ("c", ["h", 4]), ("a", ["h", 1])]]

    assert told == [[("g", 1, 1)], [("g", 3, 1)], [("h", 4, 1)], [("g", 2, 1), ("h", 5, 1)]]
