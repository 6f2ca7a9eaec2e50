"""Shared code of the `moldau` sub-commands: common options, errors, and help with examples.

Start at `command_parser` and `run_command`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from moldau.cli.cluster_options import pairs, report_client_log
from moldau.cli.command_line import CommandParser
from moldau.cli.options import UsageError
from moldau.cli.screen import Screen
from moldau.cli.tool import ToolError, run_body
from moldau.client.connection import load_properties, normalize_servers

if TYPE_CHECKING:
    from moldau.client.admin import Admin

__all__ = ["add_connection", "admin_for", "command_parser", "properties_of", "run_command", "screen_for"]

DEFAULT_SERVERS = "localhost:9092"
SERVERS_VARIABLE = "MOLDAU_BOOTSTRAP_SERVERS"


def command_parser(
    name: str, description: str, examples: Sequence[str], *, default_verb: str | None = None
) -> CommandParser:
    """The parser of `moldau <name>`; `default_verb` is used if no verb is given."""
    listed = "\n".join(f"  {example}" for example in examples)
    return CommandParser(
        prog=f"moldau {name}",
        default_verb=default_verb,
        description=description,
        epilog=f"examples:\n{listed}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_connection(parser: argparse.ArgumentParser, *, has_output: bool = True) -> None:
    group = parser.add_argument_group("connection")
    group.add_argument(
        "-b",
        "--bootstrap-server",
        default=os.environ.get(SERVERS_VARIABLE, DEFAULT_SERVERS),
        metavar="HOST:PORT",
        help=f"brokers of the cluster (default: {DEFAULT_SERVERS}, or ${SERVERS_VARIABLE})",
    )
    group.add_argument("--config-file", metavar="FILE", help="client properties, for example for TLS and SASL")
    group.add_argument(
        "-X", dest="client_properties", action="append", default=[], metavar="KEY=VALUE", help="one client property"
    )
    if has_output:
        parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to show results")


def properties_of(options: argparse.Namespace) -> dict[str, str]:
    """Client properties from the file and from `-X`, including the bootstrap servers."""
    properties = load_properties(options.config_file) if options.config_file else {}
    properties |= pairs(options.client_properties)
    properties["bootstrap.servers"] = normalize_servers(options.bootstrap_server)
    return properties


def admin_for(options: argparse.Namespace) -> Admin:
    from moldau.client.admin import Admin

    return Admin(options.bootstrap_server, properties_of(options), report=report_client_log, timeout_ms=15_000)


def screen_for(options: argparse.Namespace) -> Screen:
    return Screen(options.output)


def run_command(
    parser: CommandParser,
    argv: Sequence[str],
    body: Callable[[argparse.Namespace], int | None],
) -> int:
    """Parse the arguments and run the command; a failure is one line on stderr."""
    options = parser.parse_args(argv)

    def run() -> int | None:
        try:
            return body(options)
        except UsageError as error:
            raise ToolError(str(error)) from None

    return run_body(run, lambda error: print(f"moldau: {error}", file=sys.stderr))
