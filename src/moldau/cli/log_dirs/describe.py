"""kafka-log-dirs: the size of each partition in each log directory, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, open_admin
from moldau.cli.options import Option, Parsed, Parser
from moldau.cli.tool import ToolError, run, say
from moldau.client.admin import Admin
from moldau.client.errors import ClientError, java_exception_prefix
from moldau.client.wire_admin import LogDir, describe_log_dirs

__all__ = ["log_dirs_by_broker", "main"]

PARSER = Parser(
    "Show the log directories of brokers and what each partition takes there.",
    [
        BOOTSTRAP_SERVER,
        COMMAND_CONFIG,
        Option("describe", "Show the log directories."),
        Option("broker-list", "Only these brokers.", "0,1,..."),
        Option("topic-list", "Only these topics.", "topic,..."),
    ],
    epilog="Example: kafka-log-dirs --bootstrap-server localhost:9092 --describe --topic-list orders",
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _log_dirs, argv)


def _log_dirs(parsed: Parsed) -> None:
    parsed.require("bootstrap-server", "describe")
    admin = open_admin(parsed)
    wanted = _ids(parsed.value("broker-list"))
    topics = [name.strip() for name in parsed.value("topic-list").split(",")] if parsed.has("topic-list") else None
    existing = [node.id for node in admin.describe_cluster().nodes]
    if missing := [broker for broker in wanted or [] if broker not in existing]:
        raise ToolError(
            f"The given brokers do not exist from --broker-list: {_join_numbers(missing)}. "
            f"Current existent brokers: {_join_numbers(existing)}"
        )
    say("Querying brokers for log directories information")
    found = log_dirs_by_broker(admin, wanted or existing, topics)
    say(f"Received log directory information from brokers {_join_numbers(list(found))}")
    say(json.dumps(_document(found), separators=(",", ":")))


def log_dirs_by_broker(admin: Admin, brokers: Sequence[int], topics: Sequence[str] | None) -> dict[int, list[LogDir]]:
    found = {}
    for broker in brokers:
        with admin.wire(broker) as client:
            found[broker] = describe_log_dirs(client, topics)
    return found


def _document(found: Mapping[int, Sequence[LogDir]]) -> dict[str, Any]:
    return {
        "version": 1,
        "brokers": [
            {"broker": broker, "logDirs": [_log_dir(log_dir) for log_dir in log_dirs]}
            for broker, log_dirs in found.items()
        ],
    }


def _log_dir(log_dir: LogDir) -> dict[str, Any]:
    error = None
    if log_dir.error is not None:
        error = java_exception_prefix(ClientError("", log_dir.error)).removesuffix(": ")
    return {
        "logDir": log_dir.path,
        "error": error,
        "partitions": [
            {
                "partition": str(replica.partition),
                "size": replica.size,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for replica in log_dir.replicas
        ],
    }


def _ids(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        raise ToolError(f"--broker-list takes broker ids with commas between, not {text}") from None


def _join_numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


if __name__ == "__main__":
    sys.exit(main())
