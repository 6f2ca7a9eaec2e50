"""Which topics are read, and that none is read in two ways. Start at `reader_of`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import Node, Source, StreamSource

__all__ = ["reader_of"]


def reader_of(node: Source, nodes: Iterable[Node]) -> StreamSource | None:
    """The stream among these nodes that reads the same topics already.

    Raises `TopologyError` where anything else reads one of them, or reads them in another way.
    """
    for other in nodes:
        if not isinstance(other, Source) or not _overlap(node, other):
            continue
        if isinstance(node, StreamSource) and isinstance(other, StreamSource):
            _check_alike(node, other)
            return other
        raise TopologyError(
            f"{_named(other)} is read already ({other.origin}); read it once, as a stream, and use "
            "to_table() where a table is wanted",
            node.origin,
        )
    return None


def _overlap(node: Source, other: Source) -> bool:
    if node.topic_pattern is not None or other.topic_pattern is not None:
        if node.topic_pattern == other.topic_pattern:
            return True
        named, pattern = (node, other) if other.topic_pattern is not None else (other, node)
        return any(re.fullmatch(pattern.topic_pattern or "", topic) for topic in named.topics)
    return bool(set(node.topics) & set(other.topics))


def _check_alike(node: StreamSource, other: StreamSource) -> None:
    """Refuse to read one topic in two ways."""
    if set(node.topics) != set(other.topics) or node.topic_pattern != other.topic_pattern:
        raise TopologyError(
            f"{_named(other)} ({other.origin}) and {_named(node)} overlap; read each topic in one place only",
            node.origin,
        )
    if _clock(node) is not _clock(other):
        raise TopologyError(
            f"{_named(node)} is read with one timestamp_extractor ({other.origin}) and again with another or none; "
            "choose one",
            node.origin,
        )
    for what in ("key_serde", "value_serde", "offset_reset"):
        one, two = getattr(other, what), getattr(node, what)
        if one != two:
            raise TopologyError(
                f"{_named(node)} is read with {what} {one!r} ({other.origin}) and again with {two!r}; choose one",
                node.origin,
            )


def _clock(source: Source) -> object:
    return None if source.timestamps is None else source.timestamps.call


def _named(source: Source) -> str:
    if source.topic_pattern is not None:
        return f"topics like {source.topic_pattern}"
    return f"topic{'s' if len(source.topics) > 1 else ''} {', '.join(source.topics)}"
