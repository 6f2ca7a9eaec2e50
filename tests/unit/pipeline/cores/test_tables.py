"""Tables row by row: sources, filters, mapped values, and what is known of old rows."""

from __future__ import annotations

from tests.unit.pipeline.cores.piped_tables import Pipe

from moldau.pipeline.dsl.options.materialized import Materialized


def test_a_row_is_replaced_and_deleted() -> None:
    pipe = Pipe(lambda stream: stream.to_table(Materialized.as_("rows")))

    assert pipe("a", 1, 1) == [("a", 1, 1)]
    assert pipe("a", 2, 2) == [("a", 2, 2)]
    assert pipe("a", None, 3) == [("a", None, 3)]
    assert pipe(None, 1, 4) == []


def test_an_older_record_still_replaces_the_row() -> None:
    pipe = Pipe(lambda stream: stream.to_table(Materialized.as_("rows")))
    pipe("a", "new", 10)

    assert pipe("a", "old", 5) == [("a", "old", 5)]


def test_a_filter_that_knows_old_rows_is_quiet_about_those_that_never_passed() -> None:
    pipe = Pipe(lambda stream: stream.to_table(Materialized.as_("rows")).filter(lambda key, value: value > 5))

    assert pipe("a", 1, 1) == []
    assert pipe("a", 9, 2) == [("a", 9, 2)]
    assert pipe("a", 2, 3) == [("a", None, 3)]
    assert pipe("a", None, 4) == []


def test_a_filter_of_an_unstored_table_sends_tombstones_to_be_safe() -> None:
    pipe = Pipe(lambda stream: stream.to_table().filter(lambda key, value: value > 5))

    assert pipe("a", 1, 1) == [("a", None, 1)]


def test_a_stored_filter_of_an_unstored_table_sends_tombstones_too() -> None:
    pipe = Pipe(lambda stream: stream.to_table().filter(lambda key, value: value > 5, Materialized.as_("big")))

    assert pipe("a", 1, 1) == [("a", None, 1)]
    assert pipe("a", 9, 2) == [("a", 9, 2)]


def test_filter_not_keeps_the_others() -> None:
    pipe = Pipe(lambda stream: stream.to_table().filter_not(lambda key, value: value > 5))

    assert pipe("a", 1, 1) == [("a", 1, 1)]


def test_mapped_values_never_see_a_deleted_row() -> None:
    pipe = Pipe(lambda stream: stream.to_table(Materialized.as_("rows")).map_values(lambda value: value * 2))

    assert pipe("a", 4, 1) == [("a", 8, 1)]
    assert pipe("a", None, 2) == [("a", None, 2)]


def test_an_unstored_table_is_read_through_the_one_before_it() -> None:
    def build(stream):  # type: ignore[no-untyped-def]
        rows = stream.filter(lambda key, value: value < 100).to_table(Materialized.as_("rows"))
        even = rows.map_values(lambda value: value + 1).filter(lambda key, value: value % 2 == 0)
        return stream.filter(lambda key, value: value >= 100).join(even, lambda left, right: [left, right])

    pipe = Pipe(build)
    pipe("a", 1, 1)
    pipe("b", 2, 1)

    assert pipe("a", 100, 2) == [("a", [100, 2], 2)]
    assert pipe("b", 100, 3) == []
