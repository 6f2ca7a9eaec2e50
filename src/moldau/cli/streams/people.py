"""`moldau streams`: run, describe and reset applications, for people."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from moldau.cli.connect import pairs
from moldau.cli.people import DEFAULT_SERVERS, SERVERS_VARIABLE, command_parser, run_command
from moldau.client.connection import load_properties

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    return run_command(_parser(), argv, lambda options: _VERBS[options.verb](options))


def _run(options: argparse.Namespace) -> int:
    from moldau.cli.streams.loading import load_topology
    from moldau.cli.streams.running import run

    config = _config(options)
    return run(load_topology(options.topology, config), config, quiet=options.quiet)


def _describe(options: argparse.Namespace) -> None:
    from moldau.cli.streams.loading import load_topology

    topology = load_topology(options.topology)
    if options.format == "mermaid":
        print(topology.to_mermaid())
    elif options.format == "dot":
        print(topology.to_dot())
    else:
        print(topology.describe())


def _reset(options: argparse.Namespace) -> None:
    from moldau.pipeline.runtime.reset import reset_application
    from moldau.pipeline.runtime.settings import StreamsSettings

    for removed in reset_application(StreamsSettings.of(_config(options)), force=options.force):
        print(f"Removed {removed}")


def _jars(options: argparse.Namespace) -> None:
    from moldau.pipeline.spark.jars import fetched

    print(",".join(map(str, fetched())))


def _prepare(options: argparse.Namespace) -> None:
    from moldau.cli.streams.preparing import prepare

    prepare(lambda text: print(f"· {text}", file=sys.stderr, flush=True))


def _config(options: argparse.Namespace) -> dict[str, str]:
    """What the file says, then single properties, then the options with a name of their own."""
    config = load_properties(options.config) if options.config else {}
    config |= pairs(options.property)
    if options.application_id is not None:
        config["application.id"] = options.application_id
    if options.bootstrap_server is not None:
        config["bootstrap.servers"] = options.bootstrap_server
    config.setdefault("bootstrap.servers", os.environ.get(SERVERS_VARIABLE, DEFAULT_SERVERS))
    return config


_VERBS = {"run": _run, "describe": _describe, "reset": _reset, "jars": _jars, "prepare": _prepare}


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "streams",
        "Run a topology on Spark, look at it, or let an application begin anew.",
        [
            "moldau streams run word_count.py:topology --application-id word-count",
            "moldau streams run my.module:topology -c app.properties -p processing.guarantee=exactly_once_v2",
            "moldau streams describe word_count.py:topology",
            "moldau streams reset --application-id word-count",
            'spark-submit --jars "$(moldau streams jars)" word_count.py',
        ],
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    run = verbs.add_parser("run", help="run a topology until it is told to stop (Ctrl-C, SIGTERM)")
    run.add_argument("topology", metavar="module:name", help="a module or a .py file, and what in it is the topology")
    run.add_argument("-q", "--quiet", action="store_true", default=not sys.stderr.isatty(), help="no line of progress")
    _add_config(run)
    describe = verbs.add_parser("describe", help="print a topology; nothing is run")
    describe.add_argument("topology", metavar="module:name")
    describe.add_argument("--format", choices=("text", "mermaid", "dot"), default="text")
    reset = verbs.add_parser("reset", help="forget an application's state, offsets and progress")
    reset.add_argument("--force", action="store_true", help="also where the group still has a member")
    _add_config(reset)
    verbs.add_parser("prepare", help="fetch what pipelines need, and make starts twice as fast; once is enough")
    verbs.add_parser("jars", help="fetch the jars of Spark's Kafka connector, and print where they are")
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-a", "--application-id", metavar="ID", help="application.id")
    parser.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help=f"default: {DEFAULT_SERVERS}")
    parser.add_argument("-c", "--config", metavar="FILE", help="properties, by the names of Kafka's StreamsConfig")
    parser.add_argument(
        "-p", "--property", action="append", default=[], metavar="KEY=VALUE", help="one property; any spark.* too"
    )
