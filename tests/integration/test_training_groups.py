"""The group part of the training notes: the commands as written, and the output compared.

Three consumers share a topic, some are stopped, the lag grows, and offsets are moved back and forth. Ids of
members differ from day to day and are left open; everything else is the notes' text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer
from tests.integration.cli_commands import Terminal
from tests.integration.server_process import wait_until

from moldau.testing import Broker

GROUP = "consumer_group_1"
DESCRIBE = f"kafka-consumer-groups --bootstrap-server localhost:9092 --describe --group={GROUP}"
RESET = f"kafka-consumer-groups --bootstrap-server localhost:9092 --group {GROUP} --reset-offsets"
CONSUME = "kafka-console-consumer --bootstrap-server 192.168.1.100:9092 --topic first_topic"
NO_MEMBERS = f"\nConsumer group '{GROUP}' has no active members.\n"
COLUMNS = (
    "GROUP            TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
    "CONSUMER-ID     HOST            CLIENT-ID\n"
)
RESET_COLUMNS = "GROUP                          TOPIC                          PARTITION  NEW-OFFSET     \n"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"node.id": "0", "num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def terminal(broker: Broker) -> Terminal:
    terminal = Terminal(broker)
    terminal.output(
        "kafka-topics --zookeeper 0.0.0.0:2181 --topic first_topic --create --partitions 3 --replication-factor 1"
    )
    return terminal


def produce(broker: Broker, *counts: int, text: str) -> list[str]:
    """So many records to each partition, as in the notes, whose producer spread them as it liked."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    sent = [(number, f"{text} {number}.{i}") for number, count in enumerate(counts) for i in range(count)]
    for number, line in sent:
        producer.produce("first_topic", line, partition=number)
    assert producer.flush(30) == 0
    return sorted(line for _, line in sent)


def table(*rows: tuple[int, int, int]) -> str:
    """What --describe prints of a group without members: committed, end and lag of each partition."""
    lines = [
        f"{GROUP} first_topic     {number:<10} {committed:<15} {end:<15} {lag:<15} -               -               -\n"
        for number, (committed, end, lag) in enumerate(rows)
    ]
    return "\n" + COLUMNS + "".join(lines)


def reset_table(*offsets: int) -> str:
    lines = [f"{GROUP:<30} {'first_topic':<30} {number:<10} {offset:<15}\n" for number, offset in enumerate(offsets)]
    return "\n" + RESET_COLUMNS + "".join(lines)


def assert_idle(terminal: Terminal, *rows: tuple[int, int, int]) -> None:
    done = terminal.run(DESCRIBE)
    assert (done.stdout, done.stderr, done.returncode) == (table(*rows), NO_MEMBERS, 0)


def read(terminal: Terminal, command: str, count: int) -> list[str]:
    """Run a consumer until it has printed so many lines, and press Ctrl-C."""
    with terminal.start(command) as consumer:
        consumer.lines(count)
        assert consumer.interrupt() == 0
        assert consumer.stderr[-1] == f"Processed a total of {count} messages"
        return sorted(consumer.stdout)


def members(terminal: Terminal) -> list[list[str]]:
    """Id, host, client id and number of partitions of each member."""
    lines = terminal.output(f"{DESCRIBE} --members").splitlines()
    return [line.split()[1:] for line in lines[2:]]


def test_the_session_of_the_notes(broker: Broker, terminal: Terminal) -> None:
    three_consumers_share_the_partitions(broker, terminal)
    another_group_reads_everything_once(broker, terminal)
    lag_grows_while_nobody_reads(broker, terminal)
    offsets_go_back_to_the_beginning(terminal)
    offsets_are_shifted(terminal)


def three_consumers_share_the_partitions(broker: Broker, terminal: Terminal) -> None:
    """From the beginning: in an empty topic that is where a new group begins anyway, but nothing races."""
    with ExitStack() as stack:
        consumers = []
        for count in (1, 2, 3):
            consumers.append(stack.enter_context(terminal.start(f"{CONSUME} --group {GROUP} --from-beginning")))
            wait_until(lambda count=count: len(members(terminal)) == count, what=f"{count} members")  # type: ignore[misc]
        wait_until(lambda: [member[3] for member in members(terminal)] == ["1", "1", "1"], what="a partition each")
        for member_id, host, client_id, _ in members(terminal):
            assert re.fullmatch(r"consumer-consumer_group_1-1-[0-9a-f-]{36}", member_id)
            assert (host, client_id) == ("/127.0.0.1", "consumer-consumer_group_1-1")
        sent = produce(broker, 1, 1, 1, text="message")
        wait_until(lambda: all(len(consumer.stdout) == 1 for consumer in consumers), what="a record each")
        assert sorted(line for consumer in consumers for line in consumer.stdout) == sent
        for consumer in consumers:
            assert consumer.interrupt() == 0
            assert consumer.stderr[-1] == "Processed a total of 1 messages"


