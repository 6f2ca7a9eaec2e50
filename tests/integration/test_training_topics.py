"""The topic part of the training notes: the commands as written, and the output compared.

Ids of topics differ from day to day and are left open; everything else is the notes' text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from tests.integration.cli_commands import Terminal
from tests.integration.server_process import wait_until
from tests.integration.zookeeper import ZooKeeper

from moldau.testing import Broker

NAME_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both.\n"
)
ZOOKEEPER_WARNING = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to.\n"
)


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    # The notes' server.properties: broker.id=0, one partition unless told otherwise; the cleaner looks more often.
    settings = {"node.id": "0", "num.partitions": "1", "log.cleaner.backoff.ms": "200"}
    with ZooKeeper() as point, Broker(settings | point.broker_settings) as broker:
        yield Terminal(broker, zookeeper_port=point.port)


def described(topic: str, partitions: int, configs: str = "") -> str:
    """What --describe prints, with the id blanked out."""
    head = f"Topic: {topic}\tTopicId: ID\tPartitionCount: {partitions}\tReplicationFactor: 1\tConfigs: {configs}\n"
    lines = [f"\tTopic: {topic}\tPartition: {number}\tLeader: 0\tReplicas: 0\tIsr: 0\n" for number in range(partitions)]
    return head + "".join(lines)


def without_id(output: str) -> str:
    found = re.sub(r"TopicId: [\w-]{22}\t", "TopicId: ID\t", output)
    assert found != output
    return found


def test_a_topic_is_created_listed_described_and_deleted(terminal: Terminal) -> None:
    create = "kafka-topics --zookeeper 0.0.0.0:2181 --topic {} --create --partitions 3 --replication-factor 1"
    assert terminal.output(create.format("first_topic")) == f"{NAME_WARNING}Created topic first_topic.\n"
    assert terminal.output("kafka-topics --zookeeper 0.0.0.0:2181 --list") == "first_topic\n"
    output = terminal.output("kafka-topics --zookeeper 0.0.0.0:2181 --topic first_topic --describe")
    assert without_id(output) == described("first_topic", 3)

    terminal.output(create.format("second_topic"))
    assert terminal.output("kafka-topics --zookeeper 0.0.0.0:2181 --topic second_topic --delete") == (
        "Topic second_topic is marked for deletion.\n"
        "Note: This will have no impact if delete.topic.enable is not set to true.\n"
    )
    assert terminal.output("kafka-topics --zookeeper 0.0.0.0:2181 --list") == "first_topic\n"


def test_lines_go_in_and_come_out_from_the_beginning(terminal: Terminal) -> None:
    terminal.output(
        "kafka-topics --zookeeper 0.0.0.0:2181 --topic lines --create --partitions 3 --replication-factor 1"
    )
    produce = "kafka-console-producer --broker-list 192.168.1.100:9092 --topic lines"
    assert terminal.output(produce, stdin="First Topic message 1\nFirst topic message 2\n") == ""
    assert terminal.output(f"{produce} --producer-property acks=all", stdin="some message that is acked\n") == ""
    consume = "kafka-console-consumer --bootstrap-server 192.168.1.100:9092 --topic lines --from-beginning"
    with terminal.start(consume) as consumer:
        assert sorted(consumer.lines(3)) == [
            "First Topic message 1",
            "First topic message 2",
            "some message that is acked",
        ]
        assert consumer.interrupt() == 0
        assert consumer.stderr[-1] == "Processed a total of 3 messages"


def test_a_running_consumer_sees_what_is_typed_after_it_started(terminal: Terminal) -> None:
    terminal.output("kafka-topics --zookeeper 0.0.0.0:2181 --topic live --create --partitions 3 --replication-factor 1")
    with terminal.start("kafka-console-consumer -bootstrap-server 192.168.1.100:9092 --topic live") as consumer:
        # Nothing tells when a consumer stands at the end of its partitions, so knock until it answers.
        def knock() -> bool:
            terminal.output("kafka-console-producer --broker-list 192.168.1.100:9092 --topic live", stdin="knock\n")
            return bool(consumer.stdout)

        wait_until(knock, what="a record at the consumer")
        before = len(consumer.stdout)
        terminal.output(
            "kafka-console-producer --broker-list 192.168.1.100:9092 --topic live",
            stdin="New message from first_topic\nNew message from first_topic 2\nNew message from first_topic 3\n",
        )
        typed = {f"New message from first_topic{number}" for number in ("", " 2", " 3")}
        # In any order: the lines may lie in three partitions.
        wait_until(lambda: typed <= set(consumer.stdout), what="all that was typed")
        assert len(consumer.stdout) >= before + 3
        assert consumer.interrupt() == 0


def test_a_producer_creates_its_topic_with_the_brokers_default(terminal: Terminal) -> None:
    produce = "kafka-console-producer --broker-list 192.168.1.100:9092 --topic {}"
    assert terminal.output(produce.format("new_topic"), stdin="First topic message 8\n") == ""
    output = terminal.output("kafka-topics --zookeeper 0.0.0.0:2181 --topic new_topic --describe")
    assert without_id(output) == described("new_topic", 1)
    with Broker({"node.id": "0", "num.partitions": "3"}) as broker:
        other = Terminal(broker)
        other.output(produce.format("new_topic2"), stdin="new topic 2\n")
        output = other.output("kafka-topics --zookeeper 0.0.0.0:2181 --topic new_topic2 --describe")
        assert without_id(output) == described("new_topic2", 3)


def test_keys_are_parsed_and_printed(terminal: Terminal) -> None:
    terminal.output("kafka-topics --zookeeper 0.0.0.0:2181 --topic keys --create --partitions 1 --replication-factor 1")
    terminal.output("kafka-console-producer --broker-list 127.0.0.1:9092 --topic keys", stdin="hi\n")
    terminal.output(
        "kafka-console-producer --broker-list 127.0.0.1:9092 --topic keys "
        "--property parse.key=true --property key.separator=,",
        stdin="a,b\nb,c\nc,d\n",
    )
    consume = (
        "kafka-console-consumer --bootstrap-server 127.0.0.1:9092 --topic keys --from-beginning "
        "--property print.key=true --property key.separator=, --max-messages 4"
    )
    assert terminal.output(consume) == "null,hi\na,b\nb,c\nc,d\n"


def test_brokers_with_blanks_after_the_commas(terminal: Terminal) -> None:
    terminal.output(
        "kafka-console-producer --broker-list 192.168.1.100:9092, 192.168.1.100:9092,  192.168.1.100:9092 --topic keys",
        stdin="All three brokers in single run\n",
    )
    consume = "kafka-console-consumer --bootstrap-server 192.168.1.100:9092 --topic keys --partition 0 --offset 4"
    assert terminal.output(f"{consume} --max-messages 1") == "All three brokers in single run\n"


def test_configs_are_added_and_deleted(terminal: Terminal) -> None:
    create = "kafka-topics --zookeeper 0.0.0.0:2181 --topic configured_topic --create --partitions 3"
    output = terminal.output(f"{create} --replication-factor 1")
    assert output == f"{NAME_WARNING}Created topic configured_topic.\n"
    describe = "kafka-topics --zookeeper 0.0.0.0:2181 --topic configured_topic --describe"
    assert without_id(terminal.output(describe)) == described("configured_topic", 3)

    configs = "kafka-configs --zookeeper 0.0.0.0:2181 --entity-type topics --entity-name configured_topic"
    nothing = f"{ZOOKEEPER_WARNING}Configs for topic 'configured_topic' are \n"
    done = f"{ZOOKEEPER_WARNING}Completed updating config for entity: topic 'configured_topic'.\n"
    assert terminal.output(f"{configs} --describe") == nothing
    assert terminal.output(f"{configs} --add-config min.insync.replicas=2 --alter") == done
    assert terminal.output(f"{configs} --describe") == (
        f"{ZOOKEEPER_WARNING}Configs for topic 'configured_topic' are min.insync.replicas=2\n"
    )
    assert without_id(terminal.output(describe)) == described("configured_topic", 3, "min.insync.replicas=2")
    assert terminal.output(f"{configs} --delete-config min.insync.replicas --alter") == done
    assert without_id(terminal.output(describe)) == described("configured_topic", 3)
    assert terminal.output(f"{configs} --describe") == nothing


def test_the_employee_salary_example(terminal: Terminal) -> None:
    """Compaction keeps the last salary of each employee, in the order they were written."""
    topic = "--topic employee-salary"
    # Step 1: a compacted topic.
    assert (
        terminal.output(
            f"kafka-topics --zookeeper 0.0.0.0:2181 {topic} --create --partitions 1 --replication-factor 1 "
            "--config cleanup.policy=compact --config min.cleanable.dirty.ratio=0.001 --config segment.ms=5000"
        )
        == "Created topic employee-salary.\n"
    )
    assert without_id(terminal.output(f"kafka-topics --zookeeper 0.0.0.0:2181 {topic} --describe")) == described(
        "employee-salary", 1, "cleanup.policy=compact,segment.ms=5000,min.cleanable.dirty.ratio=0.001"
    )

    # Step 2: a consumer and a producer, side by side.
    keyed = "--property {}.key=true --property key.separator=,"
    consume = (
        f"kafka-console-consumer --bootstrap-server 192.168.1.100:9092 {topic} --from-beginning {keyed.format('print')}"
    )
    produce = f"kafka-console-producer --broker-list 192.168.1.100:9092 {topic} {keyed.format('parse')}"
    with terminal.start(consume) as consumer, terminal.start(produce) as producer:
        producer.type("A,1000", "B,1000", "C,1000")
        assert consumer.lines(3) == ["A,1000", "B,1000", "C,1000"]

        # Step 3: new values for known keys. A person pauses; after segment.ms the next record opens a new segment.
        producer.type("A,2000", "B,2000")
        consumer.lines(5)
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 5.2, what="the age at which a segment is closed")
        producer.type("b,3000")
        six = ["A,1000", "B,1000", "C,1000", "A,2000", "B,2000", "b,3000"]
        assert consumer.lines(6) == six
        assert producer.wait() == 0

        # Step 4: the consumer is turned off and on again.
        assert consumer.interrupt() == 0
        assert consumer.stderr[-1] == "Processed a total of 6 messages"

    def compacted() -> bool:
        return terminal.output(f"{consume} --timeout-ms 500") == "C,1000\nA,2000\nB,2000\nb,3000\n"

    wait_until(compacted, what="compaction")


def test_tools_of_older_courses_find_the_broker_through_zookeepers_address(terminal: Terminal) -> None:
    zookeeper = "--zookeeper localhost:2181/kafka"
    terminal.output(f"kafka-topics {zookeeper} --create --topic older --partitions 1 --replication-factor 1")
    terminal.output("kafka-console-producer --broker-list localhost:9092 --topic older", stdin="one\ntwo\n")
    consume = f"kafka-console-consumer {zookeeper} --topic older --from-beginning --max-messages 2"
    assert terminal.output(f"{consume} --new-consumer --consumer-property group.id=older-group") == "one\ntwo\n"
    assert "older-group" in terminal.output(f"kafka-consumer-groups {zookeeper} --list").splitlines()
    check = f"kafka-run-class kafka.tools.ConsumerOffsetChecker {zookeeper} --group older-group"
    assert "older-group     older" in terminal.output(check)
    replay = f"kafka-replay-log-producer --broker-list localhost:9092 {zookeeper} --inputtopic older"
    assert "Replayed 2 messages" in terminal.output(f"{replay} --outputtopic older-copy")
    alter = f"kafka-topics.sh {zookeeper} --alter --topic older"
    assert "Adding partitions succeeded!" in terminal.output(f"{alter} --partitions 40")
    assert "Updated config for topic older." in terminal.output(f"{alter} --config retention.ms=5000")
    listed = terminal.output(f"kafka-run-class kafka.admin.ListTopicCommand {zookeeper} --topic older")
    assert "PartitionCount: 40" in listed


def test_zookeepers_shell_tells_brokers_and_topics(terminal: Terminal) -> None:
    shell = "zookeeper-shell localhost:2181"
    assert terminal.output(f"{shell} ls /brokers/ids") == "Connecting to " + terminal.command(shell)[-1] + "\n[0]\n"
    typed = terminal.output(shell, stdin="get /brokers/ids/0\n\nls /\nquit\nls /never\n").splitlines()
    assert '"endpoints":["PLAINTEXT://' in typed[1]
    assert typed[2:] == ["[brokers, cluster, controller]"]
    for command, answer in (("ls /nowhere", "Node does not exist: /nowhere"), ("delete /brokers", "nothing can be")):
        refused = terminal.run(f"{shell} {command}")
        assert refused.returncode == 1
        assert answer in refused.stderr
