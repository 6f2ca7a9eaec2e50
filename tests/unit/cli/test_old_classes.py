"""Tools of Kafka 0.8 by their class names: how their options are written today."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from moldau.cli.old_classes import REPLACED, SUCCESSORS
from moldau.cli.run_class import CLASSES
from moldau.cli.run_class import main as run_class
from moldau.cli.tools import TOOLS, tool_main

SYSTEM_TOOLS = (
    "kafka.tools.ConsumerOffsetChecker",
    "kafka.tools.DumpLogSegments",
    "kafka.tools.ExportZkOffsets",
    "kafka.tools.GetOffsetShell",
    "kafka.tools.ImportZkOffsets",
    "kafka.tools.JmxTool",
    "kafka.tools.KafkaMigrationTool",
    "kafka.tools.MirrorMaker",
    "kafka.tools.ReplayLogProducer",
    "kafka.tools.SimpleConsumerShell",
    "kafka.tools.StateChangeLogMerger",
    "kafka.tools.UpdateOffsetsInZK",
    "kafka.tools.VerifyConsumerRebalance",
)
REPLICATION_TOOLS = (
    "kafka.admin.ShutdownBroker",
    "kafka.admin.PreferredReplicaLeaderElectionCommand",
    "kafka.admin.ListTopicCommand",
    "kafka.admin.CreateTopicCommand",
    "kafka.admin.AddPartitionsCommand",
    "kafka.admin.ReassignPartitionsCommand",
)


@pytest.mark.parametrize("name", [*SYSTEM_TOOLS, *REPLICATION_TOOLS])
def test_every_tool_of_the_slides_is_known(name: str) -> None:
    assert name in CLASSES or name in SUCCESSORS or name in REPLACED


def test_a_class_has_one_fate_and_its_tool_exists() -> None:
    assert not (
        CLASSES.keys() & SUCCESSORS.keys() | SUCCESSORS.keys() & REPLACED.keys() | CLASSES.keys() & REPLACED.keys()
    )
    assert {one.tool for one in SUCCESSORS.values()} <= set(TOOLS)


@pytest.mark.parametrize(
    ("name", "old", "today"),
    [
        (
            "kafka.admin.CreateTopicCommand",
            "--zookeeper localhost:2181 --replica 1 --partition 3 --topic t",
            "--create --zookeeper localhost:2181 --topic t --partitions 3 --replication-factor 1",
        ),
        (
            "kafka.admin.CreateTopicCommand",
            "--zookeeper z:1 --topic t --replica-assignment-list 0,0",
            "--create --zookeeper z:1 --topic t --replica-assignment 0,0",
        ),
        ("kafka.admin.ListTopicCommand", "--zookeeper z:1", "--describe --zookeeper z:1"),
        (
            "kafka.admin.ListTopicCommand",
            "--zookeeper z:1 --topic t --unavailable-partitions",
            "--describe --zookeeper z:1 --topic t --unavailable-partitions",
        ),
        ("kafka.admin.DeleteTopicCommand", "--zookeeper z:1 --topic t", "--delete --zookeeper z:1 --topic t"),
        ("kafka.admin.ShutdownBroker", "--zookeeper z:1 --broker 0 --num.retries 3", "--node-id 0"),
        (
            "kafka.tools.SimpleConsumerShell",
            "--broker-list b:1 --topic t --max-messages 2 --print-offsets --no-wait-at-logend",
            "--bootstrap-server b:1 --topic t --partition 0 --offset earliest --max-messages 2 --timeout-ms 1000 "
            "--property print.offset=true",
        ),
        (
            "kafka.tools.SimpleConsumerShell",
            "--broker-list b:1 --topic t --partition 2 --offset -1 --clientId x",
            "--bootstrap-server b:1 --topic t --partition 2 --offset latest",
        ),
        (
            "kafka.tools.VerifyConsumerRebalance",
            "--zookeeper.connect z:1 --group g",
            "--zookeeper z:1 --group g --describe --members --verbose",
        ),
    ],
)
def test_old_options_are_written_as_todays(name: str, old: str, today: str) -> None:
    successor = SUCCESSORS[name]
    assert shlex.join(successor.words(successor.parser.parse(shlex.split(old)))) == today


def test_offsets_are_moved_for_the_group_of_the_file(tmp_path: Path) -> None:
    successor = SUCCESSORS["kafka.tools.UpdateOffsetsInZK"]
    file = tmp_path / "consumer.properties"
    file.write_text("zookeeper.connect=z:1\ngroup.id=g\n")
    words = successor.words(successor.parser.parse(["latest", str(file), "t"]))
    assert shlex.join(words) == "--zookeeper z:1 --group g --topic t --reset-offsets --to-latest --execute"


@pytest.mark.parametrize("words", [[], ["latest"], ["newest", "file", "t"], ["latest", "/no/such/file", "t"]])
def test_a_wrong_call_of_it_is_one_clear_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_class(["kafka.tools.UpdateOffsetsInZK", *words]) == 1
    assert "consumer.properties" in (error := capsys.readouterr().err) or "/no/such/file" in error


@pytest.mark.parametrize("name", ["kafka-acls"])
def test_commands_that_are_not_built_yet_say_so(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool_main(name)(["--zookeeper", "localhost:2181"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{name}: ")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("name", sorted(REPLACED))
def test_what_has_no_successor_says_what_replaced_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_class([name, "--zookeeper", "localhost:2181"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{name} is not here: ")
    assert len(error.splitlines()) == 1