def another_group_reads_everything_once(broker: Broker, terminal: Terminal) -> None:
    sent = produce(broker, 4, 5, 4, text="hi")
    with_group = f"{CONSUME} --group consumer_group_2 --from-beginning"
    assert [line for line in read(terminal, with_group, 16) if line.startswith("hi")] == sent
    # The second run finds offsets and reads only what is new.
    new = produce(broker, 1, 1, 1, text="how are you")
    assert read(terminal, with_group, 3) == new
    listed = terminal.output("kafka-consumer-groups --bootstrap-server localhost:9092 --list")
    assert listed == "consumer_group_2\nconsumer_group_1\n"


def lag_grows_while_nobody_reads(broker: Broker, terminal: Terminal) -> None:
    assert_idle(terminal, (1, 6, 5), (1, 7, 6), (1, 6, 5))
    read(terminal, f"{CONSUME} --group {GROUP}", 16)
    assert_idle(terminal, (6, 6, 0), (7, 7, 0), (6, 6, 0))
    produce(broker, 1, 3, 3, text="offset log check")
    assert_idle(terminal, (6, 7, 1), (7, 10, 3), (6, 9, 3))
    with terminal.start(f"{CONSUME} --group {GROUP} --from-beginning") as consumer:
        consumer.lines(7)
        # Offsets are committed every five seconds while a consumer runs.
        wait_until(
            lambda: re.findall(r" (\d+) +consumer-", terminal.output(DESCRIBE)) == ["0", "0", "0"], what="no lag"
        )
        lines = terminal.output(DESCRIBE).splitlines()[2:]
        assert [line.split()[:6] for line in lines] == [
            [GROUP, "first_topic", "0", "7", "7", "0"],
            [GROUP, "first_topic", "1", "10", "10", "0"],
            [GROUP, "first_topic", "2", "9", "9", "0"],
        ]
        assert {tuple(line.split()[7:]) for line in lines} == {("/127.0.0.1", "consumer-consumer_group_1-1")}
        refused = terminal.output(f"{RESET} --to-earliest --execute --topic first_topic")
        assert refused == (
            "\nError: Assignments can only be reset if the group 'consumer_group_1' is inactive, "
            f"but the current state is Stable.\n\n{RESET_COLUMNS}"
        )
        assert consumer.interrupt() == 0
    assert_idle(terminal, (7, 7, 0), (10, 10, 0), (9, 9, 0))


def offsets_go_back_to_the_beginning(terminal: Terminal) -> None:
    done = terminal.run(f"{RESET} --to-earliest --execute --topic first_topic")
    assert (done.stdout, done.stderr, done.returncode) == (reset_table(0, 0, 0), "", 0)
    assert_idle(terminal, (0, 7, 7), (0, 10, 10), (0, 9, 9))
    read(terminal, f"{CONSUME} --group {GROUP}", 26)
    assert_idle(terminal, (7, 7, 0), (10, 10, 0), (9, 9, 0))


def offsets_are_shifted(terminal: Terminal) -> None:
    done = terminal.run(f"{RESET} --shift-by 2 --execute --topic first_topic")
    assert (done.stdout, done.returncode) == (reset_table(7, 10, 9), 0)
    warnings = [re.sub(r"^\[[\d-]{10} [\d:,]{12}\] ", "", line) for line in done.stderr.splitlines()]
    assert warnings == [
        f"WARN New offset ({wanted}) is higher than latest offset for topic partition first_topic-{number}. "
        f"Value will be set to {end} (kafka.admin.ConsumerGroupCommand$)"
        for number, wanted, end in ((0, 9, 7), (1, 12, 10), (2, 11, 9))
    ]
    assert_idle(terminal, (7, 7, 0), (10, 10, 0), (9, 9, 0))

    done = terminal.run(f"{RESET} --shift-by -2 --execute --topic first_topic")
    assert (done.stdout, done.stderr, done.returncode) == (reset_table(5, 8, 7), "", 0)
    assert_idle(terminal, (5, 7, 2), (8, 10, 2), (7, 9, 2))
