"""A broker as users run it: the installed command in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

__all__ = ["ServerProcess", "wait_until"]

_STARTED = re.compile(r"Kafka Server started: PLAINTEXT://[^:]*:(\d+)")


def wait_until(condition: object, *, timeout_s: float = 90, what: str = "the condition") -> None:
    """Ask again and again until `condition()` is true; sleeps are only for not spinning."""
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come true within {timeout_s} s")
        time.sleep(0.02)


class ServerProcess:
    """`module` with `arguments`, its output in a file, ended when the block is left."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        program: Sequence[str] = ("-m", "moldau.cli.main", "server"),
        environment: dict[str, str] | None = None,
    ) -> None:
        self._command = [sys.executable, *program, *arguments]
        self._environment = {**os.environ, **(environment or {})}
        self._output = tempfile.NamedTemporaryFile(prefix="moldau-server-", suffix=".out")  # noqa: SIM115
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ServerProcess:
        with open(self._output.name, "ab") as stream:
            self.process = subprocess.Popen(self._command, stdout=stream, stderr=stream, env=self._environment)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        self._output.close()

    @property
    def output(self) -> str:
        return Path(self._output.name).read_text()

    @property
    def port(self) -> int:
        """The port it listens on; waits until it does."""
        wait_until(lambda: _STARTED.search(self.output) or self.has_ended, what="the broker's start")
        found = _STARTED.search(self.output)
        assert found, self.output
        return int(found.group(1))

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def has_ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait(60)

    def terminate(self) -> int:
        """Ask to stop as a supervisor would; returns the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.wait()
