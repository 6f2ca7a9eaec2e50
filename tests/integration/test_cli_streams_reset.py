"""kafka-streams-application-reset: offsets are set, internal topics go, a running application is left alone.

Apache Kafka's own tool, asked the same of the same broker, prints the same and leaves the same offsets.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupOffsets
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.cli_commands import Terminal
from tests.oracle.apache_kafka import needs_apache_kafka, run_tool

from moldau.client.admin import Admin
from moldau.client.groups import commit_for_good, is_reset
from moldau.core.ids import TopicPartition as Partition
from moldau.testing import Broker

RESETTER = "org.apache.kafka.tools.StreamsResetter"
FIRST_TIMESTAMP_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"node.id": "0", "group.initial.rebalance.delay.ms": "0"}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        created(broker, "orders", 3)
        created(broker, "payments", 1)
        for i in range(30):
            producer.produce("orders", str(i), partition=i % 3, timestamp=FIRST_TIMESTAMP_MS + i)
        producer.produce("payments", "1", timestamp=FIRST_TIMESTAMP_MS)
        assert producer.flush(30) == 0
        yield broker


def created(broker: Broker, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


_numbers = count()


def application(broker: Broker, *internal: str) -> str:
    """The id of an application that has stopped: it has offsets and internal topics."""
    name = f"app{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    positions = [TopicPartition("orders", 0, 5), TopicPartition("orders", 1, 5)]
    admin.alter_consumer_group_offsets([GroupOffsets(name, positions)])[name].result(30)
    for topic in internal:
        created(broker, f"{name}-{topic}")
    return name


def committed(broker: Broker, group: str) -> dict[tuple[str, int], int]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    found = admin.list_consumer_group_offsets([GroupOffsets(group)])[group].result(30)
    return {(at.topic, at.partition): at.offset for at in found.topic_partitions}


def topics(broker: Broker, prefix: str) -> set[str]:
    names = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=30).topics
    return {name for name in names if name.startswith(f"{prefix}-")}


def command(name: str, options: str) -> str:
    return f"kafka-streams-application-reset --bootstrap-server localhost:9092 --application-id {name} {options}"


def test_input_is_read_again_from_its_beginning_and_internal_topics_are_gone(broker: Broker) -> None:
    name = application(broker, "counts-changelog", "by-user-repartition", "progress", "results")

    done = Terminal(broker).run(command(name, "--input-topics orders"))

    assert done.returncode == 0, done.stderr
    assert committed(broker, name) == {("orders", partition): 0 for partition in range(3)}
    assert topics(broker, name) == {f"{name}-results"}
    assert f"delete the folder {name} in state.dir" in done.stderr


def test_offsets_are_known_as_those_of_a_reset_until_others_are_committed(broker: Broker) -> None:
    name = application(broker)
    admin = Admin(broker.bootstrap_servers)
    partitions = [Partition("orders", number) for number in range(3)]
    assert not is_reset(admin, name, partitions)
    assert not is_reset(admin, "nobody", partitions)
    Terminal(broker).output(command(name, "--input-topics orders --to-offset 4"))
    assert is_reset(admin, name, partitions)
    commit_for_good(admin, name, {Partition("orders", 1): 7})
    assert not is_reset(admin, name, partitions)


def test_a_dry_run_changes_nothing(broker: Broker) -> None:
    name = application(broker, "counts-changelog")
    before = committed(broker, name)

    shown = Terminal(broker).output(command(name, "--input-topics orders --to-latest --dry-run"))

    assert "Topic: orders Partition: 2 Offset: 10" in shown
    assert f"Deleting inferred internal topics [{name}-counts-changelog]" in shown
    assert committed(broker, name) == before
    assert topics(broker, name) == {f"{name}-counts-changelog"}


def test_a_running_application_is_left_alone_unless_forced(broker: Broker) -> None:
    name = application(broker)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": name, "group.instance.id": name, "client.id": "app"}
    )
    consumer.subscribe(["payments"])
    while not consumer.assignment():
        consumer.poll(0.1)
    before = committed(broker, name)
    # A static member does not leave when it closes, as after a crash.
    consumer.close()

    refused = Terminal(broker).run(command(name, "--input-topics orders"))
    assert refused.returncode == 1
    assert f"ERROR: Consumer group '{name}' is still active and has following members: app at" in refused.stderr
    assert committed(broker, name) == before

    forced = Terminal(broker).output(command(name, "--input-topics orders --force"))
    assert forced.startswith(f"Force deleting all active members in the group: {name}\n")
    assert committed(broker, name)["orders", 0] == 0


def test_a_plan_must_name_every_partition(broker: Broker, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("orders,0,1\norders,1,2\n")
    done = Terminal(broker).run(command(application(broker), f"--input-topics orders --from-file {plan}"))
    assert done.returncode == 1
    assert "has no offset for orders-2; name each partition in one line" in done.stderr


def test_two_scenarios_are_refused(broker: Broker) -> None:
    done = Terminal(broker).run(command("any", "--input-topics orders --to-latest --to-offset 3"))
    assert done.returncode == 1
    assert 'can\'t be used with option "[to-latest]"' in done.stderr


SCENARIOS = [
    "",
    "--input-topics orders",
    "--input-topics orders,payments --to-latest",
    "--input-topics orders --to-earliest",
    "--input-topics orders --to-offset 3",
    "--input-topics orders --to-offset 30",
    "--input-topics orders --to-offset 0",
    "--input-topics orders --shift-by -2",
    "--input-topics orders --shift-by 2",
    f"--input-topics orders --to-datetime {'2023-11-14T22:13:20.012'}",
    "--input-topics orders --by-duration P1D",
    "--input-topics orders --from-file PLAN",
    "--input-topics orders --intermediate-topics payments",
    "--input-topics orders,nowhere --intermediate-topics nothing",
    "--input-topics nowhere",
    "--input-topics orders --internal-topics APP-counts-changelog",
    "--internal-topics orders",
    "--input-topics orders --config-file CONFIG",
    "--input-topics orders --command-config CONFIG --shift-by 1",
]


@pytest.mark.java
@pytest.mark.parametrize("mode", ["--dry-run", ""])
@pytest.mark.parametrize("options", SCENARIOS)
def test_apache_kafkas_tool_says_and_does_the_same(broker: Broker, tmp_path: Path, options: str, mode: str) -> None:
    needs_apache_kafka()
    (tmp_path / "plan.csv").write_text("orders,0,1\norders,1,2\norders,2,300\n")
    (tmp_path / "client.properties").write_text("auto.offset.reset=earliest\n")
    options = options.replace("PLAN", str(tmp_path / "plan.csv")).replace("CONFIG", str(tmp_path / "client.properties"))
    theirs, ours = (application(broker, "counts-changelog", "by-user-repartition", "results") for _ in range(2))
    arguments = ["--bootstrap-server", broker.bootstrap_servers, "--application-id", theirs]

    java = run_tool(RESETTER, [*arguments, *shlex.split(options.replace("APP", theirs)), *mode.split()])
    python = Terminal(broker).run(command(ours, f"{options.replace('APP', ours)} {mode}"))

    assert python.returncode == java.returncode, python.stderr + java.stderr
    # Partitions of a topic, and topics to delete, are in no order that Java would promise.
    assert sorted_words(python.stdout.replace(ours, "APP")) == sorted_words(java.stdout.replace(theirs, "APP"))
    assert committed(broker, ours) == committed(broker, theirs)
    assert {name.removeprefix(ours) for name in topics(broker, ours)} == {
        name.removeprefix(theirs) for name in topics(broker, theirs)
    }


def sorted_words(text: str) -> list[list[str]]:
    return sorted(
        sorted(line.replace("[", "[ ").replace("]", " ]").replace(",", "").split()) for line in text.splitlines()
    )
