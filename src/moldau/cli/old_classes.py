"""System and replication tools of Kafka 0.8 by their class names, and the tools that replace them.

Documents of that time start them with `kafka-run-class`. If a current tool does the same, `SUCCESSORS` translates the
old options and runs it; for the others, `REPLACED` says what to use. Start at `SUCCESSORS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from moldau.cli.cluster_options import ZOOKEEPER, open_admin
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import run
from moldau.cli.tools import tool_main
from moldau.client.connection import load_properties

__all__ = ["REPLACED", "SUCCESSORS"]

Words = list[str]
TOPIC = Option("topic", "The topic.", "topic", is_required=True)
OLD_ZOOKEEPER = Option(
    "zookeeper", ZOOKEEPER.help, "host:port", aliases=("zookeeper.connect", "zkconnect"), is_required=True
)
ASSIGNMENT = Option("replica-assignment-list", "Brokers of each partition: id0:id1,id2:id3.", "assignment")
PARTITION_FLAGS = ("under-replicated-partitions", "unavailable-partitions")


@dataclass(frozen=True, slots=True)
class Successor:
    """An old tool's options, and their translation for the tool that replaces it."""

    tool: str
    parser: Parser
    words: Callable[[Parsed], Words]

    def main(self, argv: Sequence[str]) -> int:
        return run(self.parser, lambda parsed: tool_main(self.tool)(self.words(parsed)), argv)


def _given_options(parsed: Parsed, **renamed: str) -> Words:
    """The given options under their new names: `replica="replication-factor"`."""
    words = []
    for old, new in renamed.items():
        name = old.replace("_", "-")
        for value in parsed.values(name):
            words += [f"--{new}", str(value)]
    return words


def _create_topic(parsed: Parsed) -> Words:
    if parsed.has("replica-assignment-list"):
        return [
            "--create",
            *_given_options(parsed, zookeeper="zookeeper", topic="topic", replica_assignment_list="replica-assignment"),
        ]
    counts = ["--partitions", str(parsed.value("partition")), "--replication-factor", str(parsed.value("replica"))]
    return ["--create", *_given_options(parsed, zookeeper="zookeeper", topic="topic"), *counts]


def _list_topic(parsed: Parsed) -> Words:
    flags = [f"--{flag}" for flag in PARTITION_FLAGS if parsed.has(flag)]
    return ["--describe", *_given_options(parsed, zookeeper="zookeeper", topic="topic"), *flags]


def _add_partitions(parsed: Parsed) -> Words:
    """Translate the number of partitions to add into the new total, which the current tool takes."""
    topic = parsed.value("topic")
    described = open_admin(parsed).describe_topics([topic])
    total = len(described[0].partitions) + parsed.value("partition")
    assignment = _given_options(parsed, replica_assignment_list="replica-assignment")
    return [
        "--alter",
        *_given_options(parsed, zookeeper="zookeeper", topic="topic"),
        "--partitions",
        str(total),
        *assignment,
    ]


def _simple_consumer(parsed: Parsed) -> Words:
    offset = {-1: "latest", -2: "earliest"}.get(parsed.value("offset"), str(parsed.value("offset")))
    words = ["--partition", str(parsed.value("partition")), "--offset", offset]
    if parsed.value("max-messages") < 2**31 - 1:
        words += ["--max-messages", str(parsed.value("max-messages"))]
    if parsed.has("no-wait-at-logend"):
        words += ["--timeout-ms", str(parsed.value("max-wait-ms"))]
    if parsed.has("print-offsets"):
        words += ["--property", "print.offset=true"]
    if parsed.has("skip-message-on-error"):
        words.append("--skip-message-on-error")
    kept = {"broker_list": "bootstrap-server", "topic": "topic", "formatter": "formatter", "property": "property"}
    return [*_given_options(parsed, **kept), *words]


def _update_offsets(parsed: Parsed) -> Words:
    """Translate `earliest|latest consumer.properties topic`: the group and the cluster are in the file."""
    if len(parsed.words) != 3 or parsed.words[0] not in ("earliest", "latest"):
        raise UsageError("USAGE: kafka.tools.UpdateOffsetsInZK [earliest | latest] consumer.properties topic")
    where, file, topic = parsed.words
    properties = load_properties(file)
    group = properties.get("group.id")
    if not group:
        raise UsageError(f"{file}: group.id is missing")
    if "bootstrap.servers" in properties:
        cluster = ["--bootstrap-server", properties["bootstrap.servers"]]
    else:
        cluster = ["--zookeeper", properties.get("zookeeper.connect", "localhost:2181")]
    return [*cluster, "--group", group, "--topic", topic, "--reset-offsets", f"--to-{where}", "--execute"]


