"""`moldau up -d` in a folder of its own, on free ports, with its commands as methods. Start at `Platform`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.free_ports import free_port

from moldau.server.platform.services import DEFAULT_PORTS

__all__ = ["Platform", "until"]

PATIENCE_S = 240


class Platform:
    def __init__(self, folder: Path, *services: str, environment: Mapping[str, str] | None = None) -> None:
        """`services` are the words of `moldau up`, all services without any."""
        self.folder = folder
        self.ports = {name: free_port() for name in DEFAULT_PORTS}
        self._services = services
        self._environment = environment

    def moldau(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "moldau", *words, "--data", str(self.folder)]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
            check=False,
            env=self._environment,
        )

    def up(self, *words: str) -> subprocess.CompletedProcess[str]:
        ports = [word for name, port in self.ports.items() for word in ("--port", f"{name}={port}")]
        return self.moldau("up", "-d", *self._services, *ports, *words)

    def rows(self) -> dict[str, dict[str, Any]]:
        """What `moldau status` says, by the titles of services."""
        output = self.moldau("status", "-o", "json").stdout
        return {row["service"]: row for row in json.loads(output)}

    def pid_of(self, title: str) -> int:
        return int(self.rows()[title]["pid"])

    def supervisor_pid(self) -> int:
        return int(json.loads((self.folder / "run" / "platform.json").read_text())["supervisor"]["pid"])

    def kill(self, title: str) -> None:
        """Kill a service, and wait until it runs again."""
        pid = self.pid_of(title)
        os.kill(pid, signal.SIGKILL)
        until(lambda: self.rows()[title]["pid"] not in ("", str(pid)))
        until(lambda: self.rows()[title]["state"] == "running")

    def ask(self, service: str, path: str, document: object = None, content: str = "application/json") -> Any:
        """GET, or POST if there is a document."""
        body = None if document is None else json.dumps(document).encode()
        headers = {"content-type": content, "accept": "application/json"}
        if content != "application/json":
            del headers["accept"]
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[service]}{path}", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def produce(self, topic: str) -> int:
        """Send a record over HTTP; returns its offset."""
        document = {"records": [{"value": 1, "partition": 0}]}
        answer = self.ask("rest", f"/topics/{topic}", document, "application/vnd.kafka.json.v2+json")
        return int(answer["offsets"][0]["offset"])

    def register(self, subject: str) -> int:
        answer = self.ask("registry", f"/subjects/{subject}/versions", {"schema": '{"type": "string"}'})
        return int(answer["id"])

    def run_statements(self, text: str) -> Any:
        return self.ask("ksql", "/ksql", {"ksql": text})


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
