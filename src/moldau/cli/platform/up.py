"""`moldau up`: start the platform on this machine, and keep it running. Start at `main`."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moldau.cli.command_line import CommandParser
from moldau.cli.screen import Screen
from moldau.cli.server.several import broker_count
from moldau.cli.sub_commands import command_parser, run_command
from moldau.core.errors import StartupError
from moldau.server.config import LOOPBACK, data_folder
from moldau.server.platform.services import DEFAULT_PORTS, SERVICES, Layout, chosen_services
from moldau.server.platform.status_file import PlatformStatus, ProcessId, hold_lock, load_status
from moldau.server.platform.supervisor import Supervisor, last_line

if TYPE_CHECKING:
    from moldau.cli.platform.screen import PlatformScreen

__all__ = ["add_data", "main", "parser", "platform_folder"]

POLL_S: Final = 0.1
SUPERVISOR_LOG: Final = "supervisor"


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, lambda options: _up(options, list(argv)))


def platform_folder(options: argparse.Namespace) -> Path:
    """`--data`, or the folder in which `moldau server` keeps its log too."""
    return (options.data or data_folder(os.environ).parent).absolute()


def _up(options: argparse.Namespace, words: list[str]) -> int:
    folder = platform_folder(options)
    layout = _layout(options, folder)
    with hold_lock(folder) as is_ours:
        if not is_ours:
            return _found_running(folder)
        supervisor = _supervisor(layout, words)
        supervisor.prepare()
        if not options.detach:
            return _supervise(supervisor, layout)
    return _start_detached(layout, words)


def _layout(options: argparse.Namespace, folder: Path) -> Layout:
    ports = DEFAULT_PORTS | dict(options.port)
    names = chosen_services(options.services, has_own_broker=options.bootstrap_server is None)
    return Layout(
        folder=folder,
        host=options.host,
        ports=ports,
        bootstrap_servers=options.bootstrap_server,
        brokers=1 if options.brokers is None else broker_count(options.brokers),
        names=names,
        log_format=options.log_format,
    )


def _supervisor(layout: Layout, words: list[str]) -> Supervisor:
    """A supervisor that takes over the services which an earlier one left running."""
    before = load_status(layout.folder)
    services = {} if before is None else before.services
    left = {name: one.process for name, one in services.items() if one.process is not None and one.process.is_alive}
    moved = [name for name in left if name in layout.names and services[name].address != layout.address_of(name)]
    extra = [name for name in left if name not in layout.names]
    if moved or extra:
        names = ", ".join(f"{name} at {services[name].address}" for name in (*moved, *extra))
        raise StartupError(f"{names} still runs from before; end it first: moldau down --data {layout.folder}")
    return Supervisor(layout, {"words": words}, left)


def _supervise(supervisor: Supervisor, layout: Layout) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: supervisor.request_stop())
    with ExitStack() as opened:

        @cache
        def screen() -> PlatformScreen:
            # Loaded after the services have been started, so that they do not wait for it.
            from moldau.cli.platform.screen import PlatformScreen

            made = PlatformScreen(f"state in {layout.folder} · logs: moldau logs SERVICE · Ctrl-C stops everything")
            opened.callback(made.close)
            return made

        supervisor.run(lambda statuses: screen().show(statuses))
    return 0


def _show(status: PlatformStatus) -> None:
    from moldau.cli.platform.screen import HEADINGS, status_rows

    Screen("table").table(HEADINGS, status_rows(status.services))


def _start_detached(layout: Layout, words: list[str]) -> int:
    """Run the same command without `-d` in a session of its own, and wait until the services run."""
    command = [sys.executable, "-m", "moldau", "up", *(word for word in words if word not in ("-d", "--detach"))]
    log = layout.log_of(SUPERVISOR_LOG)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    while True:
        status = load_status(layout.folder)
        if child.poll() is not None:
            raise StartupError(f"the platform did not start: {last_line(log)}")
        if status is not None and status.supervisor == ProcessId.of(child.pid) and _is_settled(status):
            break
        time.sleep(POLL_S)
    _show(status)
    print("`moldau status` shows this again, `moldau down` stops it.")
    return 1 if any(one.phase == "failed" for one in status.services.values()) else 0


def _is_settled(status: PlatformStatus) -> bool:
    return bool(status.services) and all(one.phase in ("running", "failed") for one in status.services.values())


def _found_running(folder: Path) -> int:
    status = load_status(folder)
    if status is None:
        raise StartupError(
            f"another `moldau up` is starting in {folder}; wait for it, or name another folder with --data"
        )
    print(f"The platform in {folder} runs already (supervisor: pid {status.supervisor.pid}):")
    _show(status)
    return 0


def _port(word: str) -> tuple[str, int]:
    name, _, number = word.partition("=")
    if name not in DEFAULT_PORTS or not number.isdigit() or int(number) > 65535:
        raise argparse.ArgumentTypeError(f"{word!r}: expected SERVICE=PORT with one of {', '.join(DEFAULT_PORTS)}")
    return name, int(number)


def add_data(made: CommandParser) -> None:
    made.add_argument("--data", type=Path, metavar="FOLDER", help="where the platform keeps its state and logs")


def parser() -> CommandParser:
    ports = ", ".join(f"{service.title} {service.port}" for service in SERVICES.values())
    made = command_parser(
        "up",
        f"Start the whole platform on this machine and keep it running: {ports}.\n"
        "A service that dies is started again. Spark starts when the first pipeline does.",
        [
            "moldau up                                  # everything, in this terminal; Ctrl-C stops it",
            "moldau up -d                               # in the background; `moldau down` stops it",
            "moldau up --brokers 3                      # with a cluster of three brokers",
            "moldau up registry                         # the broker and the schema registry only",
            "moldau up --bootstrap-server kafka-1:9092  # everything but the broker, on any Kafka cluster",
            "moldau up --data ./platform --port broker=19092 --port registry=18081",
        ],
    )
    made.add_argument("services", nargs="*", metavar="SERVICE", help=f"start only these: {', '.join(SERVICES)}")
    made.add_argument("-d", "--detach", action="store_true", help="run in the background")
    add_data(made)
    made.add_argument(
        "--host", default=LOOPBACK, help="listen on this address (default: this machine only; nobody has to log in)"
    )
    made.add_argument(
        "--port", type=_port, action="append", default=[], metavar="SERVICE=PORT", help="another port for a service"
    )
    made.add_argument("--brokers", metavar="N", help="a cluster of N brokers, or auto, on port 9092 and those after it")
    made.add_argument("-b", "--bootstrap-server", metavar="HOST:PORT", help="use this cluster instead of a broker here")
    made.add_argument("--log-format", choices=("text", "json"), default="text", help="how the lines of logs look")
    return made
