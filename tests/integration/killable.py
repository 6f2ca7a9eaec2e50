"""Processes to be killed without warning: a broker that comes back on its folder and port, and clients of it.

What is proved with them is in `kill9`, `exactly_once` and `random_history`.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.free_ports import free_port

import moldau

__all__ = ["START_TIMEOUT_S", "KillableBroker", "KillableProcess"]

START_TIMEOUT_S = 60
REPOSITORY = Path(__file__).parent.parent.parent


class KillableProcess:
    """A Python module run as a process, as often as wanted; everything it says is kept in one file."""

    def __init__(self, module: str, arguments: Sequence[str], output: Path, *, within: Sequence[str] = ()) -> None:
        """`within`: a command that the module's command is appended to, such as `nsenter`."""
        self._command = [*within, sys.executable, "-m", module, *arguments]
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self) -> None:
        # The very code under test, installed or not.
        path = os.pathsep.join([str(Path(moldau.__file__).parent.parent), str(REPOSITORY)])
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=output, env=os.environ | {"PYTHONPATH": path}
            )

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def terminate(self, *, timeout_s: float = START_TIMEOUT_S) -> int:
        """Ask it to end and return its exit code; raises where it does not end in time."""
        process = self._process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout_s)
        self._process = None
        return status

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs, and when it was killed on purpose."""
        return self._process.poll() if self._process is not None else None

    @property
    def last_words(self) -> str:
        return self._output.read_text(errors="replace")[-3000:]

    def signal(self, number: int) -> None:
        """Send a signal, and do not wait for what it does."""
        if self._process is not None:
            self._process.send_signal(number)


class KillableBroker(KillableProcess):
    """`moldau server`, on one port and one folder for all its lives."""

    def __init__(self, folder: Path, settings: Mapping[str, str], *, port: int | None = None) -> None:
        self.folder = folder
        self.port = free_port() if port is None else port
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        arguments = ["server", "--data", str(folder / "data")]
        own = {"listeners": f"PLAINTEXT://127.0.0.1:{self.port}", "metrics.http.port": "0"}
        for key, value in {**own, **settings}.items():
            arguments += ["--override", f"{key}={value}"]
        super().__init__("moldau.cli.main", arguments, folder / "output")

    def start(self) -> float:
        """Spawn it, and wait until it answers; returns the seconds that took."""
        self.spawn()
        return self.wait_until_it_answers()

    def wait_until_it_answers(self) -> float:
        """Return the seconds it took; raises with the broker's last words when it ends or takes too long."""
        started = time.monotonic()
        while time.monotonic() - started < START_TIMEOUT_S:
            if self.exit_code is not None:
                raise RuntimeError(f"the broker ended with {self.exit_code}:\n{self.last_words}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.005)
            else:
                return time.monotonic() - started
        raise RuntimeError(f"the broker does not answer after {START_TIMEOUT_S} s:\n{self.last_words}")

    def close(self) -> None:
        self.kill()
