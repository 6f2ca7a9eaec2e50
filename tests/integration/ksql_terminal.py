"""`ksql` in a terminal of its own, and the ksql server it talks to: both as users run them. Start at `KsqlTerminal`."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from tests.integration.server_process import ServerProcess, wait_until

__all__ = ["KsqlTerminal", "ksql_server"]

WIDTH, HEIGHT = 80, 50
PATIENCE_S = 60.0
STATUS = "Press CTRL-C to interrupt"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_STARTED = re.compile(r"ksql server started: (http://\S+)")
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


@contextlib.contextmanager
def ksql_server(bootstrap_servers: str, folder: Path, *options: str) -> Iterator[tuple[str, ServerProcess]]:
    """A ksql server in a process; gives its address."""
    arguments = ["--port", "0", "--bootstrap-server", bootstrap_servers, "--data", str(folder / "ksql"), *options]
    with ServerProcess(arguments, program=("-m", "moldau.cli.main", "ksql-server")) as server:
        wait_until(lambda: _STARTED.search(server.output) or server.has_ended, timeout_s=60, what="the server's start")
        found = _STARTED.search(server.output)
        assert found, server.output
        try:
            yield found.group(1), server
        finally:
            # In good order, so that it takes its engine process along.
            assert server.process is not None
            server.process.terminate()
            server.process.wait(60)


class KsqlTerminal:
    """The program on a pseudo-terminal: what is typed, and what the screen showed since."""

    def __init__(self, arguments: Sequence[str], home: Path) -> None:
        self._terminal, program_side = pty.openpty()
        fcntl.ioctl(program_side, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        environment = {**os.environ, "HOME": str(home), "TERM": "xterm", "INPUTRC": "/dev/null"}
        environment = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, "-m", "moldau.cli.ksql.command", *arguments],
            stdin=program_side,
            stdout=program_side,
            stderr=program_side,
            env=environment,
        )
        os.close(program_side)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._raw = ""
        self._seen = 0

    def __enter__(self) -> KsqlTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        os.close(self._terminal)

    @property
    def screen(self) -> str:
        """All that was shown, without control sequences."""
        return _CONTROL.sub("", self._raw).replace("\r", "")

    def type(self, text: str) -> None:
        """Keys, without ENTER."""
        os.write(self._terminal, text.encode())

    def run(self, line: str, *, until: str = "ksql> ", timeout_s: float = PATIENCE_S) -> str:
        """Type a line; what is shown up to the next prompt, or to another text."""
        self.type(line + "\n")
        # The terminal echoes what is typed; the prompt that counts comes after it.
        self.expect(line[-20:] if line else "\n", timeout_s=timeout_s)
        return self.expect(until, timeout_s=timeout_s)

    def interrupt(self, *, until: str) -> None:
        """Press Ctrl-C as a person does: again, if nothing happens.

        CPython's readline looks for signals, then waits for a key; one that arrives in between is noticed with the
        next key.
        """
        for _ in range(12):
            self.type("\x03")
            with contextlib.suppress(AssertionError):
                self.expect(until, timeout_s=5)
                return
        self.expect(until)

    def expect(self, text: str, *, timeout_s: float = PATIENCE_S) -> str:
        """Wait for a text; what was shown up to it since the last call, without the status line."""
        deadline = time.monotonic() + timeout_s
        while (place := self.screen.find(text, self._seen)) < 0:
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"{text!r} was not shown; the screen has:\n{self.screen[self._seen :]}")
        shown = self.screen[self._seen : place + len(text)]
        self._seen = place + len(text)
        return shown.replace(STATUS, "")

    def wait(self) -> int:
        """Read to the end; the exit code."""
        while self._read(PATIENCE_S):
            pass
        return self.process.wait(30)

    def _read(self, timeout_s: float) -> bool:
        if not select.select([self._terminal], [], [], timeout_s)[0]:
            return True
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # EIO: the program has ended
            return False
        self._raw += self._decoder.decode(data)
        return bool(data)
