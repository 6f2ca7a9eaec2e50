"""What kafka-console-consumer's options amount to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.cli.console.consumer_options import PARSER, Plan
from moldau.cli.options import UsageError
from moldau.client.following import BEGINNING, END

SERVER = "--bootstrap-server localhost:9092"


def plan(line: str) -> Plan:
    return Plan.of(PARSER.parse(f"{SERVER} {line}".split()))


def test_without_a_group_nothing_is_committed_and_the_id_is_random() -> None:
    found = plan("--topic t")
    assert found.group is None
    assert re.fullmatch(r"console-consumer-\d{1,5}", found.properties["group.id"])
    assert found.properties["enable.auto.commit"] == "false"
    assert found.properties["client.id"] == f"consumer-{found.properties['group.id']}-1"
    assert found.start == END


def test_with_a_group_offsets_are_committed() -> None:
    found = plan("--topic t --group g --from-beginning")
    assert found.group == "g"
    assert found.properties["enable.auto.commit"] == "true"
    assert found.properties["auto.offset.reset"] == "earliest"


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("--topic t --from-beginning", BEGINNING),
        ("--topic t --partition 0", END),
        ("--topic t --partition 0 --offset 7", 7),
        ("--topic t --partition 0 --offset earliest", BEGINNING),
        ("--topic t --partition 0 --offset latest", END),
        ("--topic t --consumer-property auto.offset.reset=earliest", BEGINNING),
    ],
)
def test_where_reading_begins(line: str, start: int) -> None:
    assert plan(line).start == start


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "Exactly one of --include/--topic is required."),
        ("--topic t --include x", "Exactly one of"),
        ("--topic t --offset 5", "The partition is required when offset is specified."),
        ("--include t --partition 5", "The topic is required when partition is specified."),
        ("--topic t --partition 0 --offset -5", "The provided offset value '-5' is incorrect"),
        ("--topic t --partition 0 --group g", "Options group and partition cannot be specified together."),
        ("--topic t --partition 0 --offset 1 --from-beginning", "cannot be specified together"),
        ("--topic t --from-beginning --consumer-property auto.offset.reset=latest", "Can't simultaneously specify"),
        ("--topic t --group a --consumer-property group.id=b", "Detected group ids: 'a', 'b'"),
        ("--topic t --property nothing", "Invalid command line properties"),
    ],
)
def test_contradictions_are_refused_in_kafkas_words(line: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        plan(line)


def test_patterns_include_and_exclude() -> None:
    included = plan("--whitelist a.*,b").topics
    assert isinstance(included, re.Pattern)
    assert [name for name in ("a1", "b", "bb") if included.fullmatch(name)] == ["a1", "b"]
    excluded = plan("--blacklist a.*").topics
    assert isinstance(excluded, re.Pattern)
    assert [name for name in ("a1", "b") if excluded.fullmatch(name)] == ["b"]


def test_a_server_is_required() -> None:
    with pytest.raises(UsageError, match="bootstrap-server"):
        Plan.of(PARSER.parse(["--topic", "t"]))


def test_old_options_are_taken_and_mean_nothing() -> None:
    assert plan("--topic t --new-consumer --delete-consumer-offsets").topics == ["t"]


def test_a_file_is_beaten_by_a_property(tmp_path: Path) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text("fetch.min.bytes=5\nisolation.level=read_committed\n")
    found = plan(f"--topic t --consumer.config {file} --consumer-property fetch.min.bytes=7")
    assert found.properties["fetch.min.bytes"] == "7"
    assert found.properties["isolation.level"] == "read_committed"
    again = plan(f"--topic t --consumer.config {file} --isolation-level read_uncommitted")
    assert again.properties["isolation.level"] == "read_uncommitted"
