"""`moldau up` on the installed command: real processes, killed, taken over, restarted and stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.free_ports import free_port

from moldau.client.admin import Admin

PATIENCE_S = 120


class Platform:
    """A platform of broker, registry and REST proxy in a folder of its own, on free ports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in ("broker", "metrics", "registry", "rest")}
        self.words = [word for name, port in self.ports.items() for word in ("--port", f"{name}={port}")]

    def moldau(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "moldau", *words, "--data", str(self.folder)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False
        )

    def up(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.moldau("up", "-d", "registry", "rest", *self.words, *words)

    def rows(self) -> dict[str, dict[str, Any]]:
        output = self.moldau("status", "-o", "json").stdout
        return {row["service"]: row for row in json.loads(output)}

    def pid_of(self, service: str) -> int:
        return int(self.rows()[service]["pid"])

    def supervisor_pid(self) -> int:
        return int(json.loads((self.folder / "run" / "platform.json").read_text())["supervisor"]["pid"])

    def subjects(self) -> list[str]:
        url = f"http://127.0.0.1:{self.ports['registry']}/subjects"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return list(json.load(answer))

    def produce(self, topic: str) -> int:
        """Send a record over HTTP; returns its offset."""
        url = f"http://127.0.0.1:{self.ports['rest']}/topics/{topic}"
        headers = {"content-type": "application/vnd.kafka.json.v2+json"}
        request = urllib.request.Request(url, b'{"records": [{"value": 1, "partition": 0}]}', headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(json.load(answer)["offsets"][0]["offset"])


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    made = Platform(tmp_path / "platform")
    yield made
    if (made.folder / "run" / "platform.json").exists():
        made.moldau("down")


def test_what_dies_is_started_again_and_nothing_is_lost(platform: Platform) -> None:
    started = platform.up()
    assert started.returncode == 0, started.stderr
    assert f"http://127.0.0.1:{platform.ports['registry']}" in started.stdout
    servers = f"127.0.0.1:{platform.ports['broker']}"
    Admin(servers, timeout_ms=30_000).create_topic("kept", partitions=2)
    assert platform.produce("kept") == 0
    for service in ("broker", "schema registry", "REST proxy"):
        pid = platform.pid_of(service)
        os.kill(pid, signal.SIGKILL)
        until(lambda service=service, pid=pid: platform.rows()[service]["pid"] not in ("", str(pid)))  # type: ignore[misc]
        until(lambda service=service: platform.rows()[service]["state"] == "running")  # type: ignore[misc]
        assert platform.rows()[service]["restarts"] == "1"
    assert "kept" in Admin(servers, timeout_ms=30_000).topic_names()
    assert platform.subjects() == []
    assert platform.produce("kept") == 1

    pid = platform.pid_of("schema registry")
    restarted = platform.moldau("restart", "registry")
    assert restarted.returncode == 0, restarted.stderr
    assert platform.pid_of("schema registry") != pid
    assert "schema registry" in platform.moldau("logs", "registry").stdout
    assert "there is no service 'nonsense'" in platform.moldau("restart", "nonsense").stderr

    assert platform.moldau("down").returncode == 0
    assert {row["state"] for row in platform.rows().values()} == {"stopped"}
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", platform.ports["broker"])) != 0


def test_services_whose_supervisor_was_killed_are_taken_over(platform: Platform) -> None:
    assert platform.up().returncode == 0
    pids = {name: row["pid"] for name, row in platform.rows().items()}
    os.kill(platform.supervisor_pid(), signal.SIGKILL)
    until(lambda: "Nobody supervises these" in platform.moldau("status").stderr)
    again = platform.up()
    assert again.returncode == 0, again.stderr
    assert {name: row["pid"] for name, row in platform.rows().items()} == pids
    assert "runs already" in platform.up().stdout

    os.kill(platform.supervisor_pid(), signal.SIGKILL)
    until(lambda: "Nobody supervises these" in platform.moldau("status").stderr)
    assert platform.moldau("down").returncode == 0
    assert {row["state"] for row in platform.rows().values()} == {"stopped"}


def test_a_taken_port_is_named_with_its_process_before_anything_starts(platform: Platform) -> None:
    with socket.create_server(("127.0.0.1", platform.ports["registry"])):
        refused = platform.up()
    assert refused.returncode == 1
    assert f"port {platform.ports['registry']} of registry is taken by" in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert "--port registry=PORT" in refused.stderr
    assert "no platform has been started" in platform.moldau("status").stderr


def test_destroy_asks_and_refuses_a_running_platform(platform: Platform) -> None:
    assert platform.up().returncode == 0
    assert "stop it first: moldau down" in platform.moldau("destroy", "--yes").stderr
    assert platform.moldau("down").returncode == 0
    (platform.folder / "mine.txt").write_text("kept")
    assert platform.moldau("destroy", "--yes").returncode == 0
    assert [path.name for path in platform.folder.iterdir()] == ["mine.txt"]
