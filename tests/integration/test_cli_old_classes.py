"""Old class names that run a tool of today, against a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli_commands import Terminal

from moldau.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def terminal(broker: Broker) -> Terminal:
    return Terminal(broker)


def test_topics_are_created_grown_listed_and_deleted_by_their_old_commands(terminal: Terminal) -> None:
    old = "kafka-run-class kafka.admin.{}Command --zookeeper localhost:2181"
    create = f"{old.format('CreateTopic')} --replica 1 --partition 2 --topic old"
    assert terminal.output(create) == "Created topic old.\n"
    assert "Adding partitions succeeded!" in terminal.output(f"{old.format('AddPartitions')} --topic old --partition 3")
    assert "PartitionCount: 5" in terminal.output(f"{old.format('ListTopic')} --topic old")
    unknown = terminal.run(f"{old.format('AddPartitions')} --topic nothing --partition 3")
    assert unknown.returncode == 1
    assert "nothing" in unknown.stderr + unknown.stdout
    assert "marked for deletion" in terminal.output(f"{old.format('DeleteTopic')} --topic old")


def test_records_are_shown_and_offsets_moved_by_their_old_commands(
    broker: Broker, terminal: Terminal, tmp_path: Path
) -> None:
    terminal.output("kafka-topics --bootstrap-server localhost:9092 --create --topic lines")
    terminal.output("kafka-console-producer --broker-list localhost:9092 --topic lines", stdin="one\ntwo\n")
    shell = "kafka-run-class kafka.tools.SimpleConsumerShell --broker-list localhost:9092 --topic lines"
    assert terminal.output(f"{shell} --max-messages 2") == "one\ntwo\n"
    assert terminal.output(f"{shell} --offset 1 --print-offsets --no-wait-at-logend") == "Offset:1\ttwo\n"
    file = tmp_path / "consumer.properties"
    file.write_text(f"group.id=moved\nbootstrap.servers={broker.bootstrap_servers}\n")
    moved = terminal.output(f"kafka-run-class kafka.tools.UpdateOffsetsInZK latest {file} lines")
    assert "moved" in moved
