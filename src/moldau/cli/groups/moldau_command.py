"""`moldau groups`: list, describe, reset and delete."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.groups.describe import end_offsets, group_offsets
from moldau.cli.groups.failures import plain_failure
from moldau.cli.groups.reset import EARLIEST, LATEST, Resetter
from moldau.cli.groups.tables import OffsetRow
from moldau.cli.moments import parse_datetime_ms, parse_duration_ms
from moldau.cli.screen import Screen
from moldau.cli.sub_commands import add_connection, admin_for, command_parser, run_command, screen_for
from moldau.cli.tool import ToolError
from moldau.cli.topics.totals import sum_of_known
from moldau.client.groups import GroupDescription, Groups
from moldau.core.ids import TopicPartition

__all__ = ["main", "parser", "total_lag"]


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, lambda options: _VERBS[options.verb](options))


def _list(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    found = sorted(Groups(admin).listings_with_offsets(), key=lambda group: group[0].group_id)
    ends = end_offsets(admin, {partition for _, committed in found for partition in committed or ()})
    lags = [None if committed is None else total_lag(committed, ends) for _, committed in found]
    rows = [
        (listing.group_id, listing.type, listing.state, listing.protocol or None, lag)
        for (listing, _), lag in zip(found, lags, strict=True)
    ]
    screen = screen_for(options)
    if not rows and not screen.is_json:
        screen.note("No groups yet. Consumers make one when they join: moldau consume <topic> --group <name>")
        return
    total = (f"total of {len(rows)}", "", "", "", sum_of_known(lags))
    screen.table(("Group", "Type", "State", "Protocol", "Lag"), rows, total=total)


def total_lag(committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int | None]) -> int:
    """The number of records that a group has not read yet, in the partitions that still exist."""
    found = ((offset, ends.get(partition)) for partition, offset in committed.items())
    return sum(max(0, end - offset) for offset, end in found if end is not None)


def _describe(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    groups = Groups(admin)
    group = _existing(groups, options.group)
    rows = group_offsets(group, groups, admin)
    screen = screen_for(options)
    if screen.is_json:
        screen.document(_document(group, rows))
        return
    lag = sum(row.lag or 0 for row in rows)
    node = group.coordinator
    assignor = f", assigned by {group.assignor}" if group.assignor else ""
    screen.note(f"{group.group_id}  {group.state}, {len(group.members)} members, lag {lag}{assignor}")
    screen.note(f"  coordinator {node.host}:{node.port} (broker {node.id})")
    if options.members:
        _show_members(screen, group)
        return
    cells = [
        (*row.partition, _committed_offset(row), row.end, row.lag, row.member and row.member.client_id) for row in rows
    ]
    screen.table(
        ("Topic", "Partition", "Committed", "End", "Lag", "Client"), cells, total=("total", "", "", "", lag, "")
    )


def _show_members(screen: Screen, group: GroupDescription) -> None:
    rows = [
        (member.client_id, member.member_id, member.instance_id, member.host, [str(p) for p in member.assignment])
        for member in group.members
    ]
    screen.table(("Client", "Member", "Instance", "Host", "Partitions"), rows)


def _reset(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    groups = Groups(admin)
    group = groups.describe(options.group)
    if group is not None and group.state not in ("Empty", "Dead"):
        raise ToolError(f"{options.group} has members ({group.state}); stop its consumers first")
    resetter = Resetter(groups, admin, warn=lambda text: print(text, file=sys.stderr))
    partitions = resetter.partitions(options.group, options.topics, takes_all=not options.topics)
    if not partitions:
        raise ToolError(f"{options.group} has no offsets yet; name the topics to set some")
    before = groups.committed(options.group)
    plan = _plan(options, resetter, partitions)
    if not options.dry_run:
        groups.commit(options.group, plan)
    screen = screen_for(options)
    rows = [(*p, before[p].offset if p in before else None, plan[p]) for p in sorted(plan)]
    screen.table(("Topic", "Partition", "Before", "After"), rows)
    if options.dry_run:
        screen.note("Nothing was changed: this was a dry run")


def _plan(
    options: argparse.Namespace, resetter: Resetter, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    if options.shift_by is not None:
        return resetter.shifted(options.group, partitions, options.shift_by)
    if options.ago is not None:
        return resetter.at(partitions, time.time_ns() // 1_000_000 - parse_duration_ms(options.ago))
    if options.to in ("earliest", "latest"):
        return resetter.ends(partitions, EARLIEST if options.to == "earliest" else LATEST)
    if options.to.isdigit():
        return resetter.exactly(dict.fromkeys(partitions, int(options.to)))
    return resetter.at(partitions, parse_datetime_ms(options.to))


def _delete(options: argparse.Namespace) -> None:
    outcomes = Groups(admin_for(options)).delete(options.groups)
    deleted = [group_id for group_id, error in outcomes.items() if error is None]
    if deleted:
        screen_for(options).done(f"Deleted {', '.join(deleted)}", deleted=deleted)
    failed = [f"{group_id}: {plain_failure(error)}" for group_id, error in outcomes.items() if error is not None]
    if failed:
        raise ToolError("; ".join(failed))


_VERBS = {"list": _list, "describe": _describe, "reset": _reset, "delete": _delete}


def _existing(groups: Groups, group_id: str) -> GroupDescription:
    group = groups.describe(group_id)
    if group is None:
        raise ToolError(f"there is no group {group_id}; `moldau groups list` shows what there is")
    return group


def _committed_offset(row: OffsetRow) -> int | None:
    return row.committed.offset if row.committed is not None else None


def _document(group: GroupDescription, rows: Sequence[OffsetRow]) -> dict[str, object]:
    return {
        "group": group.group_id,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator.id,
        "offsets": [
            {
                "topic": row.partition.topic,
                "partition": row.partition.partition,
                "committed": _committed_offset(row),
                "end": row.end,
                "lag": row.lag,
                "member": row.member.member_id if row.member is not None else None,
            }
            for row in rows
        ],
        "members": [
            {
                "member": member.member_id,
                "client": member.client_id,
                "instance": member.instance_id,
                "host": member.host,
                "partitions": [str(partition) for partition in member.assignment],
            }
            for member in group.members
        ],
    }


def parser() -> CommandParser:
    made = command_parser(
        "groups",
        "List, describe, reset and delete consumer groups.",
        [
            "moldau groups",
            "moldau groups describe billing",
            "moldau groups reset billing orders --to earliest --dry-run",
            "moldau groups reset billing orders:0,1 --shift-by -10",
            "moldau groups reset billing --ago PT1H",
            "moldau groups delete billing",
        ],
        default_verb="list",
    )
    listing = made.add_verb("list", help="names, types, states and lag")
    describe = made.add_verb("describe", help="offsets, lag and members")
    describe.add_argument("group")
    describe.add_argument("-m", "--members", action="store_true", help="who reads which partitions")
    reset = made.add_verb("reset", help="move the offsets of a group without members")
    reset.add_argument("group")
    reset.add_argument("topics", nargs="*", metavar="topic", help="a topic, or topic:0,1 (default: all with offsets)")
    where = reset.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", metavar="PLACE", help="earliest, latest, an offset, or a moment: 2026-01-31T12:00:00")
    where.add_argument("--shift-by", type=int, metavar="N", help="so many records further, or back")
    where.add_argument("--ago", metavar="DURATION", help="to what came so long ago: PT1H30M, P2D")
    reset.add_argument("--dry-run", action="store_true", help="only show what would change")
    delete = made.add_verb("delete", help="delete groups and their offsets")
    delete.add_argument("groups", nargs="+", metavar="group")
    for verb in (listing, describe, reset, delete):
        add_connection(verb)
    return made
