"""`moldau streams`: run, describe and reset applications."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence

from moldau.cli.cluster_options import pairs
from moldau.cli.command_line import CommandParser
from moldau.cli.sub_commands import DEFAULT_SERVERS, SERVERS_VARIABLE, command_parser, run_command
from moldau.cli.tool import ToolError
from moldau.client.connection import load_properties

__all__ = ["main", "parser"]

TARGET = "a module or a .py file, and what in it is the topology: a function that returns one, or a builder"


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, lambda options: _VERBS[options.verb](options))


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
    from moldau.streams.application import reset_application
    from moldau.streams.settings import StreamsSettings

    settings = StreamsSettings.of(_config(options))
    removed = reset_application(settings, force=options.force)
    for what in removed:
        print(f"Removed {what}")
    if not removed:
        print(
            f"Nothing to forget: {settings.application_id} has no group and no progress at "
            f"{settings.bootstrap_servers}, and no state in {settings.state_dir}"
        )


def _jars(options: argparse.Namespace) -> None:
    from moldau.pipeline.spark.driver.jars import fetch_jars

    print(",".join(map(str, fetch_jars())))


def _prepare(options: argparse.Namespace) -> None:
    from moldau.cli.progress import Steps
    from moldau.cli.streams.preparing import prepare

    with Steps() as steps:
        did_something = prepare(steps.begin)
    print("Pipelines are ready to start." if did_something else "Nothing to do: everything was prepared before.")


def _config(options: argparse.Namespace) -> dict[str, str]:
    """The config: the file, then single properties, then named options; the later wins."""
    config = load_properties(options.config) if options.config else {}
    config |= pairs(options.property)
    if options.application_id is not None:
        config["application.id"] = options.application_id
    if options.bootstrap_server is not None:
        config["bootstrap.servers"] = options.bootstrap_server
    if not config.get("application.id"):
        raise ToolError(
            "application.id is missing: name the application with --application-id, or in the file of --config; "
            "its group, its state and its progress have that name"
        )
    config.setdefault("bootstrap.servers", os.environ.get(SERVERS_VARIABLE, DEFAULT_SERVERS))
    return config


_VERBS = {"run": _run, "describe": _describe, "reset": _reset, "jars": _jars, "prepare": _prepare}


def parser() -> CommandParser:
    made = command_parser(
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
    run = _verb(
        made,
        "run",
        "run a topology until it is told to stop (Ctrl-C, SIGTERM)",
        "Run a topology on Spark until it is told to stop, with Ctrl-C or SIGTERM. Started again under the same "
        "application id, it goes on where it was. Settings are those of docs/streams.md.",
        [
            "moldau streams run word_count.py:topology -a word-count",
            "moldau streams run my.module:topology -c app.properties -p processing.guarantee=exactly_once_v2",
            "moldau streams run word_count.py:topology -a word-count -p spark.master=spark://host:7077",
        ],
    )
    run.add_argument("topology", metavar="module:name", help=TARGET)
    run.add_argument("-q", "--quiet", action="store_true", default=not sys.stderr.isatty(), help="no line of progress")
    _add_config(run)
    describe = _verb(
        made,
        "describe",
        "print a topology; nothing is run",
        "Print a topology, as Kafka Streams does or as a drawing. Needs no broker, no Spark and no Java.",
        [
            "moldau streams describe word_count.py:topology",
            "moldau streams describe word_count.py:topology --format dot | dot -Tsvg > topology.svg",
        ],
    )
    describe.add_argument("topology", metavar="module:name", help=TARGET)
    describe.add_argument(
        "--format", choices=("text", "mermaid", "dot"), default="text", help="how to show it (default: text)"
    )
    reset = _verb(
        made,
        "reset",
        "forget an application's state, offsets and progress",
        "Forget an application's group, its progress, and its state on this machine: the next start reads its topics "
        "from the beginning, and writes its results again. The application must not run.",
        ["moldau streams reset -a word-count"],
    )
    reset.add_argument("--force", action="store_true", help="also where a killed one is still in the group")
    _add_config(reset)
    _verb(
        made,
        "prepare",
        "fetch what pipelines need, and make starts twice as fast; once is enough",
        "Fetch the jars of Spark's Kafka connector, and let Java note the classes of Spark: half a minute, once.",
        [],
    )
    _verb(
        made,
        "jars",
        "fetch the jars of Spark's Kafka connector, and print where they are",
        "Fetch the jars of Spark's Kafka connector where they are missing, and print their paths with commas between.",
        ['spark-submit --jars "$(moldau streams jars)" word_count.py'],
    )
    return made


def _verb(made: CommandParser, name: str, short: str, description: str, examples: Sequence[str]) -> CommandParser:
    listed = "".join(f"\n  {example}" for example in examples)
    return made.add_verb(
        name,
        help=short,
        description=textwrap.fill(description, width=100),
        epilog=f"examples:{listed}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-a", "--application-id", metavar="ID", help="application.id: names group and state")
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        help=f"brokers of the cluster (default: {DEFAULT_SERVERS}, or ${SERVERS_VARIABLE})",
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="properties, by the names of Kafka's StreamsConfig")
    parser.add_argument(
        "-p",
        "--property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one property, any spark.* too; may be given again, and wins over the file",
    )
