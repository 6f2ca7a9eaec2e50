"""Selects the topics of a command line: `--topic` is a pattern, a comma-separated list, or an id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from moldau.cli.options import UsageError
from moldau.cli.tool import ToolError

__all__ = ["INTERNAL_TOPICS", "matching", "must_exist", "topic_pattern"]

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def topic_pattern(text: str) -> re.Pattern[str]:
    """The pattern of a Kafka topic filter: blanks and quotes are removed, a comma separates alternatives."""
    cleaned = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(cleaned)
    except re.error as error:
        raise UsageError(f"{text} is an invalid regex: {error}") from None


def matching(names: Iterable[str], pattern: str | None, *, exclude_internal: bool = False) -> list[str]:
    """The names that a pattern fully matches; without a pattern, all names."""
    compiled = topic_pattern(pattern) if pattern is not None else None
    return [
        name
        for name in names
        if (compiled is None or compiled.fullmatch(name)) and not (exclude_internal and name in INTERNAL_TOPICS)
    ]


def must_exist(found: Sequence[object], wanted: str | None, *, is_optional: bool, kind: str = "Topic") -> None:
    """Raise an error if a topic was named and nothing matches, unless `--if-exists` is given."""
    if not found and wanted is not None and not is_optional:
        raise ToolError(f"{kind} '{wanted}' does not exist as expected")
