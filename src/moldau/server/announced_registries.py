"""The schema registries that announced themselves on this cluster: the members of their group, who say where they are.

For brokers that were not told a registry's URL. Start at `announced_registries`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.core.errors import ErrorCode
from moldau.registry.leadership import PROTOCOL_TYPE, InstanceIdentity

if TYPE_CHECKING:
    from moldau.broker.coordinators import Coordinators

__all__ = ["GROUP_ID", "announced_registries"]

GROUP_ID: Final = "schema-registry"


def announced_registries(coordinators: Coordinators) -> tuple[str, ...]:
    """Their URLs, none where the group is empty or another broker coordinates it. May be called from any thread."""
    shard = coordinators.groups.shard_of(GROUP_ID)
    group = None if isinstance(shard, ErrorCode) else shard.core.groups.get(GROUP_ID)
    if not isinstance(group, ClassicGroup) or group.protocol_type != PROTOCOL_TYPE:
        return ()
    # One step, so that a member that comes or goes meanwhile does not matter.
    members = list(group.members.values())
    identities = [InstanceIdentity.decode(one.metadata) for member in members for one in member.protocols]
    return tuple(sorted({identity.url for identity in identities if identity is not None}))
