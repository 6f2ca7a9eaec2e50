"""kafka-consumer-groups --delete and --delete-offsets. Start at `delete_groups`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.cli.groups.describe import group_ids
from moldau.cli.groups.failures import java_failure, plain_failure
from moldau.cli.groups.partitions import parse_partitions
from moldau.cli.options import Parsed
from moldau.cli.tool import say
from moldau.client.errors import ClientError
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.groups import Groups

__all__ = ["delete_groups", "delete_offsets"]

WHOLE_TOPIC = -1


def delete_groups(parsed: Parsed, groups: Groups, admin: Admin) -> None:
    wanted = group_ids(parsed, groups)
    outcomes = groups.delete(wanted) if wanted else {}
    failed = {group_id: error for group_id, error in outcomes.items() if error is not None}
    deleted = ", ".join(f"'{group_id}'" for group_id in outcomes if group_id not in failed)
    if not failed:
        say(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    say("\nError: Deletion of some consumer groups failed:")
    for group_id, error in failed.items():
        name = f" ({error.error_code.name})" if error.error_code is not None else ""
        say(f"* Group '{group_id}' could not be deleted due to: {java_failure(error)}{name}")
    if deleted:
        say(f"\nThese consumer groups were deleted successfully: {deleted}")


def delete_offsets(parsed: Parsed, groups: Groups, admin: Admin) -> None:
    group_id, topics = parsed.value("group"), parsed.values("topic")
    partitions, missing = parse_partitions(topics, admin.partition_counts())
    outcomes: dict[TopicPartition, ClientError | None] = {
        TopicPartition(topic, WHOLE_TOPIC): ClientError("", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for topic in missing
    }
    try:
        found = groups.delete_offsets(group_id, partitions)
    except ClientError as error:
        say(f"\nError: {plain_failure(error)}")
        found = dict.fromkeys(partitions, error)
    else:
        if any(found.values()):
            say("\nError: Encountered some partition-level error, see the follow-up details.")
        else:
            say(f"Request succeed for deleting offsets with topic {', '.join(topics)} group {group_id}")
    _show(outcomes | found)


def _show(outcomes: dict[TopicPartition, ClientError | None]) -> None:
    width = max([15, *(len(partition.topic) for partition in outcomes)])
    say(f"\n{'TOPIC':<{width}} {'PARTITION':<10} {'STATUS':<15}")
    for partition in sorted(outcomes):
        error = outcomes[partition]
        status = "Successful" if error is None else f"Error: {java_failure(error)}"
        number = "-" if partition.partition == WHOLE_TOPIC else partition.partition
        say(f"{partition.topic:<{width}} {number:<10} {status:<15}")
