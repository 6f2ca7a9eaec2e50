"""kafka-topics --alter: adds partitions, and with the old options also changes configs."""

from __future__ import annotations

from moldau.cli.cluster_options import pairs
from moldau.cli.options import Parsed
from moldau.cli.tool import ToolError, say
from moldau.cli.topics.create import parse_replica_assignment
from moldau.cli.topics.selection import matching, must_exist
from moldau.client.admin import Admin

__all__ = ["alter"]

_PARTITION_WARNING = (
    "WARNING: If partitions are increased for a topic that has a key, "
    "the partition logic or ordering of the messages will be affected"
)
_CONFIG_WARNING = (
    "WARNING: Altering topic configuration from this script has been deprecated and may be removed in future releases.",
    "         Going forward, please use kafka-configs.sh for this functionality",
)


def alter(admin: Admin, parsed: Parsed) -> None:
    wanted = parsed.value("topic")
    names = matching(admin.topic_names(), wanted, exclude_internal=parsed.has("exclude-internal"))
    must_exist(names, wanted, is_optional=parsed.has("if-exists"))
    for name in names:
        if parsed.has("config") or parsed.has("delete-config"):
            _alter_configs(admin, parsed, name)
        if parsed.has("partitions"):
            _add_partitions(admin, parsed, name)


def _add_partitions(admin: Admin, parsed: Parsed, name: str) -> None:
    assignment = parsed.value("replica-assignment")
    added = None
    if assignment is not None:
        existing = len(admin.describe_topics([name])[0].partitions)
        added = parse_replica_assignment(assignment)[existing:]
        if not added:
            raise ToolError(
                f"The topic {name} already has {existing} partition(s): name replicas for those and the new ones"
            )
    if parsed.has("zookeeper"):
        say(_PARTITION_WARNING)
    admin.create_partitions(name, parsed.value("partitions"), added)
    if parsed.has("zookeeper"):
        say("Adding partitions succeeded!")


def _alter_configs(admin: Admin, parsed: Parsed, name: str) -> None:
    for line in _CONFIG_WARNING:
        say(line)
    admin.alter_configs("topic", name, add=pairs(parsed.values("config")), delete=parsed.values("delete-config"))
    say(f"Updated config for topic {name}.")
