"""`moldau offsets`: the first and the next offset of each partition."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.offsets.get import offsets_at
from moldau.cli.offsets.selection import parse_time
from moldau.cli.sub_commands import add_connection, admin_for, command_parser, run_command, screen_for
from moldau.cli.tool import ToolError
from moldau.cli.topics.selection import matching
from moldau.client.errors import ClientError
from moldau.core.ids import TopicPartition

__all__ = ["main", "parser"]


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, _offsets)


def parser() -> CommandParser:
    made = command_parser(
        "offsets",
        "Show the first and the next offset of each partition, and how many lie between.",
        ["moldau offsets orders", "moldau offsets 'orders.*' -o json", "moldau offsets orders --time 1700000000000"],
    )
    made.add_argument("topic", nargs="?", help="a topic, or a regular expression for several")
    made.add_argument("--time", help="the offset at a moment instead: ms since 1970, or max-timestamp")
    add_connection(made)
    return made


def _offsets(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    counts = admin.partition_counts()
    names = matching(sorted(counts), options.topic, exclude_internal=options.topic is None)
    if options.topic is not None and not names:
        raise ToolError(f"there is no topic {options.topic}; `moldau topics list` shows what there is")
    partitions = [TopicPartition(name, number) for name in names for number in range(counts[name])]
    screen = screen_for(options)
    if options.time is not None:
        found = offsets_at(admin, partitions, parse_time(options.time))
        screen.table(("Topic", "Partition", "Offset"), [(*p, _offset_or_none(found.get(p))) for p in partitions])
        return
    first, following = offsets_at(admin, partitions, -2), offsets_at(admin, partitions, -1)
    rows = []
    for partition in partitions:
        low, high = _offset_or_none(first.get(partition)), _offset_or_none(following.get(partition))
        span = high - low if low is not None and high is not None else None
        rows.append((*partition, low, high, span))
    total = ("total", len(rows), "", "", sum(row[-1] or 0 for row in rows))
    screen.table(("Topic", "Partition", "First", "Next", "Span"), rows, total=total)


def _offset_or_none(answer: int | ClientError | None) -> int | None:
    return None if answer is None or isinstance(answer, ClientError) or answer < 0 else answer
