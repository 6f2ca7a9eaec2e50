"""kafka-get-offsets: the offset of each partition at its end, its start, or a timestamp."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from moldau.cli.cluster_options import BROKERS, COMMAND_CONFIG, open_admin
from moldau.cli.offsets.selection import parse_time, partition_filter
from moldau.cli.options import Option, Parsed, Parser
from moldau.cli.tool import ToolError, run, say
from moldau.cli.topics.selection import INTERNAL_TOPICS
from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.core.errors import MoldauError
from moldau.core.ids import TopicPartition

__all__ = ["main", "offsets_at"]

PARSER = Parser(
    "Print topic:partition:offset for each partition.",
    [
        BROKERS,
        COMMAND_CONFIG,
        Option("topic", "A regular expression for topics. Without it all topics are meant.", "regex"),
        Option("partitions", "Only these partitions.", "0,1,..."),
        Option("topic-partitions", "Topics with partitions: t1:0,t2:1-4,t3. The upper end is exclusive.", "t:p,..."),
        Option(
            "time",
            "latest (-1), earliest (-2), max-timestamp (-3), earliest-local (-4), latest-tiered (-5), "
            "or milliseconds since 1970: then the first offset at or after that moment.",
            "time",
            str,
            "latest",
        ),
        Option("exclude-internal-topics", "Leave out the topics in which the cluster keeps its own state."),
        Option("offsets", "Accepted for compatibility.", "number", int, is_hidden=True),
        Option("max-wait-ms", "Accepted for compatibility.", "ms", int, is_hidden=True),
    ],
    epilog="Example: kafka-get-offsets --bootstrap-server localhost:9092 --topic orders --time earliest",
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _get_offsets, argv, report=_report)


def _get_offsets(parsed: Parsed) -> None:
    accepts = partition_filter(parsed.value("topic"), parsed.value("partitions"), parsed.value("topic-partitions"))
    timestamp = parse_time(parsed.value("time"))
    admin = open_admin(parsed)
    skipped = INTERNAL_TOPICS if parsed.has("exclude-internal-topics") else frozenset()
    partitions = [
        partition
        for topic, count in admin.partition_counts().items()
        if topic not in skipped
        for partition in (TopicPartition(topic, number) for number in range(count))
        if accepts(partition)
    ]
    if not partitions:
        raise ToolError("Could not match any topic-partitions with the specified filters")
    for partition, offset in sorted(offsets_at(admin, partitions, timestamp).items(), key=lambda item: str(item[0])):
        if isinstance(offset, ClientError):
            print(f"Skip getting offsets for topic-partition {partition} due to error: {offset}", file=sys.stderr)
        elif offset >= 0:
            say(f"{partition.topic}:{partition.partition}:{offset}")


def offsets_at(
    admin: Admin, partitions: Sequence[TopicPartition], timestamp: int
) -> Mapping[TopicPartition, int | ClientError]:
    """The offset or the error of each partition; librdkafka does not support timestamps below -3."""
    wanted = dict.fromkeys(partitions, timestamp)
    if timestamp >= -3:
        return admin.try_list_offsets(wanted)
    from moldau.client import wire_admin

    leaders: dict[int, dict[TopicPartition, int]] = {}
    for topic in admin.describe_topics(sorted({partition.topic for partition in partitions})):
        for described in topic.partitions:
            partition = TopicPartition(topic.name, described.partition)
            if partition in wanted and described.leader is not None:
                leaders.setdefault(described.leader, {})[partition] = timestamp
    found: dict[TopicPartition, int | ClientError] = {}
    for leader, part in leaders.items():
        with admin.wire(leader) as client:
            found |= wire_admin.list_offsets(client, part)
    return found


def _report(error: MoldauError) -> None:
    print(f"Error occurred: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
