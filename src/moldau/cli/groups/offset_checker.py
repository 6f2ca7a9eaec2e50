"""ConsumerOffsetChecker of Kafka 0.8: a group's offsets and lag, in the old layout. Start at `main`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.cli.cluster_options import BOOTSTRAP_SERVER, COMMAND_CONFIG, ZOOKEEPER, open_admin
from moldau.cli.groups.describe import group_offsets
from moldau.cli.groups.tables import OffsetRow
from moldau.cli.options import Option, Parsed, Parser
from moldau.cli.tool import ToolError, run, say, warn_about_stray_words
from moldau.client.groups import Groups

__all__ = ["line", "main"]

LAYOUT = "{:<15} {:<30} {:<3} {:<15} {:<15} {:<15} {}"

PARSER = Parser(
    "Show the offsets a group has committed, and its lag.",
    [
        BOOTSTRAP_SERVER,
        COMMAND_CONFIG,
        ZOOKEEPER,
        Option("group", "The group.", "group", is_required=True),
        Option("topic", "Only these topics, with commas between.", "topic,topic,..."),
        Option("broker-info", "Also show the brokers."),
        Option("retry.backoff.ms", "Accepted for compatibility.", "ms", int, is_hidden=True),
        Option("socket.timeout.ms", "Accepted for compatibility.", "ms", int, is_hidden=True),
    ],
    epilog="Example: kafka-run-class kafka.tools.ConsumerOffsetChecker --zookeeper localhost:2181 --group billing",
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _check, argv)


def _check(parsed: Parsed) -> None:
    warn_about_stray_words(parsed, parsed.words_after("bootstrap-server"))
    admin = open_admin(parsed)
    groups = Groups(admin)
    group_id = parsed.value("group")
    group = groups.describe(group_id)
    if group is None:
        raise ToolError(f"Consumer group '{group_id}' does not exist.")
    topics = parsed.value("topic").split(",") if parsed.has("topic") else None
    rows = group_offsets(group, groups, admin)
    say(LAYOUT.format("Group", "Topic", "Pid", "Offset", "logSize", "Lag", "Owner"))
    for row in sorted(rows, key=lambda row: row.partition):
        if topics is None or row.partition.topic in topics:
            say(line(group_id, row))
    if parsed.has("broker-info"):
        say("BROKER INFO")
        for node in admin.describe_cluster().nodes:
            say(f"{node.id} -> {node.host}:{node.port}")


def line(group_id: str, row: OffsetRow) -> str:
    numbers = (row.committed.offset if row.committed is not None else None, row.end, row.lag)
    texts = ["unknown" if number is None else number for number in numbers]
    owner = row.member.member_id if row.member is not None else "none"
    return LAYOUT.format(group_id, row.partition.topic, row.partition.partition, *texts, owner)


if __name__ == "__main__":
    sys.exit(main())
