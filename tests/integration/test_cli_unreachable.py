"""What tools say when no broker answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.free_ports import free_port
from tests.integration.cli_commands import run_line


@pytest.fixture
def nowhere() -> str:
    """An address where nobody listens."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def impatient(tmp_path: Path) -> str:
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=1500\n")
    return str(file)


def test_an_admin_tool_warns_and_gives_up_after_its_time(nowhere: str, impatient: str) -> None:
    done = run_line(f"kafka-topics --bootstrap-server {nowhere} --command-config {impatient} --list")
    assert done.returncode == 1
    assert done.stdout.startswith("Error while executing topic command : Timed out waiting for a node assignment")
    assert "WARN [AdminClient clientId=adminclient-1]" in done.stderr
    assert "TimeoutException" in done.stderr


def test_so_does_one_that_only_asks_over_the_wire(nowhere: str, impatient: str) -> None:
    done = run_line(f"kafka-log-dirs --bootstrap-server {nowhere} --command-config {impatient} --describe")
    assert done.returncode == 1
    assert nowhere in done.stderr.splitlines()[-1]


def test_groups_are_given_up_after_the_tools_own_time(nowhere: str) -> None:
    done = run_line(f"kafka-consumer-groups --bootstrap-server {nowhere} --list --timeout 1000")
    assert done.returncode == 1
    assert done.stdout == (
        "\nError: Executing consumer group command failed due to "
        f"Timed out waiting for a node assignment: no broker answered at {nowhere}\n"
    )


def test_a_replay_without_a_broker_ends_in_words(nowhere: str, impatient: str) -> None:
    done = run_line(
        f"kafka-replay-log-producer --bootstrap-server {nowhere} --command-config {impatient} "
        "--inputtopic a --outputtopic b"
    )
    assert done.returncode == 1
    assert f"no broker answered at {nowhere}" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "tool",
    [
        "kafka-topics --list",
        "kafka-configs --describe --topic t",
        "kafka-console-consumer --topic t",
        "kafka-consumer-groups --list",
    ],
)
def test_a_zookeeper_that_is_not_there_gets_advice_at_once(nowhere: str, tool: str) -> None:
    done = run_line(f"{tool} --zookeeper {nowhere}")
    assert done.returncode == 1
    assert "--bootstrap-server localhost:9092" in done.stdout + done.stderr


def test_a_consumer_waits_until_its_time_is_over(nowhere: str) -> None:
    done = run_line(f"kafka-console-consumer --bootstrap-server {nowhere} --topic t --timeout-ms 500")
    assert done.returncode == 0
    assert "Connection refused" in done.stderr
    assert done.stderr.endswith("Processed a total of 0 messages\n")
