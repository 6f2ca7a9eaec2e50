"""kafka-transactions: its sub-commands and their options. Start at `main`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import moldau
from moldau.cli.cluster_options import report_client_log
from moldau.cli.tool import run_body
from moldau.client.admin import Admin
from moldau.client.connection import load_properties, normalize_servers

__all__ = ["main"]

Action = Callable[[Admin, argparse.Namespace], None]


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    return run_body(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    properties = load_properties(options.command_config) if options.command_config else {}
    admin = Admin(normalize_servers(options.bootstrap_server), properties, report=report_client_log)
    _action(options.action)(admin, options)


def _action(name: str) -> Action:
    from moldau.cli.transactions import hanging, inspection

    actions: dict[str, Action] = {
        "list": inspection.list_all,
        "describe": inspection.describe,
        "describe-producers": inspection.describe_producers,
        "abort": hanging.abort,
        "find-hanging": hanging.find,
        "force-terminate": hanging.force_terminate,
        "forceTerminateTransaction": hanging.force_terminate,
    }
    return actions[name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-transactions", description="See which transactions are open, find those that hang, and end them."
    )
    parser.add_argument("-v", "--version", action="version", version=f"{moldau.__version__} (moldau)")
    parser.add_argument("--command-config", metavar="FILE", help="client properties, for example for TLS and SASL")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", required=True, help="brokers of the cluster")
    actions = parser.add_subparsers(dest="action", metavar="COMMAND", required=True)

    listing = actions.add_parser("list", help="list transactions")
    listing.add_argument(
        "--duration-filter", type=int, default=-1, metavar="MS", help="only those that have lasted longer"
    )
    listing.add_argument("--transactional-id-pattern", metavar="REGEX", help="only ids that fit, in RE2's syntax")

    describing = actions.add_parser("describe", help="how the transaction of a transactional id stands")
    describing.add_argument("--transactional-id", required=True, metavar="ID", help="the transactional id")

    producers = actions.add_parser("describe-producers", help="the producers a partition remembers")
    _add_partition(producers)
    producers.add_argument("--broker-id", type=int, metavar="ID", help="ask this replica instead of the leader")

    _add_abort(actions.add_parser("abort", help="end a hanging transaction in one partition"))

    finding = actions.add_parser("find-hanging", help="find transactions that no coordinator will end")
    finding.add_argument("--broker-id", type=int, metavar="ID", help="look at partitions of this broker")
    finding.add_argument(
        "--max-transaction-timeout",
        type=int,
        default=15,
        metavar="MINUTES",
        help="how long a transaction may last at most (15)",
    )
    finding.add_argument("--topic", help="look at this topic")
    finding.add_argument("--partition", type=int, help="look at this partition of it")

    for name in ("force-terminate", "forceTerminateTransaction"):
        terminating = actions.add_parser(name, help="abort the transaction of a transactional id")
        terminating.add_argument("--transactional-id", "--transactionalId", required=True, metavar="ID")
    return parser


def _add_partition(action: argparse.ArgumentParser) -> None:
    action.add_argument("--topic", required=True, help="the topic")
    action.add_argument("--partition", type=int, required=True, help="the partition's number")


def _add_abort(aborting: argparse.ArgumentParser) -> None:
    _add_partition(aborting)
    aborting.add_argument("--start-offset", type=int, metavar="OFFSET", help="where the transaction begins")
    older = aborting.add_argument_group("brokers older than 3.0", "all of these, in place of the offset")
    older.add_argument("--producer-id", type=int, metavar="ID")
    older.add_argument("--producer-epoch", type=int, metavar="EPOCH")
    older.add_argument("--coordinator-epoch", type=int, metavar="EPOCH")


if __name__ == "__main__":
    sys.exit(main())
