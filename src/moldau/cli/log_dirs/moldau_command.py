"""`moldau log-dirs`: the size of each partition on disk."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.log_dirs.describe import log_dirs_by_broker
from moldau.cli.screen import Bytes
from moldau.cli.sub_commands import add_connection, admin_for, command_parser, run_command, screen_for

__all__ = ["main", "parser"]


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, _log_dirs)


def parser() -> CommandParser:
    made = command_parser(
        "log-dirs",
        "Show what each partition takes in each broker's log directories, the largest first.",
        ["moldau log-dirs", "moldau log-dirs orders payments -o json"],
    )
    made.add_argument("topics", nargs="*", metavar="topic", help="only these topics")
    add_connection(made)
    return made


def _log_dirs(options: argparse.Namespace) -> None:
    admin = admin_for(options)
    brokers = [node.id for node in admin.describe_cluster().nodes]
    screen = screen_for(options)
    replicas = [
        (broker, log_dir.path, replica)
        for broker, log_dirs in log_dirs_by_broker(admin, brokers, options.topics or None).items()
        for log_dir in log_dirs
        for replica in log_dir.replicas
    ]
    replicas.sort(key=lambda entry: -entry[2].size)
    rows = [(broker, path, str(replica.partition), Bytes(replica.size)) for broker, path, replica in replicas]
    total = Bytes(sum(replica.size for _, _, replica in replicas))
    screen.table(("Broker", "Directory", "Partition", "Size"), rows, total=("total", "", len(rows), total))
