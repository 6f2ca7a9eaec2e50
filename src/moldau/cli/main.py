"""`moldau`: one command for people. It only finds the sub-command; each loads what it needs itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

import moldau
from moldau.cli.tools import TOOLS, tool_main

__all__ = ["COMMANDS", "main"]


class _Command(NamedTuple):
    target: str
    summary: str


COMMANDS = {
    "server": _Command("moldau.cli.server.start:moldau_server", "run a broker"),
    "stop": _Command("moldau.cli.server.stop:kafka_server_stop", "stop the brokers you started"),
    "registry": _Command("moldau.cli.registry.start:moldau_registry", "run a schema registry"),
    "demo": _Command("moldau.cli.demo.command:main", "records counted in windows on Spark, live"),
    "topics": _Command("moldau.cli.topics.people:main", "list, create, describe, alter and delete topics"),
    "configs": _Command("moldau.cli.configs.people:main", "show, set and unset configs of topics and brokers"),
    "produce": _Command("moldau.cli.console.people:produce", "send lines to a topic"),
    "consume": _Command("moldau.cli.console.people:consume", "print the records of a topic"),
    "groups": _Command("moldau.cli.groups.people:main", "list, describe, reset and delete consumer groups"),
    "offsets": _Command("moldau.cli.offsets.people:main", "first and next offsets of partitions"),
    "records": _Command("moldau.cli.records.people:main", "delete records below an offset"),
    "log-dirs": _Command("moldau.cli.log_dirs.people:main", "what each partition takes on disk"),
    "cluster": _Command("moldau.cli.cluster.people:main", "the cluster's id, brokers and what they understand"),
    "streams": _Command("moldau.cli.streams.people:main", "run topologies on Spark, describe and reset them"),
    "doctor": _Command("moldau.cli.doctor:main", "is everything here that moldau and its pipelines need?"),
    "perf": _Command("moldau.cli.perf.people:main", "measure producing, consuming and latency"),
    "dump-log": _Command("moldau.cli.dump_log.command:main", "look into segment, index and snapshot files"),
    "storage": _Command("moldau.cli.storage.command:main", "format and inspect data folders"),
}


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0
    if words[0] in ("-V", "--version", "version"):
        print(f"moldau {moldau.__version__}")
        return 0
    name, rest = words[0], words[1:]
    if name in COMMANDS:
        return _load(COMMANDS[name].target)(rest)
    if name in TOOLS:
        return tool_main(name)(rest)
    print(f"moldau: there is no command {name!r}; `moldau --help` lists them", file=sys.stderr)
    return 2


def _load(target: str) -> Callable[[Sequence[str]], int]:
    module, _, function = target.partition(":")
    found: Callable[[Sequence[str]], int] = getattr(import_module(module), function)
    return found


def _usage() -> str:
    commands = "\n".join(f"  {name:<10} {command.summary}" for name, command in COMMANDS.items())
    return (
        "usage: moldau <command> [options]\n\n"
        "An event-streaming platform in Python that speaks Kafka's protocol.\n\n"
        f"commands:\n{commands}\n\n"
        "`moldau <command> --help` explains each, with examples. Kafka's own tools are installed beside it:\n"
        "kafka-topics, kafka-console-producer, kafka-console-consumer, kafka-configs and more.\n\n"
        "first steps:\n"
        "  moldau server                                  # in one terminal\n"
        "  moldau topics create orders --partitions 3     # in another\n"
        "  echo hello | moldau produce orders\n"
        "  moldau consume orders --from-beginning"
    )


if __name__ == "__main__":
    sys.exit(main())
