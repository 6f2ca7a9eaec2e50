"""`moldau server --brokers 3`: a cluster on one machine, a process and a folder for each broker.

Each is broker and controller; clients connect to port 9092 and those after it, controllers to 10000 above. Folders are
formatted on first use, with one cluster id. Ctrl-C and SIGTERM stop the brokers one after the other, so that each hands
over what it leads; a broker that ends by itself is told and not waited for. Start at `run_several`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from moldau.core.config import BrokerConfig
from moldau.core.errors import StartupError
from moldau.core.ids import random_uuid, render_uuid
from moldau.log.directories.meta_properties import load_meta_properties
from moldau.log.files import Files
from moldau.server.config import LOOPBACK, data_folder
from moldau.server.directories import FormatPlan, format_directories

__all__ = ["run_several", "settings_of"]

FIRST_PORT: Final = 9092
CONTROLLER_OFFSET: Final = 10_000
MOST: Final = 15
STOP_S: Final = 45.0


def broker_count(text: str) -> int:
    """The number of brokers that `--brokers` asks for; `auto` is one for each two cores, three at least."""
    if text == "auto":
        return max(3, (os.cpu_count() or 2) // 2)
    if not text.isdecimal() or not 2 <= int(text) <= MOST:
        raise StartupError(f"--brokers {text}: give a number from 2 to {MOST}, or auto")
    return int(text)


def settings_of(node_id: int, count: int, folder: Path, host: str, first_port: int) -> dict[str, str]:
    """The settings of one broker of a cluster of `count` on this machine."""
    port = first_port + node_id - 1
    voters = [f"{one}@{host}:{first_port + one - 1 + CONTROLLER_OFFSET}" for one in range(1, count + 1)]
    factor, least = min(3, count), min(2, count - 1)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{port + CONTROLLER_OFFSET}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(voters),
        "log.dirs": str(folder / f"broker-{node_id}"),
        "default.replication.factor": str(factor),
        "min.insync.replicas": str(least),
        "offsets.topic.replication.factor": str(factor),
        "transaction.state.log.replication.factor": str(factor),
        "transaction.state.log.min.isr": str(least),
    }


def run_several(brokers: str, data: Path | None, host: str | None, port: int | None, overrides: Sequence[str]) -> int:
    """Format what is not formatted, run the brokers until a signal, and return the exit status."""
    count = broker_count(brokers)
    folder = (data or data_folder(os.environ).parent / "cluster").absolute()
    first_port = FIRST_PORT if port is None else port
    if not 0 < first_port <= 65_535 - CONTROLLER_OFFSET - count:
        raise StartupError(
            f"--port {first_port}: brokers and controllers need ports up to {CONTROLLER_OFFSET} above it"
        )
    nodes = [settings_of(number, count, folder, host or LOOPBACK, first_port) for number in range(1, count + 1)]
    _format(nodes)
    processes = [_spawn(settings, overrides) for settings in nodes]
    print(f"a cluster of {count} brokers: {host or LOOPBACK}:{first_port} and the ports after it, data in {folder}")
    sys.stdout.flush()
    return _wait(processes)


def _format(nodes: Sequence[dict[str, str]]) -> None:
    known = [load_meta_properties(Files(), settings["log.dirs"]) for settings in nodes]
    ids = {one.cluster_id for one in known if one is not None}
    if len(ids) > 1:
        raise StartupError(f"the brokers' folders belong to several clusters ({', '.join(sorted(ids))})")
    cluster_id = next(iter(ids), None) or render_uuid(random_uuid())
    for settings, one in zip(nodes, known, strict=True):
        if one is None:
            format_directories(BrokerConfig(settings), FormatPlan(cluster_id=cluster_id))


def _spawn(settings: dict[str, str], overrides: Sequence[str]) -> subprocess.Popen[bytes]:
    folder = Path(settings["log.dirs"])
    file = folder.with_suffix(".properties")
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    words = [word for one in overrides for word in ("--override", one)]
    command = [sys.executable, "-m", "moldau.cli.server.start", str(file), *words]
    # A session of its own: Ctrl-C reaches this process alone, which then stops them one by one.
    return subprocess.Popen(command, start_new_session=True)


def _wait(processes: list[subprocess.Popen[bytes]]) -> int:
    wants_stop = False

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        nonlocal wants_stop
        wants_stop = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    told: set[int] = set()
    while not wants_stop and any(one.poll() is None for one in processes):
        for place, one in enumerate(processes, start=1):
            if one.poll() is not None and place not in told:
                told.add(place)
                print(f"moldau: broker {place} has ended with status {one.returncode}", file=sys.stderr)
        time.sleep(0.1)
    for one in reversed(processes):
        _stop(one)
    return 0 if wants_stop else 1


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
