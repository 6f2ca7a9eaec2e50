"""kafka-configs beside a broker, in today's form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli_commands import Terminal

from moldau.testing import Broker

CONFIGS = "kafka-configs --bootstrap-server localhost:9092"


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with Broker({"node.id": "0"}) as broker:
        terminal = Terminal(broker)
        terminal.output("kafka-topics --bootstrap-server localhost:9092 --create --topic t")
        yield terminal


def test_a_topics_configs_come_with_their_synonyms(terminal: Terminal) -> None:
    alter = f"{CONFIGS} --alter --topic t"
    assert terminal.output(f"{alter} --add-config cleanup.policy=[compact,delete],retention.ms=5000") == (
        "Completed updating config for topic t.\n"
    )
    described = terminal.output(f"{CONFIGS} --describe --topic t").splitlines()
    assert described[0] == "Dynamic configs for topic t are:"
    assert described[1] == (
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}"
    )
    assert described[2].startswith(
        "  retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000"
    )
    assert len(described) == 3
    assert terminal.output(f"{alter} --delete-config cleanup.policy,retention.ms") == (
        "Completed updating config for topic t.\n"
    )
    assert terminal.output(f"{CONFIGS} --describe --topic t") == "Dynamic configs for topic t are:\n"


def test_all_shows_defaults_too(terminal: Terminal) -> None:
    described = terminal.output(f"{CONFIGS} --describe --topic t --all")
    assert described.startswith("All configs for topic t are:\n")
    assert "\n  retention.ms=604800000 sensitive=false synonyms={" in described


def test_a_broker_and_the_default_of_all_brokers(terminal: Terminal) -> None:
    assert terminal.output(f"{CONFIGS} --alter --broker-defaults --add-config log.cleaner.threads=2") == (
        "Completed updating default config for brokers in the cluster.\n"
    )
    assert terminal.output(f"{CONFIGS} --alter --broker 0 --add-config log.cleaner.threads=3") == (
        "Completed updating config for broker 0.\n"
    )
    synonyms = (
        "DYNAMIC_BROKER_CONFIG:log.cleaner.threads=3, DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=2, "
        "DEFAULT_CONFIG:log.cleaner.threads=1"
    )
    assert terminal.output(f"{CONFIGS} --describe --broker 0") == (
        f"Dynamic configs for broker 0 are:\n  log.cleaner.threads=3 sensitive=false synonyms={{{synonyms}}}\n"
    )
    assert terminal.output(f"{CONFIGS} --describe --entity-type brokers --entity-default") == (
        "Default configs for brokers in the cluster are:\n"
        "  log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=2}\n"
    )
    for target in ("--broker-defaults", "--broker 0"):
        terminal.output(f"{CONFIGS} --alter {target} --delete-config log.cleaner.threads")


def test_configs_from_a_file(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "configs.properties"
    file.write_text("max.message.bytes=2000\n")
    terminal.output(f"{CONFIGS} --alter --topic t --add-config-file {file}")
    assert "max.message.bytes=2000" in terminal.output(f"{CONFIGS} --describe --topic t")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--alter --topic t --add-config nothing=1", "Unknown topic config name: nothing"),
        ("--alter --topic t --add-config retention.ms=x", "retention.ms"),
        ("--alter --topic nothing --add-config retention.ms=1", "UnknownTopicOrPartitionException"),
    ],
)
def test_refusals_repeat_the_arguments(terminal: Terminal, options: str, complaint: str) -> None:
    done = terminal.run(f"{CONFIGS} {options}")
    assert done.returncode == 1
    assert done.stdout == ""
    first, *rest = done.stderr.splitlines()
    assert first.startswith("Error while executing config command with args '--bootstrap-server localhost:")
    assert complaint in "\n".join(rest)


def test_a_topic_that_does_not_exist_has_nothing_to_describe(terminal: Terminal) -> None:
    assert terminal.output(f"{CONFIGS} --describe --topic nothing") == (
        "The topic 'nothing' doesn't exist and doesn't have dynamic config.\n"
    )


def test_the_old_form_refuses_to_delete_what_is_not_there(terminal: Terminal) -> None:
    old = "kafka-configs --zookeeper localhost:2181 --entity-type topics --entity-name t --alter"
    done = terminal.run(f"{old} --delete-config flush.ms")
    assert done.returncode == 1
    assert done.stderr == "Invalid config(s): flush.ms\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--topic t", "Command must include exactly one action: --describe, --alter"),
        ("--alter --topic t", "At least one of --add-config"),
        ("--describe --entity-type cats", "Invalid entity type cats"),
    ],
)
def test_mistakes_in_options_are_explained(terminal: Terminal, options: str, complaint: str) -> None:
    done = terminal.run(f"{CONFIGS} {options}")
    assert done.returncode == 1
    assert complaint in done.stderr.splitlines()[0]
