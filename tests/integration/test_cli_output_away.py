"""Commands whose standard output cannot be written: one line says so, and the status is 1, as `head`'s is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from tests.integration.cli_commands import Terminal

from moldau.testing import Broker

COMMANDS = [
    "moldau consume full --from-beginning -n 3 -b localhost:9092",
    "moldau consume full --from-beginning -n 3 -o json -b localhost:9092",
    "moldau topics list -b localhost:9092",
    "kafka-console-consumer --topic full --from-beginning --max-messages 3 --bootstrap-server localhost:9092",
    "kafka-topics --list --bootstrap-server localhost:9092",
]


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    with Broker() as broker:
        terminal = Terminal(broker)
        terminal.output("moldau produce full -b localhost:9092", stdin="a\nb\nc\n")
        yield terminal


def shell(terminal: Terminal, line: str, redirection: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *terminal.command(line)]
    return subprocess.run(command, input="x\n", capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_closed_standard_output_is_told_in_one_line(terminal: Terminal, line: str) -> None:
    done = shell(terminal, line, ">&-")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "cannot write to standard output: Bad file descriptor" in done.stderr
    assert done.returncode == 1


def test_a_full_disk_is_told_in_one_line(terminal: Terminal) -> None:
    done = shell(terminal, "kafka-topics --list --bootstrap-server localhost:9092", "> /dev/full")
    assert done.stderr.splitlines() == ["Error: cannot write to standard output: No space left on device"]
    assert done.returncode == 1


def test_who_prints_nothing_needs_no_standard_output(terminal: Terminal) -> None:
    done = shell(terminal, "moldau produce other -b localhost:9092", ">&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert terminal.output("moldau consume other -f -n 1 -b localhost:9092") == "x\n"


def test_a_closed_standard_input_is_an_empty_one(terminal: Terminal) -> None:
    done = shell(terminal, "moldau produce nothing -b localhost:9092", "<&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_messages_go_nowhere_where_standard_error_is_closed(terminal: Terminal) -> None:
    done = shell(terminal, "moldau topics describe missing -b localhost:9092", "2>&-")
    assert (done.returncode, done.stdout) == (1, "")
