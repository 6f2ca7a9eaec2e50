"""A program in a process of its own, with everything it says kept. Start at `Running`."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.spark.java_processes import until

__all__ = ["PROGRAM", "Running"]

PROGRAM = Path(__file__).with_name("cluster_program") / "program.py"
PATIENCE_S = 180


class Running:
    """Ended at the latest with the block: by SIGTERM, or if that does not help, killed with all it started."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._command = command
        self._output = folder / "program.out"
        self._errors = folder / "program.err"
        self._environment = {**os.environ, **(environment or {})}

    def __enter__(self) -> Running:
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=errors, env=self._environment, start_new_session=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(f"the program said: {self.errors()[-3000:]}")
        if not self.is_gone():
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def is_gone(self) -> bool:
        """Whether it has ended, and whatever it has started with it."""
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def stopped(self) -> int:
        """Tell it to end, and wait for that; the exit code."""
        self._process.terminate()
        return self._process.wait(PATIENCE_S)

    def says(self, text: str) -> None:
        """Wait until it has said something on standard error."""
        until(lambda: text in self.errors() or not self.is_running())
        assert text in self.errors(), self.errors()

    def errors(self) -> str:
        """All that is on standard error by now."""
        return self._errors.read_text()

    def output(self) -> str:
        """All that is on standard output by now."""
        return self._output.read_text()
