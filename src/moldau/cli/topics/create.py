"""kafka-topics --create."""

from __future__ import annotations

from moldau.cli.cluster_options import pairs
from moldau.cli.options import Parsed
from moldau.cli.tool import ToolError, say
from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.core.errors import ErrorCode

__all__ = ["NAME_WARNING", "create", "parse_replica_assignment"]

NAME_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)


def create(admin: Admin, parsed: Parsed) -> None:
    name = parsed.value("topic")
    if "." in name or "_" in name:
        say(NAME_WARNING)
    assignment = parsed.value("replica-assignment")
    try:
        admin.create_topic(
            name,
            partitions=parsed.value("partitions"),
            replication_factor=parsed.value("replication-factor"),
            replica_assignment=None if assignment is None else parse_replica_assignment(assignment),
            configs=pairs(parsed.values("config")),
        )
    except ClientError as error:
        if error.error_code is ErrorCode.TOPIC_ALREADY_EXISTS and parsed.has("if-not-exists"):
            return
        raise
    say(f"Created topic {name}.")


def parse_replica_assignment(text: str) -> list[list[int]]:
    """Parse `0:1:2,1:2:0`: brokers of a partition separated by colons, partitions by commas."""
    try:
        partitions = [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise ToolError(
            f"'{text}' is not a replica assignment: write 0:1,1:0 for two partitions on two brokers"
        ) from None
    for number, brokers in enumerate(partitions):
        repeated = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if repeated:
            raise ToolError(
                f"Partition replica lists may not contain duplicate entries: {', '.join(map(str, repeated))}"
            )
        if len(brokers) != len(partitions[0]):
            raise ToolError(f"Partition {number} has different replication factor: {brokers}")
    return partitions