SUCCESSORS: Mapping[str, Successor] = {
    "kafka.admin.CheckReassignmentStatus": Successor(
        "kafka-reassign-partitions",
        Parser(
            "Say how far a reassignment is.",
            [
                OLD_ZOOKEEPER,
                Option(
                    "path-to-json-file",
                    "The file with the moves.",
                    "file",
                    aliases=("reassignment-json-file",),
                    is_required=True,
                ),
            ],
        ),
        lambda parsed: [
            "--verify",
            *_given_options(parsed, zookeeper="zookeeper", path_to_json_file="reassignment-json-file"),
        ],
    ),
    "kafka.admin.CreateTopicCommand": Successor(
        "kafka-topics",
        Parser(
            "Create a topic.",
            [
                OLD_ZOOKEEPER,
                TOPIC,
                Option("partition", "How many partitions.", "number", int, default=1),
                Option("replica", "How many replicas of each.", "number", int, default=1),
                ASSIGNMENT,
            ],
        ),
        _create_topic,
    ),
    "kafka.admin.ListTopicCommand": Successor(
        "kafka-topics",
        Parser(
            "List topics with their partitions.",
            [
                OLD_ZOOKEEPER,
                Option("topic", "Only this one.", "topic"),
                *(Option(flag, "Only such partitions.") for flag in PARTITION_FLAGS),
            ],
        ),
        _list_topic,
    ),
    "kafka.admin.AddPartitionsCommand": Successor(
        "kafka-topics",
        Parser(
            "Add partitions to a topic.",
            [OLD_ZOOKEEPER, TOPIC, Option("partition", "How many more.", "number", int, is_required=True), ASSIGNMENT],
        ),
        _add_partitions,
    ),
    "kafka.admin.DeleteTopicCommand": Successor(
        "kafka-topics",
        Parser("Delete a topic.", [OLD_ZOOKEEPER, TOPIC]),
        lambda parsed: ["--delete", *_given_options(parsed, zookeeper="zookeeper", topic="topic")],
    ),
    "kafka.admin.ShutdownBroker": Successor(
        "kafka-server-stop",
        Parser(
            "Stop a broker of this machine in good order.",
            [
                Option("zookeeper", "Accepted for compatibility.", "host:port"),
                Option("broker", "The broker's id.", "id", int, is_required=True),
                Option("num.retries", "Accepted for compatibility.", "number", int, is_hidden=True),
                Option("retry.interval.ms", "Accepted for compatibility.", "ms", int, is_hidden=True),
            ],
        ),
        lambda parsed: ["--node-id", str(parsed.value("broker"))],
    ),
    "kafka.tools.SimpleConsumerShell": Successor(
        "kafka-console-consumer",
        Parser(
            "Print the records of one partition.",
            [
                Option("broker-list", "The brokers.", "host:port,...", is_required=True),
                TOPIC,
                Option("partition", "The partition.", "number", int, default=0),
                Option("offset", "Where to begin; -2 is the first record, -1 the next one.", "offset", int, default=-2),
                Option("max-messages", "How many to print.", "number", int, default=2**31 - 1),
                Option("max-wait-ms", "How long to wait for more.", "ms", int, default=1000),
                Option("no-wait-at-logend", "End when there are no more."),
                Option("print-offsets", "Print the offset of each record."),
                Option("skip-message-on-error", "Pass over what cannot be formatted."),
                Option("formatter", "The formatter's class.", "class"),
                Option("property", "A property of the formatter.", "key=value"),
                *(
                    Option(name, "Accepted for compatibility.", "value", is_hidden=True)
                    for name in ("clientId", "fetchsize", "replica")
                ),
            ],
        ),
        _simple_consumer,
    ),
    "kafka.tools.UpdateOffsetsInZK": Successor(
        "kafka-consumer-groups",
        Parser("Move a group's offsets to one end: [earliest | latest] consumer.properties topic", []),
        _update_offsets,
    ),
    "kafka.tools.VerifyConsumerRebalance": Successor(
        "kafka-consumer-groups",
        Parser(
            "Show who reads which partitions of a group.",
            [OLD_ZOOKEEPER, Option("group", "The group.", "group", is_required=True)],
        ),
        lambda parsed: [
            *_given_options(parsed, zookeeper="zookeeper", group="group"),
            "--describe",
            "--members",
            "--verbose",
        ],
    ),
}

REPLACED: Mapping[str, str] = {
    "kafka.admin.AclCommand": "everybody may do everything so far; ACLs come with security",
    "kafka.tools.ExportZkOffsets": (
        "offsets are kept in the topic __consumer_offsets. Write a group's to a file with `kafka-consumer-groups "
        "--bootstrap-server localhost:9092 --group <group> --all-topics --reset-offsets --to-current --export`"
    ),
    "kafka.tools.ImportZkOffsets": (
        "offsets are kept in the topic __consumer_offsets. Read a group's from a file with `kafka-consumer-groups "
        "--bootstrap-server localhost:9092 --group <group> --reset-offsets --from-file <file> --execute`"
    ),
    "kafka.tools.JmxTool": (
        "metrics are served over HTTP, under the names of JMX: start the broker with JMX_PORT=9404 (or "
        "metrics.http.port=9404) and ask `curl 'localhost:9404/jmx?object-name=kafka.server:*'`"
    ),
    "kafka.tools.KafkaMigrationTool": (
        "it moved records from Kafka 0.7 to 0.8, and clusters that old are not read any more"
    ),
    "kafka.tools.MirrorMaker": (
        "mirroring between clusters is not built yet. Lines of text go from one to another with "
        "`kafka-console-consumer --bootstrap-server <one> --topic <topic> --from-beginning | "
        "kafka-console-producer --bootstrap-server <other> --topic <topic>`"
    ),
    "kafka.tools.StateChangeLogMerger": (
        "there are no state-change logs to merge: leaders and replicas change by records of the metadata log, which "
        "`kafka-dump-log --cluster-metadata-decoder --files <log.dirs>/__cluster_metadata-0/<segment>.log` prints"
    ),
    "org.apache.zookeeper.ZooKeeperMain": "there is no ZooKeeper; `zookeeper-shell` answers `ls` and `get`",
}
"""What to use instead, as the end of a sentence that names the class."""
