"""Which partitions kafka-get-offsets means, and when."""

from __future__ import annotations

import pytest

from moldau.cli.offsets.selection import parse_time, partition_filter
from moldau.cli.tool import ToolError
from moldau.core.ids import TopicPartition

ALL = [TopicPartition(topic, number) for topic in ("a", "b") for number in range(4)]


def chosen(topic: str | None = None, partitions: str | None = None, rules: str | None = None) -> list[str]:
    accepts = partition_filter(topic, partitions, rules)
    return [str(partition) for partition in ALL if accepts(partition)]


def test_without_filters_everything_is_meant() -> None:
    assert len(chosen()) == 8


def test_topic_and_partitions() -> None:
    assert chosen("a", "0,2") == ["a-0", "a-2"]
    assert chosen("[ab]", "3") == ["a-3", "b-3"]


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ("a:1", ["a-1"]),
        ("a:1-3", ["a-1", "a-2"]),
        ("a:2-", ["a-2", "a-3"]),
        ("a:-2", ["a-0", "a-1"]),
        ("a", ["a-0", "a-1", "a-2", "a-3"]),
        (":0", ["a-0", "b-0"]),
        ("a:0,b:3", ["a-0", "b-3"]),
    ],
)
def test_rules_have_an_exclusive_upper_end(rules: str, names: list[str]) -> None:
    assert chosen(rules=rules) == names


@pytest.mark.parametrize(("topic", "partitions", "rules"), [("a", None, "a"), (None, "x", None), (None, None, "a:x")])
def test_what_does_not_parse_is_refused(topic: str | None, partitions: str | None, rules: str | None) -> None:
    with pytest.raises(ToolError):
        partition_filter(topic, partitions, rules)


@pytest.mark.parametrize(
    ("text", "time"), [("latest", -1), ("-2", -2), ("max-timestamp", -3), ("earliest-local", -4), ("1700", 1700)]
)
def test_times_are_words_or_numbers(text: str, time: int) -> None:
    assert parse_time(text) == time


def test_a_malformed_time_is_refused() -> None:
    with pytest.raises(ToolError, match="Malformed time argument yesterday"):
        parse_time("yesterday")
