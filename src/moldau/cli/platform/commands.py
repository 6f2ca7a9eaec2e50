"""`moldau status`, `down`, `restart`, `logs` and `destroy`, for what `moldau up` started."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from moldau.cli.command_line import CommandParser
from moldau.cli.platform.brokers import broker_statuses
from moldau.cli.platform.screen import HEADINGS, status_rows
from moldau.cli.platform.up import add_data, platform_folder
from moldau.cli.sub_commands import command_parser, run_command, screen_for
from moldau.cli.tool import ToolError
from moldau.server.platform.services import SERVICES
from moldau.server.platform.status_file import PlatformStatus, ProcessId, ServiceStatus, load_status, request_restart
from moldau.server.platform.supervisor import ENGINE_STOP_S, end_engine

__all__ = [
    "destroy",
    "destroy_parser",
    "down",
    "down_parser",
    "logs",
    "logs_parser",
    "restart",
    "restart_parser",
    "status",
    "status_parser",
]

POLL_S: Final = 0.1
OWN_FOLDERS: Final = ("log", "ksql", "connect", "engine", "logs", "run")
"""What `destroy` removes; other files of the folder are not the platform's."""


def _status_of(folder: Path) -> PlatformStatus:
    found = load_status(folder)
    if found is None:
        raise ToolError(f"no platform has been started in {folder}; start one with: moldau up --data {folder}")
    if found.supervisor.is_alive:
        return found
    # Its supervisor is gone, so the file may be out of date: what counts is which processes still run.
    services = {
        name: one
        if one.process is not None and one.process.is_alive
        else replace(one, process=None, phase="stopped", note="")
        for name, one in found.services.items()
    }
    return replace(found, services=services)


def status(argv: Sequence[str]) -> int:
    return run_command(status_parser(), argv, _status)


def _status(options: argparse.Namespace) -> int:
    folder = platform_folder(options)
    found = _status_of(folder)
    services = _with_each_broker(found, folder)
    screen_for(options).table(HEADINGS, status_rows(services))
    if not found.supervisor.is_alive and any(one.process for one in found.services.values()):
        print("Nobody supervises these: `moldau up` takes them over, `moldau down` stops them.", file=sys.stderr)
    return 0 if all(one.phase == "running" for one in services.values()) else 1


def _with_each_broker(found: PlatformStatus, folder: Path) -> dict[str, ServiceStatus]:
    """The services, and behind that of a cluster's brokers each of them."""
    listed: dict[str, ServiceStatus] = {}
    for name, one in found.services.items():
        listed[name] = one
        if name == "broker":
            listed |= broker_statuses(folder, one)
    return listed


def status_parser() -> CommandParser:
    made = command_parser(
        "status",
        "Show the services that `moldau up` runs. The exit status is 0 if all of them run.",
        ["moldau status", "moldau status -o json"],
    )
    add_data(made)
    made.add_argument("-o", "--output", choices=("table", "json"), default="table", help="how to show results")
    return made


def down(argv: Sequence[str]) -> int:
    return run_command(down_parser(), argv, _down)


def _down(options: argparse.Namespace) -> int:
    folder = platform_folder(options)
    found = _status_of(folder)
    if found.supervisor.is_alive:
        os.kill(found.supervisor.pid, signal.SIGTERM)
        _wait_for([found.supervisor])
    else:
        broker = found.services["broker"].process if "broker" in found.services else None
        running = [one.process for one in reversed(list(found.services.values())) if one.process]
        for process in running:
            if process == broker:
                end_engine(folder / "engine")
            os.kill(process.pid, signal.SIGTERM)
            _wait_for([process])
        end_engine(folder / "engine")
    left = [name for name, one in _status_of(folder).services.items() if one.process is not None]
    if left:
        raise ToolError(f"{', '.join(left)} did not stop; see moldau logs {left[0]}")
    print("The platform has stopped.")
    return 0


