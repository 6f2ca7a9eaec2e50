"""The `moldau` command. It only finds the sub-command; each sub-command imports what it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import takewhile
from typing import Any, NamedTuple

import moldau
from moldau.cli.command_line import CONNECTION_OPTIONS, Scanned, UnknownOptionError, did_you_mean, scan
from moldau.cli.tools import TOOLS, tool_main

__all__ = ["COMMANDS", "load", "main"]


class Command(NamedTuple):
    target: str
    summary: str
    parser: str = ""
    """The function that returns its parser, as `module:name`, for completion."""


def _noun(module: str, summary: str) -> Command:
    return Command(f"moldau.cli.{module}:main", summary, f"moldau.cli.{module}:parser")


def _platform(name: str, summary: str) -> Command:
    module = "moldau.cli.platform.commands"
    return Command(f"{module}:{name}", summary, f"{module}:{name}_parser")


COMMANDS = {
    "up": _noun("platform.up", "start the whole platform, and keep it running"),
    "status": _platform("status", "the services of the platform"),
    "down": _platform("down", "stop the platform"),
    "restart": _platform("restart", "restart a service of the platform"),
    "logs": _platform("logs", "print the log of a service"),
    "destroy": _platform("destroy", "delete all data of a stopped platform"),
    "topology": _noun("platform.topology", "all pipelines as one graph"),
    "server": Command("moldau.cli.server.start:moldau_server", "run a broker", "moldau.cli.server.start:parser"),
    "stop": Command("moldau.cli.server.stop:kafka_server_stop", "stop the brokers you started"),
    "registry": Command(
        "moldau.cli.registry.start:moldau_registry", "run a schema registry", "moldau.cli.registry.start:parser"
    ),
    "rest": Command("moldau.cli.rest.start:moldau_rest", "run a REST proxy", "moldau.cli.rest.start:parser"),
    "connect": _noun("connect.moldau_command", "run a Connect worker: data in and out by configuration"),
    "ksql-server": Command(
        "moldau.cli.ksql.server_start:moldau_ksql_server", "run a ksql server", "moldau.cli.ksql.server_start:parser"
    ),
    "ksql": Command(
        "moldau.cli.ksql.command:moldau_ksql",
        "the terminal of a ksql server: SQL over topics",
        "moldau.cli.ksql.command:moldau_parser",
    ),
    "demo": _noun("demo.command", "the whole platform at work, live: a database to files and a table"),
    "topics": _noun("topics.moldau_command", "list, create, describe, alter and delete topics"),
    "configs": _noun("configs.moldau_command", "show, set and unset configs of topics and brokers"),
    "produce": Command(
        "moldau.cli.console.moldau_command:produce",
        "send lines to a topic",
        "moldau.cli.console.moldau_command:produce_parser",
    ),
    "consume": Command(
        "moldau.cli.console.moldau_command:consume",
        "print the records of a topic",
        "moldau.cli.console.moldau_command:consume_parser",
    ),
    "groups": _noun("groups.moldau_command", "list, describe, reset and delete consumer groups"),
    "offsets": _noun("offsets.moldau_command", "first and next offsets of partitions"),
    "records": _noun("records.moldau_command", "delete records below an offset"),
    "log-dirs": _noun("log_dirs.moldau_command", "what each partition takes on disk"),
    "cluster": _noun("cluster.moldau_command", "the cluster's id, brokers and what they understand"),
    "streams": _noun("streams.moldau_command", "run topologies on Spark, describe and reset them"),
    "doctor": _noun("doctor", "is everything here that moldau and its pipelines need?"),
    "perf": _noun("perf.moldau_command", "measure producing, consuming and latency"),
    "dump-log": Command("moldau.cli.dump_log.command:main", "look into segment, index and snapshot files"),
    "storage": Command("moldau.cli.storage.command:main", "format and inspect data folders"),
    "completion": _noun("completion.moldau_command", "let the Tab key complete commands, options, topics and groups"),
}
IN_FRONT = {**CONNECTION_OPTIONS, "-h": False, "--help": False, "-V": False, "--version": False}


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        leading = list(takewhile(lambda word: word.option is not None, scan(words, IN_FRONT)))
    except UnknownOptionError as unknown:
        return _refuse(f"there is no option {unknown} before a command{did_you_mean(str(unknown), IN_FRONT)}")
    names, place = {word.option for word in leading}, len(leading)
    if names & {"-V", "--version"} or words[place:] == ["version"]:
        print(f"moldau {moldau.__version__}")
        return 0
    if not words[place:] or names & {"-h", "--help"} or words[place:] == ["help"]:
        print(_usage())
        return 0
    name, given, rest = words[place], words[:place], words[place + 1 :]
    if name == "help":
        name, rest = rest[0], [*rest[1:], "--help"]
    if name in COMMANDS:
        run: Callable[[Sequence[str]], int] = load(COMMANDS[name].target)
        return run([*given, *rest])
    if name in TOOLS:
        return tool_main(name)([*_as_kafka_writes(leading), *rest])
    return _refuse(f"there is no command {name!r}{did_you_mean(name, [*COMMANDS, *TOOLS])}")


def _as_kafka_writes(leading: Sequence[Scanned]) -> list[str]:
    """The options with full names, because Kafka's tools accept only those."""
    long_names = {"-b": "--bootstrap-server", "--config-file": "--command-config"}
    written = []
    for word in leading:
        if word.option is None or word.is_value:
            written.append(word.text)
            continue
        name = long_names.get(word.option, word.option)
        attached = word.text.partition("=")[2] if word.text.startswith("--") else word.text[2:]
        written.append(f"{name}={attached}" if attached else name)
    return written


def _refuse(text: str) -> int:
    print(f"moldau: {text}\n`moldau --help` lists what there is.", file=sys.stderr)
    return 2


def load(target: str) -> Callable[..., Any]:
    """Import `module:name` and return it."""
    module, _, function = target.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def _usage() -> str:
    commands = "\n".join(f"  {name:<10} {command.summary}" for name, command in COMMANDS.items())
    return (
        "usage: moldau <command> [options]\n\n"
        "An event-streaming platform in Python that speaks Kafka's protocol.\n\n"
        f"commands:\n{commands}\n\n"
        "`moldau <command> --help` explains each, with examples. -b HOST:PORT, before or\n"
        "after the command, or $MOLDAU_BOOTSTRAP_SERVERS says which cluster is meant.\n"
        "Kafka's own tools are installed beside it: kafka-topics, kafka-configs,\n"
        "kafka-console-producer, kafka-console-consumer and more.\n\n"
        "first steps:\n"
        "  moldau server                                  # in one terminal\n"
        "  moldau topics create orders --partitions 3     # in another\n"
        "  echo hello | moldau produce orders\n"
        "  moldau consume orders --from-beginning"
    )


if __name__ == "__main__":
    sys.exit(main())
