"""Put the settings' serdes where a pipeline names none, and tell the settings to serdes that want to know them.

Start at `with_default_serdes` and `with_configured_serdes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.pipeline.ir.nodes import Node
from moldau.pipeline.ir.rewrites.serde_places import changed_serde, with_serdes
from moldau.pipeline.ir.serdes import DefaultSerde, Serde

__all__ = ["configured_serde", "with_configured_serdes", "with_default_serdes"]


def with_default_serdes(nodes: Iterable[Node], *, key: Serde | None, value: Serde | None) -> tuple[Node, ...]:
    """Replace every `DefaultSerde`; one that has no setting stays, and refuses the first record it meets."""
    defaults = {"key": key, "value": value}

    def resolved(serde: Serde, part: str) -> Serde:
        return defaults[serde.part] or serde if isinstance(serde, DefaultSerde) else serde

    return with_serdes(nodes, resolved)


def with_configured_serdes(nodes: Iterable[Node], config: Mapping[str, Any]) -> tuple[Node, ...]:
    """Replace every serde that offers `configured` by what that gives for its place."""
    return with_serdes(nodes, lambda serde, part: _configured(serde, part, config))


def configured_serde(serde: Serde, part: str, config: Mapping[str, Any]) -> Serde:
    """One serde, or what is inside it, as the settings of an application make it."""
    return changed_serde(serde, part, lambda one, kind: _configured(one, kind, config))


def _configured(serde: Serde, part: str, config: Mapping[str, Any]) -> Serde:
    configure = getattr(serde, "configured", None)
    made: Serde = serde if configure is None else configure(config, part)
    return made
