"""kafka-consumer-groups and Apache Kafka's own, asked the same of the same broker, print the same.

Where the contract keeps the older layout (resets, deleted offsets), words are compared and not blanks.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupOffsets
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.cli_commands import Terminal
from tests.oracle.apache_kafka import needs_apache_kafka, run_tool

from moldau.testing import Broker

pytestmark = pytest.mark.java

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    needs_apache_kafka()
    with Broker({"node.id": "0", "group.initial.rebalance.delay.ms": "0"}) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(servers)
        for future in admin.create_topics([NewTopic("orders", 3, 1), NewTopic("payments", 1, 1)]).values():
            future.result(30)
        producer = Producer(servers)
        for i in range(26):
            producer.produce("orders", str(i), partition=i % 3)
        assert producer.flush(30) == 0
        idle = [TopicPartition("orders", 0, 5), TopicPartition("orders", 2, 7)]
        for future in admin.alter_consumer_group_offsets([GroupOffsets("idle", idle)]).values():
            future.result(30)
        members = [member(broker, "classic", "inst-1"), member(broker, "consumer", None)]
        yield broker
        for consumer in members:
            consumer.close()


def member(broker: Broker, protocol: str, instance: str | None) -> Consumer:
    """The only member of a group, which has read and committed everything."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"{protocol}-group",
            "group.protocol": protocol,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **({"group.instance.id": instance} if instance else {}),
        }
    )
    consumer.subscribe(["orders", "payments"])
    for _ in range(26):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
    consumer.commit(asynchronous=False)
    return consumer


def both(broker: Broker, options: str) -> tuple[str, str]:
    arguments = ["--bootstrap-server", broker.bootstrap_servers, *shlex.split(options)]
    theirs = run_tool(COMMAND, arguments)
    ours = Terminal(broker).run(shlex.join(["kafka-consumer-groups", *arguments]))
    assert ours.returncode == theirs.returncode
    return ours.stdout, theirs.stdout


@pytest.mark.parametrize(
    "options",
    [
        "--list",
        "--list --state --type",
        "--describe --all-groups",
        "--describe --group consumer-group --group classic-group --verbose",
        "--describe --group classic-group --group consumer-group --members",
        "--describe --group classic-group --group consumer-group --members --verbose",
        "--describe --all-groups --state --verbose",
        "--reset-offsets --group idle --group fresh --topic orders --to-latest --export --dry-run",
        "--validate-regex orders.*",
    ],
)
def test_same_question_same_answer(broker: Broker, options: str) -> None:
    ours, theirs = both(broker, options)
    if "--export" in options:
        ours, theirs = ("\n".join(sorted(text.splitlines())) for text in (ours, theirs))
    assert ours == theirs


@pytest.mark.parametrize(
    "options",
    [
        "--reset-offsets --group idle --topic orders --to-offset 6 --dry-run",
        "--reset-offsets --group idle --all-topics --shift-by -2 --dry-run",
        "--reset-offsets --group classic-group --topic orders --to-earliest --execute",
    ],
)
def test_resets_differ_only_in_the_width_of_columns(broker: Broker, options: str) -> None:
    ours, theirs = both(broker, options)
    assert ours.split() == theirs.split()


def test_offsets_are_formatted_the_same_except_that_lines_end(broker: Broker) -> None:
    options = "--topic __consumer_offsets --from-beginning --timeout-ms 5000 --formatter"
    formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    arguments = ["--bootstrap-server", broker.bootstrap_servers, *options.split(), formatter]
    theirs = run_tool(CONSOLE, arguments).stdout
    ours = Terminal(broker).output(shlex.join(["kafka-console-consumer", *arguments]))
    shown = {json.dumps(json.loads(line)) for line in ours.splitlines()}
    assert len(shown) >= 2 + 2 * 3
    assert {json.dumps(json.loads(line)) for line in theirs.replace('}{"key"', '}\n{"key"').splitlines()} == shown
