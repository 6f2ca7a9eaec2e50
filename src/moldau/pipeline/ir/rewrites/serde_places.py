"""Replace serdes wherever a pipeline has one, for keys or for values. Start at `with_serdes`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any

from moldau.pipeline.ir.nodes import Materialization, Node, StateStore
from moldau.pipeline.ir.rewrites.rebuilding import rebuild, replace_fields
from moldau.pipeline.ir.serdes import DefaultSerde
from moldau.serdes.serde import Part, Serde, with_inner

__all__ = ["SerdeChange", "with_default_serdes", "with_serdes"]

SerdeChange = Callable[[Serde, Part], Serde]
"""(serde, `key` or `value`) -> the serde to use in its place, which may be the same."""

_PARTS: dict[str, Part] = {"key_serde": "key", "value_serde": "value"}


def with_serdes(nodes: Iterable[Node], change: SerdeChange) -> tuple[Node, ...]:
    """The same pipeline with other serdes; nodes whose serdes do not change are the same objects."""

    def rewrite(node: Node) -> tuple[Node, ...]:
        old = {field.name: getattr(node, field.name) for field in fields(node)}
        changes = {name: new for name, part in old.items() if (new := _change_serdes(name, part, change)) is not part}
        return (replace_fields(node, **changes),) if changes else (node,)

    return rebuild(nodes, rewrite)


def with_default_serdes(nodes: Iterable[Node], *, key: Serde | None, value: Serde | None) -> tuple[Node, ...]:
    """Replace every `DefaultSerde`; one without a setting stays, and raises on the first record."""
    defaults = {"key": key, "value": value}

    def resolve_default(serde: Serde, part: Part) -> Serde:
        return defaults[serde.part] or serde if isinstance(serde, DefaultSerde) else serde

    return with_serdes(nodes, resolve_default)


def _change_serdes(name: str, part: Any, change: SerdeChange) -> Any:
    if name in _PARTS:
        return _change_serde(part, _PARTS[name], change)
    match part:
        case Materialization():
            new = {field: _change_serde(getattr(part, field), kind, change) for field, kind in _PARTS.items()}
            return _with(part, **new)
        case StateStore():
            return _with(part, table=_change_serdes("table", part.table, change))
        case (StateStore(), *_):
            return tuple(_change_serdes(name, store, change) for store in part)
        case _:
            return part


def _change_serde(serde: Serde, part: Part, change: SerdeChange) -> Serde:
    return with_inner(serde, lambda one: change(one, part))


def _with(part: Any, **changes: Any) -> Any:
    unchanged = all(getattr(part, name) is new for name, new in changes.items())
    return part if unchanged else replace(part, **changes)
