"""The commands of docs/ksql.md run as they are written, against a server of the test's own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.ksql_terminal import ksql_server

from moldau.testing import Broker

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "ksql.md").read_text()
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
MODULES = {
    "ksql": "moldau.cli.ksql.command",
    "ksql-datagen": "moldau.cli.ksql.datagen.command",
    "ksql-test-runner": "moldau.cli.ksql.test_runner.command",
}
CREATE = re.search(r"ksql> (CREATE STREAM readings.*?;)", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with Broker() as broker, ksql_server(broker.bootstrap_servers, tmp_path_factory.mktemp("ksql")) as (url, _):
        yield url, broker.bootstrap_servers


def run(command: str, addresses: tuple[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command; the addresses that it takes by default are those of the test's servers."""
    url, brokers = addresses
    program, *words = shlex.split(command)
    words += {"ksql": [url], "ksql-datagen": [f"bootstrap-server={brokers}"]}.get(program, [])
    return subprocess.run(
        [sys.executable, "-m", MODULES[program], *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "80", "HOME": str(folder)},
    )


def test_the_commands_of_a_session_run(addresses: tuple[str, str], tmp_path: Path) -> None:
    assert CREATE is not None
    made = run(f"ksql -e {shlex.quote(CREATE.group(1).replace(chr(10) + '>', ' '))}", addresses, tmp_path)
    assert made.returncode == 0, made.stderr

    for command in (one for one in COMMANDS if one.startswith(("ksql ", "ksql-datagen "))):
        ran = run(command, addresses, tmp_path)
        assert ran.returncode == 0, (command, ran.stderr)
        if "LIMIT 1;" in command and "SELECT" in command:
            assert ran.stdout.split("\n", 1)[1] in TEXT


def test_the_test_runner_passes_with_the_files_that_are_shown(addresses: tuple[str, str], tmp_path: Path) -> None:
    assert CREATE is not None
    inputs, outputs = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "input.json").write_text(inputs)
    (tmp_path / "output.json").write_text(json.dumps(json.loads(outputs)))
    statements = CREATE.group(1).replace("\n>", " ") + "CREATE STREAM hot AS SELECT * FROM readings WHERE degrees > 30;"
    (tmp_path / "statements.sql").write_text(statements)

    [command] = [one for one in COMMANDS if one.startswith("ksql-test-runner")]
    ran = run(command, addresses, tmp_path)

    assert (ran.returncode, ran.stdout) == (0, "\t >>> Test passed!\n"), ran.stderr
