"""Commands as people type them, run beside a broker.

Addresses of the trainings (`192.168.1.100:9092`, `0.0.0.0:2181`) stand for the local machine: `Terminal` puts
the broker's port in their place, or that of a registration point in place of 2181. Start at `Terminal.run`.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from types import TracebackType

from moldau.testing import Broker

__all__ = ["Running", "Terminal", "run_line"]

_ADDRESS = re.compile(r"(?P<host>0\.0\.0\.0|localhost|127\.0\.0\.1|192\.168\.1\.100):(?P<port>2181|9092)\b")
TIMEOUT_S = 60


def installed(command: str) -> list[str]:
    """The installed command, or the same through the module where the package is only on the path."""
    script = Path(sysconfig.get_path("scripts")) / command
    if script.exists():
        return [str(script)]
    name = command.removesuffix(".sh")
    return [sys.executable, "-m", "moldau.cli.main", *([] if name == "moldau" else [name])]


def run_line(line: str, *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Type a line as it is, where there is no broker."""
    words = shlex.split(line)
    return _run([*installed(words[0]), *words[1:]], stdin)


def _run(command: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=_environment()
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


class Terminal:
    """Runs command lines against one broker."""

    def __init__(self, broker: Broker, *, zookeeper_port: int | None = None) -> None:
        self._ports = {"9092": broker.port, "2181": zookeeper_port or broker.port}

    def run(self, line: str, *, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Type a line, wait for its end."""
        return _run(self.command(line), stdin)

    def output(self, line: str, *, stdin: str = "") -> str:
        """Standard output of a line that succeeds."""
        done = self.run(line, stdin=stdin)
        assert done.returncode == 0, f"{line} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, line: str) -> Running:
        """Type a line and leave it running."""
        return Running(self.command(line))

    def popen(self, line: str, *, stdin: int | None = None) -> subprocess.Popen[bytes]:
        """Type a line with streams of the caller's."""
        return subprocess.Popen(
            self.command(line), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
        )

    def command(self, line: str) -> list[str]:
        words = shlex.split(_ADDRESS.sub(self._local, line))
        return [*installed(words[0]), *words[1:]]

    def _local(self, address: re.Match[str]) -> str:
        host = "localhost" if address["host"] == "192.168.1.100" else address["host"]
        return f"{host}:{self._ports[address['port']]}"


class Running:
    """A command that goes on, with its output at hand; ended when the block is left."""

    def __init__(self, command: list[str], *, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment() | (environment or {}),
        )
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self._changed = threading.Condition()
        streams = ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr))
        self._threads = [threading.Thread(target=self._collect, args=pair, daemon=True) for pair in streams]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(TIMEOUT_S)
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def lines(self, count: int) -> list[str]:
        """Standard output once it has so many lines."""
        with self._changed:
            found = self._changed.wait_for(lambda: len(self.stdout) >= count, TIMEOUT_S)
        assert found, f"only {len(self.stdout)} of {count} lines came: {self.stdout} {self.stderr}"
        return list(self.stdout)

    def type(self, *lines: str) -> None:
        assert self._process.stdin is not None
        for line in lines:
            self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def wait_for_line(self, text: str) -> None:
        """Wait until a line of either stream contains the text."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: any(text in line for line in (*self.stdout, *self.stderr)), TIMEOUT_S
            )
        assert found, f"no line with {text!r} came: {self.stdout} {self.stderr}"

    def interrupt(self) -> int:
        """Press Ctrl-C and wait for the end; the exit code."""
        self.send_signal(signal.SIGINT)
        return self.wait()

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs."""
        return self._process.poll()

    def wait(self, *, timeout_s: float = TIMEOUT_S) -> int:
        if self._process.stdin is not None and not self._process.stdin.closed:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass  # it has ended, and did not read all that was typed
        code = self._process.wait(timeout_s)
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        return code

    def _collect(self, stream: object, into: list[str]) -> None:
        for line in stream:  # type: ignore[attr-defined]
            with self._changed:
                into.append(line.rstrip("\n"))
                self._changed.notify_all()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "200"}
