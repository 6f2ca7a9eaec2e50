"""The tables of kafka-consumer-groups, column by column.

No I/O: from descriptions and offsets to lines. Columns have a minimum width and grow with their content, except
those of a fixed width; a last column without a width is not padded. Start at `offset_lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from moldau.client.groups import CommittedOffset, GroupDescription, GroupListing, GroupMember
from moldau.core.ids import TopicPartition

__all__ = [
    "ABSENT",
    "OffsetRow",
    "listing_lines",
    "member_lines",
    "offset_lines",
    "offset_rows",
    "reset_lines",
    "state_lines",
]

ABSENT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRow:
    """A group's offset in one partition, and the member that reads it."""

    partition: TopicPartition
    committed: CommittedOffset | None
    end: int | None
    member: GroupMember | None = None

    @property
    def lag(self) -> int | None:
        return self.end - self.committed.offset if self.end is not None and self.committed is not None else None


def offset_rows(
    group: GroupDescription,
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, int | None],
) -> list[OffsetRow]:
    """The rows: assigned partitions first, ordered by their member's number of partitions; then the rest."""
    owners = sorted(
        (member for member in group.members if member.assignment), key=lambda member: -len(member.assignment)
    )
    rows = [
        OffsetRow(partition=partition, committed=committed.get(partition), end=ends.get(partition), member=member)
        for member in owners
        for partition in sorted(member.assignment)
    ]
    assigned = {row.partition for row in rows}
    rows += [
        OffsetRow(partition=partition, committed=committed[partition], end=ends.get(partition))
        for partition in sorted(committed)
        if partition not in assigned
    ]
    return rows


def offset_lines(group_id: str, rows: Sequence[OffsetRow], *, is_verbose: bool) -> list[str]:
    columns = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST"]
    widths: list[int | None] = [15, 15, 10, 15, 15, 15, 15, 15, None]
    cells = [
        [
            group_id,
            row.partition.topic,
            row.partition.partition,
            row.committed.offset if row.committed is not None else None,
            row.end,
            row.lag,
            row.member.member_id if row.member is not None else None,
            row.member.host if row.member is not None else None,
            row.member.client_id if row.member is not None else None,
        ]
        for row in rows
    ]
    if is_verbose:
        columns.insert(3, "LEADER-EPOCH")
        widths.insert(3, 15)
        for line, row in zip(cells, rows, strict=True):
            line.insert(3, row.committed.leader_epoch if row.committed is not None else None)
    return _table([*columns, "CLIENT-ID"], widths, cells)


def member_lines(group: GroupDescription, *, is_verbose: bool) -> list[str]:
    has_instances = any(member.instance_id for member in group.members)
    is_migrating = {member.is_upgraded for member in group.members} >= {False, True}
    columns = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    # The last column is padded too, as in Kafka.
    widths: list[int | None] = [15, 15, 15, 15, 15]
    cells: list[list[object]] = [
        [group.group_id, member.member_id, member.host, member.client_id, len(member.assignment)]
        for member in group.members
    ]
    if has_instances:
        columns.insert(2, "GROUP-INSTANCE-ID")
        widths.insert(2, 17)
        for line, member in zip(cells, group.members, strict=True):
            line.insert(2, member.instance_id or "")
    if not is_verbose:
        return [f"{line} " for line in _table(columns, widths, cells)]
    columns += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    widths += [15, 20, 15, 20]
    for line, member in zip(cells, group.members, strict=True):
        line += [member.epoch, _assignment(member.assignment), group.target_epoch, _assignment(member.target)]
        if is_migrating:
            line.append(
                {True: "true", False: "false"}.get(member.is_upgraded) if member.is_upgraded is not None else None
            )
    if is_migrating:
        columns.append("UPGRADED")
        widths.append(None)
    return _table(columns, widths, cells)


def state_lines(group: GroupDescription, *, is_verbose: bool) -> list[str]:
    node = group.coordinator
    columns = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    widths: list[int | None] = [15, 25, 20, 20]
    cells: list[object] = [group.group_id, f"{node.host}:{node.port}  ({node.id})", group.assignor or None, group.state]
    if is_verbose:
        columns += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        widths += [15, 25]
        cells += [group.epoch, group.target_epoch]
    return _table([*columns, "#MEMBERS"], [*widths, None], [[*cells, len(group.members)]])


def listing_lines(listings: Sequence[GroupListing], *, shows_type: bool, shows_state: bool) -> list[str]:
    # The width of the longest id, plus ten.
    width = max([15, *(len(listing.group_id) for listing in listings)]) + 10
    columns, widths = ["GROUP"], [width]
    cells: list[list[object]] = [[listing.group_id] for listing in listings]
    for is_shown, name in ((shows_type, "TYPE"), (shows_state, "STATE")):
        if is_shown:
            columns.append(name)
            widths.append(20)
            for line, listing in zip(cells, listings, strict=True):
                line.append((listing.type if name == "TYPE" else listing.state) or "Unknown")
    return _table(columns, widths, cells)


def reset_lines(plans: Mapping[str, Mapping[TopicPartition, int]]) -> list[str]:
    """The table of new offsets, with fixed column widths."""
    rows = [
        (group_id, partition.topic, partition.partition, plan[partition])
        for group_id, plan in plans.items()
        for partition in sorted(plan)
    ]
    return [
        f"{group:<30} {topic:<30} {number:<10} {offset:<15}"
        for group, topic, number, offset in [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), *rows]
    ]


def _assignment(partitions: Iterable[TopicPartition]) -> str | None:
    """Partitions as text: `topic:0,1;other:2`."""
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition.partition)
    return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in topics.items()) or None


def _table(columns: Sequence[str], widths: Sequence[int | None], cells: Sequence[Sequence[object]]) -> list[str]:
    """A table of left-aligned cells, separated by a blank; a last column of width `None` is not padded."""
    texts = [[ABSENT if cell is None else str(cell) for cell in line] for line in cells]
    grown = [
        0 if width is None else max([width, *(len(line[position]) for line in texts)])
        for position, width in enumerate(widths)
    ]
    return [" ".join(text.ljust(width) for text, width in zip(line, grown, strict=True)) for line in [columns, *texts]]
