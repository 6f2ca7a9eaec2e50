"""The topics a group subscribes to: which ones a pattern matches, and whether they have changed.

Patterns are RE2, whose running time is linear in the name, so no client's pattern can block the coordinator.
Start at `Topics` and `matching`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from moldau.coordinator.group.group import RefusedError
from moldau.core.errors import ErrorCode

__all__ = ["SubscribedTopics", "Topics", "check_regex", "matching", "metadata_hash", "subscribed_topics"]


class TopicFacts(NamedTuple):
    topic_id: UUID
    partition_count: int


class Topics(Protocol):
    """The cluster's topics at one moment."""

    @property
    def moment(self) -> object:
        """An object that is replaced whenever topics or their partitions change."""

    def names(self) -> Iterable[str]: ...
    def facts(self, name: str) -> TopicFacts | None: ...
    def name_of(self, topic_id: UUID) -> str | None: ...


class SubscribedTopics(NamedTuple):
    """The subscribed topics that exist."""

    ids: Mapping[str, UUID]
    partition_counts: Mapping[UUID, int]


def subscribed_topics(names: Iterable[str], topics: Topics) -> SubscribedTopics:
    found = {name: facts for name in sorted(names) if (facts := topics.facts(name)) is not None}
    return SubscribedTopics(
        {name: facts.topic_id for name, facts in found.items()},
        {facts.topic_id: facts.partition_count for facts in found.values()},
    )


def metadata_hash(topics: SubscribedTopics) -> int:
    """A hash that changes when the topics change; 0 for no topics at all."""
    if not topics.ids:
        return 0
    digest = hashlib.blake2b(digest_size=8)
    for name, topic_id in topics.ids.items():
        digest.update(b"%s\0%s%d\0" % (name.encode(), topic_id.bytes, topics.partition_counts[topic_id]))
    return int.from_bytes(digest.digest(), "big", signed=True)


def check_regex(regex: str) -> None:
    """Raise `RefusedError` unless it is valid RE2."""
    _compile(regex)


def matching(regex: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that the pattern matches as a whole, sorted."""
    matches = _compile(regex).fullmatch
    return tuple(sorted(name for name in names if matches(name) is not None))


@lru_cache(maxsize=256)
def _compile(regex: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else "unknown"
        raise RefusedError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"'{regex}' is not a valid RE2 pattern: {reason}.",
        ) from None
