"""kafka-consumer-groups --describe. Start at `describe_groups`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moldau.cli.groups.list import consumer_groups
from moldau.cli.groups.tables import OffsetRow, member_lines, offset_lines, offset_rows, state_lines
from moldau.cli.options import Parsed
from moldau.cli.tool import say
from moldau.client.errors import ClientError
from moldau.client.groups import GroupDescription, Groups
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin

__all__ = ["describe_groups", "end_offsets", "group_ids", "group_offsets"]

REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})


def describe_groups(parsed: Parsed, groups: Groups, admin: Admin) -> None:
    for group_id in sorted(set(group_ids(parsed, groups))):
        group = groups.describe(group_id)
        if group is None:
            say(f"\nError: Consumer group '{group_id}' does not exist.")
            continue
        lines = _lines(parsed, group, groups, admin)
        _mention_state(group)
        if lines:
            say()
        for line in lines:
            say(line)


def group_ids(parsed: Parsed, groups: Groups) -> list[str]:
    if parsed.has("all-groups"):
        return [listing.group_id for listing in consumer_groups(groups)]
    return list(dict.fromkeys(parsed.values("group")))


def group_offsets(group: GroupDescription, groups: Groups, admin: Admin) -> list[OffsetRow]:
    """A group's offsets in every partition that is assigned or has a committed offset."""
    committed = groups.committed(group.group_id)
    assigned = {partition for member in group.members for partition in member.assignment}
    return offset_rows(group, committed, end_offsets(admin, assigned | set(committed)))


def end_offsets(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
    """The end offset of each existing partition; `None` on an error, such as no leader, to still show the others."""
    counts = admin.partition_counts()
    known = [partition for partition in partitions if partition.partition < counts.get(partition.topic, 0)]
    answers = admin.try_list_offsets(dict.fromkeys(known, -1))
    return {partition: None if isinstance(end, ClientError) else end for partition, end in answers.items()}


def _lines(parsed: Parsed, group: GroupDescription, groups: Groups, admin: Admin) -> list[str]:
    is_verbose = parsed.has("verbose")
    if parsed.has("state"):
        return state_lines(group, is_verbose=is_verbose)
    if parsed.has("members"):
        return member_lines(group, is_verbose=is_verbose) if group.members else []
    rows = group_offsets(group, groups, admin)
    return offset_lines(group.group_id, rows, is_verbose=is_verbose) if rows else []


def _mention_state(group: GroupDescription) -> None:
    if group.state == "Empty":
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr, flush=True)
    elif group.state in REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr, flush=True)
