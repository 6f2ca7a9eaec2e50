"""Which servers kafka-server-stop means, and what becomes of them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from moldau.cli.server.stop import choose_servers, stop_all
from moldau.server.process.running import RunningServer

BROKER = RunningServer(1, 0, 1, ("broker",))
CONTROLLER = RunningServer(2, 0, 2, ("controller",))
BOTH = RunningServer(3, 0, 3, ("broker", "controller"))
ALL = [BROKER, CONTROLLER, BOTH]


def test_without_a_filter_all_are_meant() -> None:
    assert choose_servers(ALL, process_role=None, node_id=None) == ALL


def test_a_role_picks_those_that_have_it() -> None:
    assert choose_servers(ALL, process_role="controller", node_id=None) == [CONTROLLER, BOTH]


def test_a_node_id_wins_over_a_role() -> None:
    assert choose_servers(ALL, process_role="controller", node_id=1) == [BROKER]


def test_to_stop_nothing_is_a_failure_that_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert stop_all([], "schema registry") == 1
    assert capsys.readouterr().err == "No schema registry to stop\n"


def test_each_server_is_asked_to_end() -> None:
    waiting = [sys.executable, "-c", "import signal; signal.pause()"]
    with subprocess.Popen(waiting) as one, subprocess.Popen(waiting) as other:
        servers = [RunningServer(process.pid, 0, 0, ("broker",)) for process in (one, other)]
        assert stop_all(servers, "kafka server") == 0
        assert [one.wait(10), other.wait(10)] == [-signal.SIGTERM] * 2