def _wait_for(processes: Sequence[ProcessId]) -> None:
    longest_s = sum(service.stop_s for service in SERVICES.values()) + ENGINE_STOP_S
    deadline = time.monotonic() + longest_s
    while any(process.is_alive for process in processes) and time.monotonic() < deadline:
        time.sleep(POLL_S)


def down_parser() -> CommandParser:
    made = command_parser("down", "Stop everything that `moldau up` runs; nothing is lost.", ["moldau down"])
    add_data(made)
    return made


def restart(argv: Sequence[str]) -> int:
    return run_command(restart_parser(), argv, _restart)


def _restart(options: argparse.Namespace) -> int:
    folder = platform_folder(options)
    before = _status_of(folder)
    name = options.service
    if name not in before.services:
        raise ToolError(f"there is no service {name!r} in this platform; it has: {', '.join(before.services)}")
    if not before.supervisor.is_alive:
        raise ToolError("nobody supervises this platform; start it with: moldau up")
    old = before.services[name].process
    request_restart(folder, name)
    while True:
        now = _status_of(folder)
        one = now.services[name]
        if one.process is not None and one.process != old and one.phase == "running":
            print(f"{name} runs again, as pid {one.process.pid}.")
            return 0
        if one.phase == "failed" or not now.supervisor.is_alive:
            raise ToolError(f"{name} did not start again: {one.note or 'the supervisor has ended'}")
        time.sleep(POLL_S)


def restart_parser() -> CommandParser:
    made = command_parser("restart", "Stop a service in good order and start it again.", ["moldau restart registry"])
    made.add_argument("service", metavar="SERVICE", help=", ".join(SERVICES))
    add_data(made)
    return made


def logs(argv: Sequence[str]) -> int:
    return run_command(logs_parser(), argv, _logs)


def _logs(options: argparse.Namespace) -> int:
    folder = platform_folder(options) / "logs"
    path = folder / f"{options.service}.log"
    if not path.exists():
        there = sorted(one.stem for one in folder.glob("*.log"))
        raise ToolError(f"there is no log of {options.service!r} in {folder}; there are: {', '.join(there) or 'none'}")
    with path.open("r", encoding="utf-8", errors="replace") as stream:
        lines = stream.readlines()
        sys.stdout.writelines(lines[-options.lines :] if options.lines else lines)
        sys.stdout.flush()
        while options.follow:
            line = stream.readline()
            if line:
                sys.stdout.write(line)
            else:
                sys.stdout.flush()
                time.sleep(POLL_S)
    return 0


def logs_parser() -> CommandParser:
    made = command_parser(
        "logs", "Print the log of a service.", ["moldau logs broker", "moldau logs ksql -f", "moldau logs rest -n 0"]
    )
    made.add_argument("service", metavar="SERVICE", help=f"{', '.join(SERVICES)}, or supervisor")
    made.add_argument("-f", "--follow", action="store_true", help="go on printing what is written")
    made.add_argument("-n", "--lines", type=int, default=50, help="how many of the last lines (default 50; 0: all)")
    add_data(made)
    return made


def destroy(argv: Sequence[str]) -> int:
    return run_command(destroy_parser(), argv, _destroy)


def _destroy(options: argparse.Namespace) -> int:
    folder = platform_folder(options)
    found = _status_of(folder)
    if found.supervisor.is_alive or any(one.process for one in found.services.values()):
        raise ToolError("the platform still runs; stop it first: moldau down")
    doomed = [folder / name for name in OWN_FOLDERS if (folder / name).exists()]
    print("This deletes all topics, schemas, queries and logs of the platform:")
    for path in doomed:
        print(f"  {path}")
    if not options.yes and input("Delete them? Type yes: ").strip().lower() != "yes":
        print("Nothing was deleted.")
        return 1
    for path in doomed:
        shutil.rmtree(path)
    print("Deleted.")
    return 0


def destroy_parser() -> CommandParser:
    made = command_parser("destroy", "Delete all data of a stopped platform, after asking.", ["moldau destroy"])
    made.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_data(made)
    return made
