"""Find the operators that have no serde, not even a default one. Start at `missing_serde`.

Apache Kafka rejects such a topology at start; without this check it would fail on the first record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.nodes import (
    GlobalTableSource,
    Materialization,
    Node,
    Process,
    Repartition,
    Sink,
    Source,
    StateStore,
    StreamStreamJoin,
    StreamTableJoin,
)
from moldau.pipeline.ir.serdes import DefaultSerde
from moldau.serdes.serde import Serde

__all__ = ["MissingSerdeError", "missing_serde"]


class MissingSerdeError(TopologyError):
    """An operator reads, writes or stores records, and has no serde for them."""


def missing_serde(nodes: Iterable[Node], config: Mapping[str, Any]) -> MissingSerdeError | None:
    """The error of a pipeline that lacks a serde which the settings do not provide either; None if none is missing."""
    places = [
        (node, what, option, part)
        for node in nodes
        for what, option, part in _missing_in(node)
        if config.get(f"default.{part}.serde") is None
    ]
    if not places:
        return None
    node, what, option, part = places[0]
    others = {other.name for other, *_ in places[1:] if other is not node}
    more = f"; {len(others)} more operators lack one too" if len(others) > 1 else ""
    return MissingSerdeError(
        f"{node.name} {what} without a serde for {part}s: name one in {option}, or set default.{part}.serde{more}",
        node.origin,
    )


def _missing_in(node: Node) -> Iterator[tuple[str, str, str]]:
    """(what the operator does, which option names the serde, `key` or `value`) for each serde that is missing."""
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in ("key_serde", "value_serde"):
            yield from ((*_as_bytes(node), part) for part in _defaults(value))
        for table in _tables(value):
            for part in (*_defaults(table.key_serde), *_defaults(table.value_serde)):
                yield (f"keeps records in store {table.store}", _option_for_store(node), part)


def _as_bytes(node: Node) -> tuple[str, str]:
    match node:
        case Source():
            topics = ", ".join(node.topics) or f"topics like {getattr(node, 'topic_pattern', '')}"
            return f"reads {topics}", "Consumed.with_(key_serde, value_serde)"
        case Sink():
            return f"writes {node.topic or 'topics'}", "Produced.with_(key_serde, value_serde)"
        case Repartition():
            return "repartitions records", "Grouped.with_(key_serde, value_serde), Repartitioned or Joined"
        case _:
            return "moves records", "its options"


def _option_for_store(node: Node) -> str:
    match node:
        case StreamStreamJoin():
            return "StreamJoined.with_(key_serde, left_serde, right_serde)"
        case StreamTableJoin():
            return "Joined.with_(key_serde, left_serde, right_serde)"
        case Process() | GlobalTableSource():
            return "the store's builder"
        case _:
            return "Materialized.with_(key_serde, value_serde)"


def _tables(value: Any) -> list[Materialization]:
    match value:
        case Materialization():
            return [value]
        case StateStore():
            return [value.table]
        case tuple():
            return [store.table for store in value if isinstance(store, StateStore)]
        case _:
            return []


def _defaults(serde: Serde) -> list[str]:
    """The defaults (`key`, `value`) that a serde, or one nested in it, refers to."""
    inner: Any = serde
    while (next_one := getattr(inner, "inner", None)) is not None:
        inner = next_one
    return [inner.part] if isinstance(inner, DefaultSerde) else []
