"""`moldau records delete`: deletes records below an offset."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.sub_commands import add_connection, admin_for, command_parser, run_command, screen_for
from moldau.cli.tool import ToolError
from moldau.client.errors import ClientError
from moldau.core.ids import TopicPartition

__all__ = ["main", "parser"]


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, _delete)


def parser() -> CommandParser:
    made = command_parser(
        "records",
        "Delete records of one partition below an offset. What is gone cannot be had back.",
        ["moldau records delete orders 0 --before 100", "moldau records delete orders 0 --all"],
    )
    delete = made.add_verb("delete", help="delete records below an offset")
    delete.add_argument("topic")
    delete.add_argument("partition", type=int)
    upto = delete.add_mutually_exclusive_group(required=True)
    upto.add_argument("--before", type=int, metavar="OFFSET", help="the first offset to keep")
    upto.add_argument("--all", action="store_true", help="everything there is now")
    add_connection(delete)
    return made


def _delete(options: argparse.Namespace) -> None:
    partition = TopicPartition(options.topic, options.partition)
    result = admin_for(options).delete_records({partition: -1 if options.all else options.before})[partition]
    if isinstance(result, ClientError):
        raise ToolError(f"{partition}: {result}")
    screen_for(options).done(f"{partition} now begins at offset {result}", partition=str(partition), first=result)
