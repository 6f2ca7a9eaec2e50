"""Put the settings' serdes where a pipeline names none. Start at `with_default_serdes`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from moldau.pipeline.ir.nodes import Materialization, Node, StateStore
from moldau.pipeline.ir.rewrites.rebuilding import rebuilt, replaced
from moldau.pipeline.ir.serdes import DefaultSerde, ListSerde, Serde
from moldau.pipeline.ir.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde

__all__ = ["with_default_serdes"]


def with_default_serdes(nodes: Iterable[Node], *, key: Serde | None, value: Serde | None) -> tuple[Node, ...]:
    """Replace every `DefaultSerde`; one that has no setting stays, and refuses the first record it meets."""
    defaults = {"key": key, "value": value}

    def rewrite(node: Node) -> tuple[Node, ...]:
        old = {field.name: getattr(node, field.name) for field in fields(node)}
        changes = {name: new for name, part in old.items() if (new := _resolved(part, defaults)) is not part}
        return (replaced(node, **changes),) if changes else (node,)

    return rebuilt(nodes, rewrite)


def _resolved(part: Any, defaults: dict[str, Serde | None]) -> Any:
    match part:
        case DefaultSerde():
            return defaults[part.part] or part
        case TimeWindowedSerde() | SessionWindowedSerde() | ListSerde():
            return _with(part, inner=_resolved(part.inner, defaults))
        case Materialization():
            key, value = _resolved(part.key_serde, defaults), _resolved(part.value_serde, defaults)
            return _with(part, key_serde=key, value_serde=value)
        case StateStore():
            return _with(part, table=_resolved(part.table, defaults))
        case (StateStore(), *_):
            return tuple(_resolved(store, defaults) for store in part)
        case _:
            return part


def _with(part: Any, **changes: Any) -> Any:
    unchanged = all(getattr(part, name) is new for name, new in changes.items())
    return part if unchanged else replace(part, **changes)
