"""Aggregation without windows: count, reduce, aggregate, cogroup."""

from __future__ import annotations

import pytest
from tests.unit.pipeline.cores.piped_tables import Pipe


def test_a_count_tells_every_change() -> None:
    pipe = Pipe(lambda stream: stream.group_by_key().count())

    assert pipe("a", "x", 1) == [("a", 1, 1)]
    assert pipe("a", "x", 2) == [("a", 2, 2)]
    assert pipe("b", "x", 3) == [("b", 1, 3)]


def test_a_row_has_the_largest_time_of_all_that_was_folded_into_it() -> None:
    pipe = Pipe(lambda stream: stream.group_by_key().count())
    pipe("a", "x", 10)

    assert pipe("a", "late", 5) == [("a", 2, 10)]


@pytest.mark.parametrize(("key", "value"), [(None, "x"), ("a", None), (None, None)])
def test_a_record_without_key_or_value_is_dropped_and_counted(key: str | None, value: str | None) -> None:
    pipe = Pipe(lambda stream: stream.group_by_key().count())

    assert pipe(key, value, 1) == []
    assert sum(pipe.dropped().values()) == 1


def test_a_reduction_begins_with_the_first_value() -> None:
    pipe = Pipe(lambda stream: stream.group_by_key().reduce(lambda before, value: before + value))

    assert [pipe("a", text, 1) for text in "xyz"] == [[("a", "x", 1)], [("a", "xy", 1)], [("a", "xyz", 1)]]


def test_an_aggregate_that_becomes_null_is_deleted_and_begins_anew() -> None:
    def add(key: str, value: str, total: str) -> str | None:
        return None if value == "end" else total + value

    pipe = Pipe(lambda stream: stream.group_by_key().aggregate(str, add))

    assert pipe("a", "x", 1) == [("a", "x", 1)]
    assert pipe("a", "end", 2) == [("a", None, 2)]
    assert pipe("a", "y", 3) == [("a", "y", 3)]


def test_a_function_that_changes_its_aggregate_in_place_harms_nobody() -> None:
    def add(key: str, value: str, values: list[str]) -> list[str]:
        values.append(value)
        return values

    pipe = Pipe(lambda stream: stream.group_by_key().aggregate(list, add).filter(lambda key, value: len(value) != 2))

    assert pipe("a", "x", 1) == [("a", ["x"], 1)]
    assert pipe("a", "y", 2) == [("a", None, 2)]
    assert pipe("a", "z", 3) == [("a", ["x", "y", "z"], 3)]


def test_the_row_before_the_first_is_what_aggregates_begin_with() -> None:
    pipe = Pipe(lambda stream: stream.group_by_key().count().filter(lambda key, count: count < 1))

    assert pipe("a", "x", 1) == [("a", None, 1)]
    assert pipe("a", "x", 2) == []


def test_cogrouped_streams_share_one_aggregate() -> None:
    def build(stream):  # type: ignore[no-untyped-def]
        upper = stream.filter(lambda key, value: value.isupper()).group_by_key()
        lower = stream.filter(lambda key, value: value.islower()).group_by_key()
        adding = upper.cogroup(lambda key, value, total: total + value)
        return adding.cogroup(lower, lambda key, value, total: value + total).aggregate(str)

    pipe = Pipe(build)

    assert pipe("a", "A", 1) == [("a", "A", 1)]
    assert pipe("a", "b", 2) == [("a", "bA", 2)]
    assert pipe("a", "C", 1) == [("a", "bAC", 2)]


def test_a_grouping_by_another_key_counts_across_partitions() -> None:
    pipe = Pipe(lambda stream: stream.group_by(lambda key, value: value).count(), partitions=4)

    told = [pipe(key, value, 1) for key, value in [("a", "x"), ("b", "x"), ("c", "y"), ("d", "x")]]

    assert told == [[("x", 1, 1)], [("x", 2, 1)], [("y", 1, 1)], [("x", 3, 1)]]
