"""The serdes of a topology, completed from an application's settings: defaults filled in, each serde configured.

Start at `with_serdes_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.client.serialization import prepared_serde
from moldau.pipeline.ir.errors import TopologyError
from moldau.pipeline.ir.missing_serdes import missing_serde
from moldau.pipeline.ir.origin import callers_origin
from moldau.pipeline.ir.topology import Topology
from moldau.serdes.names import serde_from_setting
from moldau.serdes.serde import Part, Serde

__all__ = ["default_serde", "with_serdes_of"]


def with_serdes_of(topology: Topology, config: Mapping[str, Any]) -> Topology:
    """The topology with the settings' default serdes where it names none, and with every serde configured.

    Raises `MissingSerdeError` if neither the topology nor the settings name a serde.
    """
    if not isinstance(topology, Topology):
        hint = "; call its build()" if hasattr(topology, "build") else ", which StreamsBuilder.build() makes"
        raise TopologyError(f"a topology is needed here, not {type(topology).__name__}{hint}", callers_origin())
    key, value = default_serde(config, "key"), default_serde(config, "value")
    if (refusal := missing_serde(topology.nodes, config)) is not None:
        raise refusal
    complete = topology.with_default_serdes(key=key, value=value)
    return complete.with_prepared_serdes(lambda serde, part: prepared_serde(serde, config, part))


def default_serde(config: Mapping[str, Any], part: Part) -> Serde | None:
    """The serde of the setting `default.key.serde` or `default.value.serde`; None if it is not set."""
    key = f"default.{part}.serde"
    given = config.get(key)
    return None if given is None else serde_from_setting(given, key, config, part)
