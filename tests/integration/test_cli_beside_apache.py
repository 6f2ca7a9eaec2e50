"""Our tools and Apache Kafka's, asked the same of the same broker, print the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from tests.integration.cli_commands import Terminal
from tests.oracle.apache_kafka import needs_apache_kafka, run_tool

from moldau.testing import Broker

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    needs_apache_kafka()
    with Broker({"node.id": "0"}) as broker:
        terminal = Terminal(broker)
        topics = "kafka-topics --bootstrap-server localhost:9092 --create --topic"
        terminal.output(f"{topics} orders --partitions 3 --config retention.ms=5000 --config cleanup.policy=compact")
        terminal.output(f"{topics} plain --config segment.ms=7000 --config flush.ms=9 --config max.message.bytes=1000")
        produce = "kafka-console-producer --bootstrap-server localhost:9092 --topic orders"
        terminal.output(f"{produce} --property parse.key=true --property key.separator=:", stdin="a:1\nb:2\nc:3\n")
        yield broker


@pytest.mark.parametrize(
    ("tool", "class_name", "options"),
    [
        ("kafka-topics", "org.apache.kafka.tools.TopicCommand", "--list"),
        ("kafka-topics", "org.apache.kafka.tools.TopicCommand", "--describe --topic nothing"),
        ("kafka-topics", "org.apache.kafka.tools.TopicCommand", "--create --topic orders"),
        ("kafka-configs", "kafka.admin.ConfigCommand", "--describe --topic plain"),
        ("kafka-configs", "kafka.admin.ConfigCommand", "--describe --topic orders --all"),
        ("kafka-configs", "kafka.admin.ConfigCommand", "--describe --broker 0 --all"),
        ("kafka-configs", "kafka.admin.ConfigCommand", "--describe --topic nothing"),
        ("kafka-get-offsets", "org.apache.kafka.tools.GetOffsetShell", ""),
        ("kafka-get-offsets", "org.apache.kafka.tools.GetOffsetShell", "--time max-timestamp"),
        ("kafka-get-offsets", "org.apache.kafka.tools.GetOffsetShell", "--topic-partitions orders:1-,plain"),
        ("kafka-broker-api-versions", "org.apache.kafka.tools.BrokerApiVersionsCommand", ""),
        ("kafka-cluster", "org.apache.kafka.tools.ClusterTool", "cluster-id"),
    ],
)
def test_same_question_same_answer(broker: Broker, tool: str, class_name: str, options: str) -> None:
    words = shlex.split(options)
    # The cluster tool wants its action first.
    before, after = (words[:1], words[1:]) if tool == "kafka-cluster" else ([], words)
    arguments = [*before, "--bootstrap-server", broker.bootstrap_servers, *after]
    theirs = run_tool(class_name, arguments)
    ours = Terminal(broker).run(shlex.join([tool, *arguments]))
    assert ours.stdout == theirs.stdout
    assert ours.returncode == theirs.returncode


def test_describe_differs_only_by_the_columns_of_eligible_leaders(broker: Broker) -> None:
    """Apache Kafka 4 ends each partition's line with replicas that may lead; we do where the cluster keeps them."""
    arguments = ["--bootstrap-server", broker.bootstrap_servers, "--describe"]
    theirs = run_tool("org.apache.kafka.tools.TopicCommand", arguments).stdout
    ours = Terminal(broker).output(shlex.join(["kafka-topics", *arguments]))
    shortened = [line.partition("\tElr:")[0] for line in theirs.splitlines()]
    assert sorted(ours.splitlines()) == sorted(shortened)
