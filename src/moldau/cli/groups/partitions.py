"""Parses `--topic`: a whole topic, or some of its partitions as `topic:0,1`. Start at `parse_partitions`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from moldau.cli.options import UsageError
from moldau.core.ids import TopicPartition

__all__ = ["parse_partitions", "parse_topic"]


def parse_topic(text: str) -> tuple[str, list[int] | None]:
    """A topic and its partitions; `None` for all of them."""
    topic, colon, numbers = text.partition(":")
    if not colon:
        return topic, None
    if not topic or not numbers or ":" in numbers:
        raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    partitions = []
    for word in numbers.split(","):
        if not word.strip().isdigit():
            raise UsageError(f"Invalid partition '{word}' specified in topic arg '{text}'")
        partitions.append(int(word))
    return topic, partitions


def parse_partitions(texts: Iterable[str], counts: Mapping[str, int]) -> tuple[list[TopicPartition], list[str]]:
    """The selected partitions, and the whole topics that are missing from `counts`."""
    found: dict[TopicPartition, None] = {}
    missing = []
    for text in texts:
        topic, numbers = parse_topic(text)
        if numbers is None and topic not in counts:
            missing.append(topic)
        for number in numbers if numbers is not None else range(counts.get(topic, 0)):
            found[TopicPartition(topic, number)] = None
    return list(found), missing
