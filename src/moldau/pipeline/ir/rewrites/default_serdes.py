"""Put the settings' serdes where a pipeline names none. Start at `with_default_serdes`."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.pipeline.ir.nodes import Node
from moldau.pipeline.ir.rewrites.serde_places import with_serdes
from moldau.pipeline.ir.serdes import DefaultSerde
from moldau.serdes.serde import Part, Serde

__all__ = ["with_default_serdes"]


def with_default_serdes(nodes: Iterable[Node], *, key: Serde | None, value: Serde | None) -> tuple[Node, ...]:
    """Replace every `DefaultSerde`; one that has no setting stays, and refuses the first record it meets."""
    defaults = {"key": key, "value": value}

    def resolved(serde: Serde, part: Part) -> Serde:
        return defaults[serde.part] or serde if isinstance(serde, DefaultSerde) else serde

    return with_serdes(nodes, resolved)
