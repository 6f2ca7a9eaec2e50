"""The demo's platform: `moldau up` and the Streams program as processes of their own, ended all at once.

Every process of the demo carries the demo's folder in its environment, and so do their children: Spark's Java, its
Python workers, an engine that is just starting. That is how all of them are found when the demo ends, at whatever
moment that is. Start at `Platform`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from moldau.cli.demo.story.program import APPLICATION
from moldau.cli.tool import ToolError
from moldau.server.config import LOOPBACK
from moldau.server.platform.services import DEFAULT_PORTS
from moldau.server.platform.status_file import ServiceStatus, load_status
from moldau.server.platform.supervisor import last_line

__all__ = ["Platform"]

MARK: Final = "MOLDAU_DEMO_FOLDER"
PROCESSES: Final = Path("/proc")
PR_SET_PDEATHSIG: Final = 1
END_S: Final = 10.0
POLL_S: Final = 0.02


class Platform:
    """Runs in `folder`, on free ports; on the usual ones, as far as they are free, if it will outlive the demo."""

    def __init__(self, folder: Path, services: Sequence[str], *, must_outlive: bool) -> None:
        self.folder = folder
        self.ports = _ports(prefer_usual=must_outlive)
        self._services = services
        self._must_outlive = must_outlive
        self._up: subprocess.Popen[bytes] | None = None
        self._program: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.ports['broker']}"

    def url(self, service: str) -> str:
        return f"http://{LOOPBACK}:{self.ports[service]}"

    def start(self) -> None:
        ports = [word for name, port in self.ports.items() for word in ("--port", f"{name}={port}")]
        words = ["up", *self._services, "--data", str(self.folder), *ports]
        self._up = self._started(words, "supervisor", ends_with_demo=not self._must_outlive)

    def prepare(self) -> Iterator[str]:
        """Run `moldau streams prepare`, and say what it does."""
        process = self._started(["streams", "prepare"], "prepare", ends_with_demo=True)
        while process.poll() is None:
            yield last_line(self._log("prepare"))
            time.sleep(10 * POLL_S)
        if process.returncode:
            raise ToolError(f"Spark could not be prepared: {last_line(self._log('prepare'))}")

    def start_program(self, topology: str) -> None:
        """Run the Streams program; it ends with the demo in any case."""
        settings = {
            "schema.registry.url": self.url("registry"),
            "processing.guarantee": "exactly_once_v2",
            "auto.offset.reset": "earliest",
            "state.dir": str(self.folder / "program"),
        }
        properties = [word for name, text in settings.items() for word in ("-p", f"{name}={text}")]
        words = ["streams", "run", topology, "-a", APPLICATION, "-b", self.bootstrap, *properties, "--quiet"]
        self._program = self._started(words, "program", ends_with_demo=True)

    def statuses(self) -> Mapping[str, ServiceStatus]:
        """The services as their supervisor sees them; raises `ToolError` if something of the demo has ended."""
        for process, name in ((self._up, "supervisor"), (self._program, "program")):
            if process is not None and process.poll() is not None:
                what = "the Streams program" if name == "program" else "the platform"
                raise ToolError(f"{what} has ended: {last_line(self._log(name))}")
        found = load_status(self.folder)
        statuses = {} if found is None else found.services
        for name, status in statuses.items():
            if status.phase == "failed":
                raise ToolError(f"the service {name} does not start: {status.note}")
        return statuses

    def end_program(self) -> None:
        """Stop the Streams program in good order."""
        if self._program is not None:
            self._program.terminate()
            try:
                self._program.wait(END_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._program.pid, signal.SIGKILL)

    def end(self) -> None:
        """End every process at once. The data are thrown away, so nobody has to finish anything."""
        if self._up is not None and not PROCESSES.exists():  # not Linux: others end their children by themselves
            self._up.terminate()
            self._up.wait()
        for process in (self._up, self._program):
            if process is not None:
                process.kill()  # the supervisor first: it would start again what ends
                process.wait()
        deadline = time.monotonic() + END_S
        while (left := _processes_of(self.folder)) and time.monotonic() < deadline:
            for pid in left:
                _kill(pid)
            time.sleep(POLL_S)

    def _started(self, words: list[str], name: str, *, ends_with_demo: bool) -> subprocess.Popen[bytes]:
        log = self._log(name)
        temporary = self.folder / "t"
        for path in (log.parent, temporary):
            path.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            # A session of its own, so that Ctrl-C reaches only the demo, which ends the others itself.
            return subprocess.Popen(
                [sys.executable, "-m", "moldau", *words],
                cwd=self.folder,
                env={**os.environ, MARK: str(self.folder), "TMPDIR": str(temporary)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_end_with_parent if ends_with_demo else None,  # noqa: PLW1509, the demo has no threads yet
            )

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"


def _ports(*, prefer_usual: bool) -> dict[str, int]:
    """A free port for each service. All are held until the last is found, so that no two are the same."""
    found, held = {}, []
    try:
        for name, usual in DEFAULT_PORTS.items():
            probe = socket.socket()
            held.append(probe)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, usual if prefer_usual else 0))
            except OSError:
                probe.bind((LOOPBACK, 0))
            found[name] = int(probe.getsockname()[1])
    finally:
        for probe in held:
            probe.close()
    return found


def _processes_of(folder: Path) -> list[int]:
    """All processes that have inherited the mark of this demo, but this one."""
    mark = f"{MARK}={folder}\0".encode()
    found = []
    for path in PROCESSES.glob("[0-9]*/environ"):
        pid = int(path.parent.name)
        try:
            if mark in path.read_bytes() and pid != os.getpid():
                found.append(pid)
        except OSError:
            continue  # another user's process, or one that has just ended
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended meanwhile


def _end_with_parent() -> None:
    """Make the kernel stop the process if the demo is killed (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
