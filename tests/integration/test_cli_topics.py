"""kafka-topics beside a broker, in today's form."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.integration.cli_commands import Terminal

from moldau.testing import Broker

TOPICS = "kafka-topics --bootstrap-server localhost:9092"


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with Broker({"node.id": "0"}) as broker:
        yield Terminal(broker)


def test_creating_twice_fails_unless_that_is_fine(terminal: Terminal) -> None:
    assert terminal.output(f"{TOPICS} --create --topic twice") == "Created topic twice.\n"
    again = terminal.run(f"{TOPICS} --create --topic twice")
    assert again.returncode == 1
    assert again.stdout == "Error while executing topic command : Topic 'twice' already exists.\n"
    assert "TopicExistsException" in again.stderr
    assert terminal.output(f"{TOPICS} --create --topic twice --if-not-exists") == ""


def test_the_name_with_sh_is_the_same_command(terminal: Terminal) -> None:
    terminal.output(f"{TOPICS} --create --topic suffix")
    assert "suffix\n" in terminal.output("kafka-topics.sh --bootstrap-server localhost:9092 --list")


def test_listing_and_describing_take_patterns(terminal: Terminal) -> None:
    for name in ("pattern-a", "pattern-b"):
        terminal.output(f"{TOPICS} --create --topic {name}")
    assert terminal.output(f"{TOPICS} --list --topic 'pattern-.*'") == "pattern-a\npattern-b\n"
    described = terminal.output(f"{TOPICS} --describe --topic pattern-a,pattern-b")
    assert re.findall(r"^Topic: (\S+)", described, re.M) == ["pattern-a", "pattern-b"]
    topic_id = re.findall(r"TopicId: (\S+)", described)[0]
    assert terminal.output(f"{TOPICS} --describe --topic-id {topic_id}").startswith("Topic: pattern-a\t")


def test_partitions_grow_and_never_shrink(terminal: Terminal) -> None:
    terminal.output(f"{TOPICS} --create --topic growing --partitions 2")
    assert terminal.output(f"{TOPICS} --alter --topic growing --partitions 3") == ""
    same = terminal.run(f"{TOPICS} --alter --topic growing --partitions 3")
    assert (same.returncode, same.stdout) == (
        1,
        "Error while executing topic command : Topic already has 3 partition(s).\n",
    )
    fewer = terminal.run(f"{TOPICS} --alter --topic growing --partitions 2")
    assert fewer.stdout == (
        "Error while executing topic command : "
        "The topic growing currently has 3 partition(s); 2 would not be an increase.\n"
    )


def test_growing_and_configuring_in_the_old_form_says_so(terminal: Terminal) -> None:
    terminal.output(f"{TOPICS} --create --topic old-growing --partitions 1")
    assert terminal.output(
        "kafka-topics.sh --zookeeper localhost:2181 --alter --topic old-growing --partitions 40"
    ) == (
        "WARNING: If partitions are increased for a topic that has a key, "
        "the partition logic or ordering of the messages will be affected\n"
        "Adding partitions succeeded!\n"
    )
    altered = terminal.output(
        "kafka-topics --zookeeper localhost:2181 --alter --topic old-growing --config retention.ms=1000"
    )
    assert altered.count("WARNING:") == 1
    assert altered.endswith("Updated config for topic old-growing.\n")
    described = terminal.output(f"{TOPICS} --describe --topic old-growing --topics-with-overrides")
    assert described.endswith("PartitionCount: 40\tReplicationFactor: 1\tConfigs: retention.ms=1000\n")


def test_deleting_is_silent(terminal: Terminal) -> None:
    terminal.output(f"{TOPICS} --create --topic short-lived")
    assert terminal.output(f"{TOPICS} --delete --topic short-lived") == ""
    gone = terminal.run(f"{TOPICS} --delete --topic short-lived")
    assert gone.returncode == 1
    assert gone.stdout == "Error while executing topic command : Topic 'short-lived' does not exist as expected\n"
    assert terminal.output(f"{TOPICS} --delete --topic short-lived --if-exists") == ""


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--create --topic 'a b'", "Topic name is invalid"),
        ("--create --topic .", "Topic name is invalid"),
        ("--create --topic t --replication-factor 2", "eplication factor"),
        ("--create --topic t --partitions 0", "partitions"),
        ("--create --topic t --config nothing=1", "nothing"),
        ("--create --topic t --config segment.bytes=x", "segment.bytes"),
        ("--describe --topic nothing", "Topic 'nothing' does not exist as expected"),
    ],
)
def test_what_the_broker_refuses_is_an_error_of_one_line(terminal: Terminal, options: str, complaint: str) -> None:
    done = terminal.run(f"{TOPICS} {options}")
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("Error while executing topic command : ")
    assert complaint in last


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("", "Command must include exactly one action: --list, --describe, --create, --alter or --delete"),
        ("--list --describe", "Command must include exactly one action"),
        ("--create", 'Missing required argument "[topic]"'),
        ("--delete --topic t --partitions 3", 'Option "[partitions]" can\'t be used with option "[delete]"'),
        ("--alter --topic t --config a=b", "the kafka-configs CLI supports altering topic configs"),
    ],
)
def test_mistakes_in_options_are_explained_with_the_usage(terminal: Terminal, options: str, complaint: str) -> None:
    done = terminal.run(f"{TOPICS} {options}")
    assert done.returncode == 1
    assert complaint in done.stderr.splitlines()[0]
    assert "--bootstrap-server <host:port>" in done.stderr


def test_healthy_topics_have_nothing_to_show_to_filters(terminal: Terminal) -> None:
    terminal.output(f"{TOPICS} --create --topic healthy")
    for option in ("under-replicated-partitions", "unavailable-partitions", "under-min-isr-partitions"):
        assert terminal.output(f"{TOPICS} --describe --topic healthy --{option}") == ""
    at_minimum = terminal.output(f"{TOPICS} --describe --topic healthy --at-min-isr-partitions")
    assert at_minimum == "\tTopic: healthy\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\n"


def test_replicas_can_be_placed_by_hand(terminal: Terminal) -> None:
    terminal.output(f"{TOPICS} --create --topic placed --replica-assignment 0,0")
    assert "PartitionCount: 2" in terminal.output(f"{TOPICS} --describe --topic placed")
