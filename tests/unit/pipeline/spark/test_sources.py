"""Which sources a query has for what its parts read."""

from __future__ import annotations

from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.spark.sources import Read, merged_reads


def read(*topics: str, reset: OffsetReset | None = None, is_global: bool = False) -> Read:
    return Read(topics, None, reset, is_global)


def test_parts_that_share_a_topic_share_a_source() -> None:
    assert merged_reads([read("a"), read("b"), read("a", "c")]) == [read("b"), read("a", "c")]


def test_a_read_that_overlaps_two_makes_one_of_them() -> None:
    assert merged_reads([read("a"), read("b"), read("b", "a")]) == [read("b", "a")]


def test_topics_that_are_read_differently_stay_apart() -> None:
    latest = read("a", reset=OffsetReset.LATEST)
    assert merged_reads([read("a"), latest, read("a", is_global=True)], even_apart=True) == [
        read("a"),
        latest,
        read("a", is_global=True),
    ]


def test_other_topics_are_put_together_where_that_is_asked_for() -> None:
    assert merged_reads([read("a"), read("b")], even_apart=True) == [read("a", "b")]


def test_patterns_are_read_once() -> None:
    pattern = Read((), "in-.*", None)
    assert merged_reads([pattern, read("a"), pattern]) == [read("a"), pattern]
