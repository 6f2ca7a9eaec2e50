"""The fixture that every test here has: one that leaves a Kafka client open fails, and says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import open_clients

REPOSITORY = Path(open_clients.__file__).parents[1]
TESTS = """
from confluent_kafka import Producer

KEPT = []

def test_that_keeps_one():
    KEPT.append(Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}))

def test_that_lets_go():
    Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads have names in /proc only")
def test_a_test_that_leaves_a_client_open_fails(tmp_path: Path) -> None:
    (tmp_path / "test_clients.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(
        "from tests import open_clients\n"
        "from tests.open_clients import no_client_is_left_open\n"
        "open_clients.ENDING_S = 0.0\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert "1 Kafka client(s) left open" in run.stdout
    assert "ERROR test_clients.py::test_that_keeps_one" in run.stdout
    assert "2 passed, 1 error" in run.stdout
