"""The tools for groups, beside a broker: scenarios of a reset, deletion, both protocols, and what the topics hold."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupOffsets
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.cli_commands import Terminal
from tests.integration.server_process import wait_until

from moldau.testing import Broker

SERVER = "--bootstrap-server localhost:9092"
GROUPS = f"kafka-consumer-groups {SERVER}"
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"node.id": "0", "group.initial.rebalance.delay.ms": "0"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        topics = [NewTopic("orders", 3, 1), NewTopic("payments", 1, 1)]
        for future in admin.create_topics(topics).values():
            future.result(30)
        yield broker


@pytest.fixture(scope="module")
def terminal(broker: Broker) -> Terminal:
    """Five records in each partition of `orders`, a minute apart from one another, the last one an hour ago."""
    last_ms = int(time.time() * 1000) - 60 * MINUTE_MS
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(3):
        for i in range(5):
            stamp = last_ms - (4 - i) * MINUTE_MS
            producer.produce("orders", f"{number}.{i}", f"k{i}", number, timestamp=stamp, headers=[("h", b"x")])
    producer.produce("payments", "one")
    assert producer.flush(30) == 0
    return Terminal(broker)


def commit(broker: Broker, group: str, *offsets: tuple[str, int, int]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    positions = [TopicPartition(*offset) for offset in offsets]
    for future in admin.alter_consumer_group_offsets([GroupOffsets(group, positions)]).values():
        future.result(30)


def new_offsets(output: str) -> list[list[str]]:
    """The rows of a reset: group, topic, partition, offset."""
    lines = output.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("GROUP"))
    return [line.split() for line in lines[head + 1 :]]


def committed(terminal: Terminal, group: str) -> dict[str, str]:
    lines = terminal.output(f"{GROUPS} --describe --group {group}").splitlines()[2:]
    return {f"{line.split()[1]}-{line.split()[2]}": line.split()[3] for line in lines}


@pytest.mark.parametrize(
    ("scenario", "offsets"),
    [
        ("--to-earliest", "000"),
        ("--to-latest", "555"),
        ("--to-current", "123"),
        ("--to-offset 4", "444"),
        ("--shift-by 1", "234"),
        ("--shift-by -1", "012"),
        ("--by-duration PT62M30S", "222"),
        ("--by-duration P2D", "000"),
        ("--to-datetime 2020-01-01T00:00:00.000", "000"),
    ],
)
def test_every_scenario_says_where_the_group_would_stand(
    broker: Broker, terminal: Terminal, scenario: str, offsets: str
) -> None:
    commit(broker, "planned", ("orders", 0, 1), ("orders", 1, 2), ("orders", 2, 3))
    output = terminal.output(f"{GROUPS} --reset-offsets --group planned --topic orders {scenario} --dry-run")
    assert new_offsets(output) == [["planned", "orders", str(n), offset] for n, offset in enumerate(offsets)]


def test_a_dry_run_changes_nothing_and_execution_does(broker: Broker, terminal: Terminal) -> None:
    commit(broker, "executed", ("orders", 0, 1), ("orders", 1, 2))
    reset = f"{GROUPS} --reset-offsets --group executed --topic orders --to-offset 4"
    done = terminal.run(reset)
    assert done.stderr.startswith("WARN: No action will be performed as the --execute option is missing.")
    assert committed(terminal, "executed") == {"orders-0": "1", "orders-1": "2"}
    assert terminal.output(f"{reset} --execute") == done.stdout
    assert committed(terminal, "executed") == {"orders-0": "4", "orders-1": "4", "orders-2": "4"}


def test_a_moment_after_the_last_record_is_the_end(terminal: Terminal) -> None:
    output = terminal.output(
        f"{GROUPS} --reset-offsets --group nobody --topic orders:1 --to-datetime 2099-01-01T00:00:00.000Z --dry-run"
    )
    assert output.startswith(
        "\nWarn: Partition 1 from topic orders is empty. Falling back to latest known offset.\n\nGROUP"
    )
    assert new_offsets(output) == [["nobody", "orders", "1", "5"]]


def test_a_plan_is_exported_and_carried_out_from_its_file(broker: Broker, terminal: Terminal, tmp_path: Path) -> None:
    commit(broker, "exported", ("orders", 0, 1), ("orders", 2, 9), ("payments", 0, 1))
    plan = tmp_path / "plan.csv"
    plan.write_text(
        terminal.output(f"{GROUPS} --reset-offsets --group exported --all-topics --to-current --export --dry-run")
    )
    assert plan.read_text() == "orders,0,1\norders,2,9\npayments,0,1\n\n"
    commit(broker, "exported", ("orders", 0, 4))
    done = terminal.run(f"{GROUPS} --reset-offsets --group exported --from-file {plan} --execute")
    assert new_offsets(done.stdout) == [
        ["exported", "orders", "0", "1"],
        ["exported", "orders", "2", "5"],
        ["exported", "payments", "0", "1"],
    ]
    assert (
        "New offset (9) is higher than latest offset for topic partition orders-2. Value will be set to 5"
        in done.stderr
    )
    assert committed(terminal, "exported") == {"orders-0": "1", "orders-2": "5", "payments-0": "1"}


def test_several_groups_are_exported_with_their_names(broker: Broker, terminal: Terminal, tmp_path: Path) -> None:
    commit(broker, "pair-a", ("orders", 0, 1))
    commit(broker, "pair-b", ("payments", 0, 0))
    both = "--group pair-a --group pair-b"
    text = terminal.output(f"{GROUPS} --reset-offsets {both} --all-topics --to-latest --export --dry-run")
    assert text == "pair-a,orders,0,5\npair-b,payments,0,1\n\n"
    plan = tmp_path / "plan.csv"
    plan.write_text(text.replace("pair-b", "stranger"))
    output = terminal.output(f"{GROUPS} --reset-offsets {both} --from-file {plan} --dry-run")
    assert "\nError: No reset plan for group pair-b found.\n" in output
    assert new_offsets(output) == [["pair-a", "orders", "0", "5"]]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            "--topic nothing --to-earliest",
            "This server does not host this topic-partition. (there is no topic nothing)",
        ),
        ("--topic orders:7 --to-earliest", 'The partitions "orders-7" do not exist'),
        ("--topic orders --to-datetime yesterday", "yesterday is not a date and time"),
        ("--topic orders --by-duration 1h", "1h is not a duration"),
        ("--from-file /nonexistent.csv", "Unable to read file /nonexistent.csv"),
    ],
)
def test_a_reset_that_cannot_be_planned_fails_in_words(terminal: Terminal, options: str, complaint: str) -> None:
    done = terminal.run(f"{GROUPS} --reset-offsets --group planned --dry-run {options}")
    assert done.returncode == 1
    assert done.stdout.startswith(f"\nError: Executing consumer group command failed due to {complaint}")


def test_a_shift_needs_an_offset_to_shift(terminal: Terminal) -> None:
    done = terminal.run(f"{GROUPS} --reset-offsets --group nobody --topic payments --shift-by 1 --dry-run")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Cannot shift offset for partition payments-0 since there is no current committed offset\n"
    )


def test_groups_and_offsets_are_deleted(broker: Broker, terminal: Terminal) -> None:
    commit(broker, "old", ("orders", 0, 1), ("orders", 1, 1), ("payments", 0, 1))
    assert terminal.output(f"{GROUPS} --delete-offsets --group old --topic orders:0 --topic payments") == (
        "Request succeed for deleting offsets with topic orders:0, payments group old\n\n"
        "TOPIC           PARTITION  STATUS         \n"
        "orders          0          Successful     \n"
        "payments        0          Successful     \n"
    )
    assert committed(terminal, "old") == {"orders-1": "1"}
    assert terminal.output(f"{GROUPS} --delete --group old") == (
        "Deletion of requested consumer groups ('old') was successful.\n"
    )
    done = terminal.run(f"{GROUPS} --describe --group old")
    assert (done.stdout, done.returncode) == ("\nError: Consumer group 'old' does not exist.\n", 0)
    assert terminal.output(f"{GROUPS} --delete --group old") == (
        "\nError: Deletion of some consumer groups failed:\n* Group 'old' could not be deleted due to: "
        "org.apache.kafka.common.errors.GroupIdNotFoundException: The group id does not exist. (GROUP_ID_NOT_FOUND)\n"
    )


@pytest.fixture(params=["classic", "consumer"])
def member(request: pytest.FixtureRequest, broker: Broker, terminal: Terminal) -> Iterator[tuple[str, Consumer]]:
    """A group with one member, which has read and committed everything in `orders`."""
    group = f"live-{request.param}"
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": request.param,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    read = 0
    while read < 15:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        read += 1
    consumer.commit(asynchronous=False)
    yield group, consumer
    consumer.close()


def test_a_group_with_a_member_is_described_and_guarded(terminal: Terminal, member: tuple[str, Consumer]) -> None:
    group, _ = member
    protocol = group.partition("-")[2]
    lines = terminal.output(f"{GROUPS} --describe --group {group} --verbose").splitlines()
    assert lines[1].split()[:4] == ["GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH"]
    assert [line.split()[:7] for line in lines[2:]] == [[group, "orders", str(n), "0", "5", "5", "0"] for n in range(3)]
    assert {tuple(line.split()[8:]) for line in lines[2:]} == {("/127.0.0.1", "reader")}

    _, head, row = terminal.output(f"{GROUPS} --describe --group {group} --members --verbose").splitlines()
    cells = dict(zip(head.split(), row.split(), strict=True))
    assert (cells["CLIENT-ID"], cells["#PARTITIONS"], cells["CURRENT-ASSIGNMENT"]) == ("reader", "3", "orders:0,1,2")
    assert cells["TARGET-ASSIGNMENT"] == ("orders:0,1,2" if protocol == "consumer" else "-")
    assert (cells["CURRENT-EPOCH"] == "-") == (protocol == "classic")

    _, head, row = terminal.output(f"{GROUPS} --describe --group {group} --state").splitlines()
    assert re.split(r" {2,}", head) == ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    assert re.split(r" {2,}", row)[2:] == ["(0)", "range" if protocol == "classic" else "uniform", "Stable", "1"]

    listed = terminal.output(f"{GROUPS} --list --state stable --type {protocol}").splitlines()
    assert [line.split() for line in listed] == [["GROUP", "TYPE", "STATE"], [group, protocol.capitalize(), "Stable"]]
    assert f"{group} {protocol.capitalize()} consumer" in " ".join(
        terminal.output(f"kafka-groups {SERVER} --list --consumer").split()
    )

    refused = terminal.output(f"{GROUPS} --delete --group {group}")
    assert "GroupNotEmptyException: The group is not empty. (NON_EMPTY_GROUP)" in refused
    refused = terminal.output(f"{GROUPS} --delete-offsets --group {group} --topic orders:0")
    assert "Encountered some partition-level error" in refused
    assert "GroupSubscribedToTopicException" in refused
    refused = terminal.output(f"{GROUPS} --reset-offsets --group {group} --topic orders --to-earliest --execute")
    assert f"the group '{group}' is inactive, but the current state is Stable." in refused


def test_old_notes_check_offsets_by_a_class_name(broker: Broker, terminal: Terminal) -> None:
    commit(broker, "checked", ("orders", 0, 1), ("payments", 0, 1))
    check = "kafka-run-class kafka.tools.ConsumerOffsetChecker --zookeeper localhost:2181 --group checked"
    assert terminal.output(f"{check} --topic orders --broker-info").splitlines() == [
        f"{'Group':<15} {'Topic':<30} Pid {'Offset':<15} {'logSize':<15} {'Lag':<15} Owner",
        f"{'checked':<15} {'orders':<30} 0   {1:<15} {5:<15} {4:<15} none",
        "BROKER INFO",
        f"0 -> {broker.bootstrap_servers}",
    ]


def test_the_moldau_command_lists_describes_resets_and_deletes(broker: Broker, terminal: Terminal) -> None:
    commit(broker, "people", ("orders", 0, 1), ("payments", 0, 1))
    moldau = "moldau groups {} -b localhost:9092"
    assert ["people", "Classic", "Empty", "-"] in [
        line.split()[:4] for line in terminal.output(moldau.format("list")).splitlines()
    ]
    shown = json.loads(terminal.output(moldau.format("describe people -o json")))
    assert (shown["state"], [entry["lag"] for entry in shown["offsets"]]) == ("Empty", [4, 0])
    assert "Empty, 0 members, lag 4" in terminal.output(moldau.format("describe people"))
    assert "dry run" in terminal.output(moldau.format("reset people orders --to latest --dry-run"))
    output = terminal.output(moldau.format("reset people orders:0 --shift-by 2"))
    assert [line.split() for line in output.splitlines()] == [
        ["TOPIC", "PARTITION", "BEFORE", "AFTER"],
        ["orders", "0", "1", "3"],
    ]
    terminal.output(moldau.format("reset people --to earliest"))
    assert committed(terminal, "people") == {"orders-0": "0", "payments-0": "0"}
    assert terminal.output(moldau.format("delete people")) == "Deleted people\n"
    done = terminal.run(moldau.format("describe people"))
    assert done.returncode == 1
    assert done.stderr == "moldau: there is no group people; `moldau groups list` shows what there is\n"


def test_numbers_are_sent_and_read_verifiably(terminal: Terminal) -> None:
    options = "--max-messages 5 --value-prefix 7 --repeating-keys 2 --message-create-time 1000"
    output = terminal.output(f"kafka-verifiable-producer {SERVER} --topic numbers {options}")
    events = [json.loads(line) for line in output.splitlines()]
    assert [event["name"] for event in events] == [
        "startup_complete",
        *["producer_send_success"] * 5,
        "shutdown_complete",
        "tool_data",
    ]
    sent = [(event["key"], event["value"], event["offset"]) for event in events[1:6]]
    assert sent == [("0", "7.0", 0), ("1", "7.1", 1), ("0", "7.2", 2), ("1", "7.3", 3), ("0", "7.4", 4)]
    assert (events[-1]["sent"], events[-1]["acked"], events[-1]["target_throughput"]) == (5, 5, -1)

    read = f"kafka-verifiable-consumer {SERVER} --topic numbers --group-id verified --max-messages 5 --verbose"
    events = [json.loads(line) for line in terminal.output(read).splitlines()]
    names = [event["name"] for event in events]
    assert (names[0], names[1], names[-1]) == ("startup_complete", "partitions_assigned", "shutdown_complete")
    assert events[1]["partitions"] == [{"topic": "numbers", "partition": 0}]
    assert [event["value"] for event in events if event["name"] == "record_data"] == ["7.0", "7.1", "7.2", "7.3", "7.4"]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 5
    commits = [event for event in events if event["name"] == "offsets_committed"]
    assert commits[-1]["offsets"] == [{"topic": "numbers", "partition": 0, "offset": 5}]
    assert all(event["success"] for event in commits)
    assert committed(terminal, "verified") == {"numbers-0": "5"}


def test_a_verifiable_consumer_leaves_its_group_when_stopped(terminal: Terminal) -> None:
    read = f"kafka-verifiable-consumer {SERVER} --topic orders --group-id stopped --group-protocol consumer"
    with terminal.start(read) as consumer:
        wait_until(lambda: '"records_consumed"' in " ".join(consumer.stdout), what="records")
        assert consumer.interrupt() == 0
        names = [json.loads(line)["name"] for line in consumer.stdout]
    assert names[-2:] == ["partitions_revoked", "shutdown_complete"]
    assert len(terminal.output(f"{GROUPS} --describe --group stopped --members").splitlines()) == 0


def test_verifiable_tools_explain_themselves(terminal: Terminal) -> None:
    for tool in ("kafka-verifiable-producer", "kafka-verifiable-consumer"):
        assert "--max-messages" in terminal.output(tool)
        done = terminal.run(f"{tool} {SERVER}")
        assert done.returncode == 1
        assert done.stderr.startswith('Missing required argument "[topic]"')


def test_a_topic_is_replayed_into_another(terminal: Terminal) -> None:
    replay = "kafka-replay-log-producer --broker-list localhost:9092 --zookeeper localhost:2181 --inputtopic orders"
    assert terminal.output(f"{replay} --outputtopic copy") == "Replayed 15 messages from orders to copy\n"
    shown = terminal.output(
        f"kafka-console-consumer {SERVER} --topic copy --from-beginning --max-messages 15 "
        "--property print.key=true --property print.headers=true --property print.timestamp=true"
    )
    original = terminal.output(
        f"kafka-console-consumer {SERVER} --topic orders --from-beginning --max-messages 15 "
        "--property print.key=true --property print.headers=true --property print.timestamp=true"
    )
    assert sorted(shown.splitlines()) == sorted(original.splitlines())
    assert terminal.output(f"{replay} --outputtopic few --messages 3 --sync").startswith("Replayed 3 messages")
    done = terminal.run(f"{replay} --outputtopic orders")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "--inputtopic and --outputtopic must differ: a topic copied into itself has no end",
    )
    done = terminal.run(f"{replay.replace('inputtopic orders', 'inputtopic nothing')} --outputtopic copy")
    assert (done.returncode, done.stderr) == (1, "Error: there is no topic nothing\n")


def test_the_topic_of_offsets_can_be_read(broker: Broker, terminal: Terminal) -> None:
    commit(broker, "readable", ("orders", 0, 3))
    read = f"kafka-console-consumer {SERVER} --topic __consumer_offsets --from-beginning --timeout-ms 3000 --formatter"
    output = terminal.output(
        f"{read} kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter".replace("$", r"\$")
    )
    keys = [json.loads(line) for line in output.splitlines()]
    mine = [entry for entry in keys if entry["key"]["data"]["group"] == "readable"]
    assert mine[-1]["key"] == {"type": 1, "data": {"group": "readable", "topic": "orders", "partition": 0}}
    assert mine[-1]["value"]["data"]["offset"] == 3

    logs = sorted(broker.data.rglob("__consumer_offsets-*/*.log"))
    dumped = terminal.output(f"kafka-dump-log --files {','.join(map(str, logs))} --offsets-decoder")
    assert "| offset: " in dumped
    assert '"data":{"group":"readable","topic":"orders","partition":0}} payload: {"version":' in dumped
    assert "Error at" not in dumped
