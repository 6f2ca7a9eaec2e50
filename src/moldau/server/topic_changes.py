"""Logs topics that are created, extended or deleted. Start at `log_topic_changes`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moldau.controller.replay import ImageDelta
from moldau.core.ids import render_uuid

__all__ = ["log_topic_changes"]

_logger = logging.getLogger("moldau.server.topics")

FEW = 20
"""A change of at most this many topics is logged with one line per topic."""


async def log_topic_changes(delta: ImageDelta) -> None:
    """A subscriber of the controller, called with every committed change."""
    for line in topic_changes(delta):
        _logger.info(line)


def topic_changes(delta: ImageDelta) -> list[str]:
    """The log lines for the topics in a change: one per topic, or one for all if there are many."""
    deleted = {topic.name for topic in delta.deleted_topics}
    changed = sorted({one.topic for one in delta.partitions})
    before = delta.before.topics
    created = [name for name in changed if name in deleted or name not in before]
    lines = _lines_or_summary(
        [
            (topic.name, f"deleted topic {topic.name} (id {render_uuid(topic.topic_id)})")
            for topic in delta.deleted_topics
        ],
        "deleted",
    )
    lines += _lines_or_summary([(name, _creation(delta, name)) for name in created], "created")
    for name in changed:
        count = len(delta.image.topics[name].partitions)
        if name not in created and count > len(before[name].partitions):
            lines.append(f"topic {name} has {count} partitions, {len(before[name].partitions)} before")
    return lines


def _creation(delta: ImageDelta, name: str) -> str:
    topic = delta.image.topics[name]
    count = len(topic.partitions)
    configs = delta.image.topic_config(name)
    overrides = "".join(f", {key}={value}" for key, value in sorted(configs.items()))
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    return f"created topic {name} with {partitions} (id {render_uuid(topic.topic_id)}){overrides}"


def _lines_or_summary(topics: Sequence[tuple[str, str]], verb: str) -> list[str]:
    if len(topics) <= FEW:
        return [line for _, line in topics]
    first = ", ".join(name for name, _ in topics[:3])
    return [f"{verb} {len(topics)} topics: {first} and {len(topics) - 3} more"]
