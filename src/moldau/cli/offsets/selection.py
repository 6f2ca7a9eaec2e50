"""Selects the partitions of kafka-get-offsets.

    --topic <regex> --partitions 0,2          or          --topic-partitions t1,t2:1,t3:0-3,t4:2-,:0

No I/O. Start at `partition_filter`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from moldau.cli.tool import ToolError
from moldau.core.ids import TopicPartition

__all__ = ["SPECIAL_TIMES", "parse_time", "partition_filter"]

Filter = Callable[[TopicPartition], bool]

SPECIAL_TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
}
_RULE = re.compile(r"([^:,]*)(?::(?:(\d*)|(\d*)-(\d*)))?")


def parse_time(text: str) -> int:
    """Parse `--time`, a word or a number: milliseconds since 1970, or one of Kafka's special negative values."""
    word = text.strip().lower()
    if word in SPECIAL_TIMES:
        return SPECIAL_TIMES[word]
    try:
        return int(word)
    except ValueError:
        words = ", ".join(f"{number} or {name}" for name, number in SPECIAL_TIMES.items())
        raise ToolError(f"Malformed time argument {text}, please use {words}, or a timestamp in ms") from None


def partition_filter(topic: str | None, partitions: str | None, rules: str | None) -> Filter:
    """The filter that the options define; raises `ToolError` if they cannot be parsed."""
    if rules is not None:
        if topic is not None or partitions is not None:
            raise ToolError("--topic-partitions cannot be used with --topic or --partitions")
        filters = [_rule(text.strip()) for text in rules.split(",")]
        return lambda partition: any(accept(partition) for accept in filters)
    pattern = _pattern(topic) if topic is not None else None
    numbers = _numbers(partitions) if partitions else None
    return lambda partition: (
        (pattern is None or pattern.fullmatch(partition.topic) is not None)
        and (numbers is None or partition.partition in numbers)
    )


def _rule(text: str) -> Filter:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ToolError(f"Invalid rule: {text}")
    topic, single, low, high = found.groups()
    pattern = _pattern(topic) if topic else None
    first = int(low or single or 0)
    # The upper end is exclusive: t:0-3 are partitions 0, 1 and 2.
    last = int(single) + 1 if single else int(high) if high else None
    return lambda partition: (
        (pattern is None or pattern.fullmatch(partition.topic) is not None)
        and partition.partition >= first
        and (last is None or partition.partition < last)
    )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text.replace(",", "|"))
    except re.error as error:
        raise ToolError(f"{text} is an invalid regex: {error}") from None


def _numbers(text: str) -> set[int]:
    numbers = set()
    for word in text.split(","):
        if not word.strip().isdigit():
            raise ToolError(
                f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
            )
        numbers.add(int(word))
    return numbers
