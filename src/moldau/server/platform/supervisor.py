"""The supervisor of `moldau up`: starts the services as processes, watches them, and starts again what dies.

Each service is a process in a session of its own: neither Ctrl-C in the terminal nor the supervisor's death ends it, so
that the next `moldau up` takes over what still runs. What to do is decided in `supervision`. Start at `Supervisor.run`.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from moldau.core.errors import StartupError
from moldau.pipeline.runtime.hosting.engine_files import EngineFiles
from moldau.server.platform.disk import lack_of_room
from moldau.server.platform.ports import check_ports
from moldau.server.platform.services import SERVICES, Layout
from moldau.server.platform.status_file import (
    PlatformStatus,
    ProcessId,
    ServiceStatus,
    save_status,
    take_restart_requests,
)
from moldau.server.platform.supervision import Action, Phase, Seen, State, next_step, restart, stop

__all__ = ["Supervisor", "end_engine", "last_line"]

TICK_S: Final = 0.05
ENGINE_STOP_S: Final = 75.0
"""Pipelines finish their batches."""
KILL_S: Final = 10.0
HEALTH_WHILE_STARTING_S: Final = 0.1
HEALTH_WHILE_RUNNING_S: Final = 2.0
HEALTH_TIMEOUT_S: Final = 5.0
DISK_CHECK_S: Final = 2.0
SHOW_S: Final = 2.0
LARGEST_LOG_BYTES: Final = 16 * 1024 * 1024
"""A larger log is put aside when its service starts again; one older log is kept."""


class Supervisor:
    def __init__(
        self, layout: Layout, options: Mapping[str, object], left_running: Mapping[str, ProcessId] | None = None
    ) -> None:
        """`left_running`: services whose supervisor was killed, to be taken over."""
        self._layout = layout
        self._options = options
        adopted = left_running or {}
        self._services = {name: _Supervised(name, layout, adopted.get(name)) for name in layout.names}
        self._is_stopping = False
        self._lack_of_room: str | None = None
        self._next_look_s = self._next_show_s = 0.0

    @property
    def statuses(self) -> dict[str, ServiceStatus]:
        found = {name: service.status() for name, service in self._services.items()}
        if self._lack_of_room:  # told with the service that writes most
            first = next(iter(found))
            found[first] = replace(found[first], note=self._lack_of_room)
        return found

    @property
    def is_settled(self) -> bool:
        """Whether every service runs, or has been given up."""
        return all(service.state.phase in (Phase.RUNNING, Phase.FAILED) for service in self._services.values())

    def prepare(self) -> None:
        """Raise if a service cannot possibly start: a port is taken, or the folder cannot be written."""
        free = {name: self._layout.ports[name] for name, one in self._services.items() if not one.is_alive}
        if "broker" in free:
            free |= self._layout.further_ports
        check_ports(self._layout.host, {name: port for name, port in free.items() if port})
        lack = lack_of_room(self._layout.folder)
        if lack:
            raise StartupError(f"{lack}; --data chooses another folder")
        try:
            (self._layout.folder / "logs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StartupError(f"{self._layout.folder}: cannot be written ({error.strerror})") from None

    def request_stop(self) -> None:
        self._is_stopping = True

    def run(self, show: Callable[[dict[str, ServiceStatus]], None]) -> None:
        """Supervise until `request_stop`; returns once every service has ended. `show` is called at every change, and
        in between for what changes all the time, such as memory."""
        shown: dict[str, ServiceStatus] = {}
        try:
            while True:
                self._step()
                statuses = self.statuses
                if statuses != shown:
                    # A status that cannot be written is no reason to leave the services alone.
                    with contextlib.suppress(OSError):
                        self._save(statuses)
                        shown = statuses
                    self._next_show_s = 0.0
                if time.monotonic() >= self._next_show_s:
                    self._next_show_s = time.monotonic() + SHOW_S
                    show(statuses)
                if self._is_stopping and not any(service.is_alive for service in self._services.values()):
                    end_engine(self._layout.engine_folder)
                    return
                time.sleep(TICK_S)
        finally:
            for service in self._services.values():
                service.end_checks()

    def _save(self, statuses: dict[str, ServiceStatus]) -> None:
        save_status(self._layout.folder, PlatformStatus(ProcessId.of(os.getpid()), self._options, statuses))

    def _step(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + DISK_CHECK_S
            self._lack_of_room = lack_of_room(self._layout.folder)
        for name in take_restart_requests(self._layout.folder):
            if name in self._services and not self._is_stopping:
                self._services[name].restart(now_s)
        for name, service in self._services.items():
            if self._is_stopping:
                if not any(self._services[other].is_alive for other in self._dependents_of(name)):
                    if name == "broker":  # pipelines leave their groups while the broker is there
                        end_engine(self._layout.engine_folder)
                    service.stop(now_s)
                service.enforce_stop(now_s)
            else:
                service.step(now_s, are_needs_running=self._may_start(name))

    def _may_start(self, name: str) -> bool:
        needs = [self._services[need] for need in SERVICES[name].needs if need in self._services]
        return SERVICES[name].starts_at_once or all(need.state.phase is Phase.RUNNING for need in needs)

    def _dependents_of(self, name: str) -> list[str]:
        return [other for other in self._services if name in SERVICES[other].needs]


class _Supervised:
    """One service: its state, its process, and the thread that asks for its health."""

    def __init__(self, name: str, layout: Layout, left_running: ProcessId | None) -> None:
        self.state = State(since_s=time.monotonic())
        self._name = name
        self._layout = layout
        self._definition = SERVICES[name]
        self._child: subprocess.Popen[bytes] | None = None
        self._process = left_running
        self._since_ms = round(time.time() * 1000)
        self._note = ""
        self._is_healthy = False
        self._end = threading.Event()
        self._checks = threading.Thread(target=self._check_health, name=f"health of {name}", daemon=True)
        self._checks.start()

    @property
    def is_alive(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return self._process is not None and self._process.is_alive

    def status(self) -> ServiceStatus:
        process = self._process if self.is_alive else None
        address, restarts = self._layout.address_of(self._name), self.state.restarts
        is_silent = self.state.phase is Phase.RUNNING and not self._is_healthy
        note = "does not answer" if is_silent else self._note
        return ServiceStatus(self.state.phase.value, address, process, restarts, self._since_ms, note)

    def step(self, now_s: float, *, are_needs_running: bool) -> None:
        seen = Seen(self.is_alive, self._is_healthy, are_needs_running)
        self._become(*next_step(self.state, seen, now_s, stop_s=self._definition.stop_s))

    def stop(self, now_s: float) -> None:
        if self.state.phase is not Phase.STOPPED:
            self._become(*stop(self.state, now_s, is_alive=self.is_alive))

    def enforce_stop(self, now_s: float) -> None:
        if self.state.phase is Phase.STOPPING:
            self.step(now_s, are_needs_running=False)

    def restart(self, now_s: float) -> None:
        self._become(*restart(self.state, now_s, is_alive=self.is_alive))

    def end_checks(self) -> None:
        self._end.set()

    def _become(self, state: State, action: Action) -> None:
        if state.phase is not self.state.phase:
            self._since_ms = round(time.time() * 1000)
            self._note = self._reason() if state.phase in (Phase.DELAYED, Phase.FAILED) else ""
        self.state = state
        match action:
            case Action.START:
                self._start()
            case Action.TERMINATE:
                self._send(signal.SIGTERM)
            case Action.KILL:
                self._send(signal.SIGKILL)

    def _start(self) -> None:
        self._is_healthy = False
        log = self._layout.log_of(self._name)
        try:
            if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
                os.replace(log, log.with_suffix(".log.1"))
            with log.open("ab") as output:
                self._child = subprocess.Popen(
                    self._layout.command_of(self._name),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except OSError as error:  # no descriptors, no processes, no space: tried again like any failed start
            self._child = None
            self._process = None
            self._note = str(error)
            return
        self._process = ProcessId.of(self._child.pid)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_alive:
            try:
                os.kill(self._process.pid, number)
            except ProcessLookupError:
                pass  # it has ended meanwhile

    def _reason(self) -> str:
        """Its exit status, and the last line of its log."""
        if self._child is None:
            return self._note or "ended"
        code = self._child.returncode
        how = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"status {code}"
        return f"{how}: {last_line(self._layout.log_of(self._name))}"

    def _check_health(self) -> None:
        while not self._end.is_set():
            is_running = self.state.phase is Phase.RUNNING
            if self.state.phase in (Phase.STARTING, Phase.RUNNING):
                self._is_healthy = self._answers()
            self._end.wait(HEALTH_WHILE_RUNNING_S if is_running else HEALTH_WHILE_STARTING_S)

    def _answers(self) -> bool:
        host, _, port = self._layout.address_of(self._name).rpartition(":")
        try:
            if self._definition.health_path is None:
                socket.create_connection((host.strip("[]"), int(port)), HEALTH_TIMEOUT_S).close()
                return True
            connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=HEALTH_TIMEOUT_S)
            try:
                connection.request("GET", self._definition.health_path)
                return connection.getresponse().status == 200
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            return False


def end_engine(folder: Path) -> None:
    """Stop the engine process of the services, which outlives each of them; killed if it takes too long."""
    address = EngineFiles(folder).find()
    if address is None:
        return
    process = ProcessId.of(address.pid)
    for number, patience_s in ((signal.SIGTERM, ENGINE_STOP_S), (signal.SIGKILL, KILL_S)):
        if not process.is_alive:
            return
        os.kill(process.pid, number)
        deadline = time.monotonic() + patience_s
        while process.is_alive and time.monotonic() < deadline:
            time.sleep(TICK_S)


def last_line(log: Path) -> str:
    """The last line of a log that says anything; long lines are cut."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 4096))
            lines = [line.strip() for line in stream.read().decode("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return "it has written no log"
    return lines[-1][:300] if lines else "its log is empty"
