"""The migrations of docs/ksql.md, as they are written, over a real server."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.ksql_terminal import ksql_server

from moldau.testing import Broker

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "ksql.md").read_text()
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_migrations_of_the_documentation(tmp_path: Path) -> None:
    commands = re.findall(r"^ksql-migrations .*", TEXT, re.MULTILINE)
    shown = {}
    with Broker() as broker, ksql_server(broker.bootstrap_servers, tmp_path) as (url, _):
        for command in commands:
            words = shlex.split(command.replace("http://localhost:8088", url))
            ran = subprocess.run(
                [sys.executable, "-m", "moldau.cli.ksql.migrations.command", *words[1:]],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert ran.returncode == 0, (command, ran.stderr)
            shown[words[-1]] = ran.stdout
            if "create" in words:
                file = tmp_path / "shop" / "migrations" / "V000001__add_orders.sql"
                file.write_text("CREATE TYPE address AS STRUCT<city STRING>;")

    assert "Successfully migrated" in shown["--all"]
    assert " 1       | add orders | MIGRATED | <none> " in shown["info"]
