"""`moldau server --brokers 3`: a cluster on one machine, a process and a folder for each broker.

Each is broker and controller; clients connect to port 9092 and those after it, controllers to 10000 above. Folders are
formatted on first use, with one cluster id. Ctrl-C and SIGTERM stop the brokers one after the other, so that each hands
over what it leads; a broker that ends by itself is started again, less often each time. A folder of a node that was
alone (`moldau server --data`) becomes the first broker's, and the others begin with a copy of its metadata. Start at
`run_several`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

from moldau.core.clock import SystemClock
from moldau.core.config import BrokerConfig
from moldau.core.errors import StartupError
from moldau.core.ids import random_uuid, render_uuid
from moldau.log.directories.log_directory import LogDirectory
from moldau.log.directories.meta_properties import MetaProperties, load_meta_properties
from moldau.log.files import Files
from moldau.server.config import LOOPBACK, data_folder, parse_overrides
from moldau.server.directories import FormatPlan, format_directories
from moldau.server.platform.services import CONTROLLER_OFFSET, METRICS_PORT

__all__ = ["broker_count", "check_alone", "folders_of", "prepare", "run_several", "settings_of"]

FIRST_PORT: Final = 9092
PROPERTIES: Final = ".properties"
METRICS: Final = "metrics.http.port"
MOST: Final = 15
PR_SET_PDEATHSIG: Final = 1
STOP_S: Final = 45.0
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 8.0
SOON_S: Final = 5.0
"""A broker that ends sooner than this after its start, after the longest pause too, is given up."""
SETTLED_S: Final = 60.0


def broker_count(text: str) -> int:
    """The number of brokers that `--brokers` asks for; `auto` is one for each two cores, three at least."""
    if text == "auto":
        return max(3, (os.cpu_count() or 2) // 2)
    if not text.isdecimal() or not 2 <= int(text) <= MOST:
        raise StartupError(f"--brokers {text}: give a number from 2 to {MOST}, or auto")
    return int(text)


def settings_of(place: int, folders: Mapping[int, Path], host: str, first_port: int) -> dict[str, str]:
    """The settings of the broker at this place of a cluster on this machine; `folders` are by node id."""
    count, node_ids = len(folders), list(folders)
    node_id, port = node_ids[place], first_port + place
    voters = [f"{one}@{host}:{first_port + each + CONTROLLER_OFFSET}" for each, one in enumerate(node_ids)]
    factor, least = min(3, count), min(2, count - 1)
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{port + CONTROLLER_OFFSET}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(voters),
        "log.dirs": str(folders[node_id]),
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
    folders = folders_of(folder, count)
    given = parse_overrides(overrides)
    metrics = given.pop(METRICS, str(METRICS_PORT))
    if not metrics.isdecimal():
        raise StartupError(f"{METRICS}={metrics}: write the port of the first broker, or 0 for none")
    nodes = [
        settings_of(place, folders, host or LOOPBACK, first_port)
        | {METRICS: str(int(metrics) + place if int(metrics) else 0)}
        for place in range(count)
    ]
    prepare(nodes)
    supervised = [_Supervised(settings, given) for settings in nodes]
    print(f"a cluster of {count} brokers: {host or LOOPBACK}:{first_port} and the ports after it, data in {folder}")
    for settings in nodes:
        print(f"  broker {settings['node.id']}: {settings['listeners']}, {settings['log.dirs']}")
    sys.stdout.flush()
    return _wait(supervised)


def folders_of(folder: Path, count: int) -> dict[int, Path]:
    """The folder of each broker by node id: below `folder`, or beside it where it is that of a node alone."""
    alone = load_meta_properties(Files(), str(folder))
    if alone is None:
        return {number: folder / f"broker-{number}" for number in range(1, count + 1)}
    others = [number for number in range(1, count + 2) if number != alone.node_id][: count - 1]
    return {alone.node_id: folder} | {number: folder.with_name(f"{folder.name}-broker-{number}") for number in others}


def check_alone(folder: Path) -> None:
    """Raise `StartupError` for the folder of a cluster: one broker alone would go on without the others' records."""
    if folder.with_suffix(PROPERTIES).exists() or (folder / "broker-1").with_suffix(PROPERTIES).exists():
        raise StartupError(f"{folder} holds a cluster of several brokers; start it with --brokers and their number")


def prepare(nodes: Sequence[dict[str, str]]) -> None:
    """Format what is not formatted, with the metadata of the first broker if only that one has any."""
    known = [load_meta_properties(Files(), settings["log.dirs"]) for settings in nodes]
    _format(nodes, known)
    if known[0] is not None and not any(known[1:]):
        _copy_metadata(nodes, known[0].cluster_id)


def _copy_metadata(nodes: Sequence[dict[str, str]], cluster_id: str) -> None:
    """Give the other controllers the first one's metadata: empty ones could elect each other, and forget it."""
    from moldau.server.cluster.finder import own_metadata
    from moldau.server.cluster.part import open_metadata_log

    first, *others = (BrokerConfig(settings) for settings in nodes)
    files, clock = Files(), SystemClock()
    directory = LogDirectory(nodes[0]["log.dirs"], files)
    directory.lock()
    try:
        own = own_metadata(first, files, clock, cluster_id)
    finally:
        directory.unlock()
    if own is None:
        return
    for other in others:
        log = open_metadata_log(other, files, clock, _end)
        log.install_snapshot(own.snapshot, own.data)
        log.partition.close()


def _end(error: BaseException) -> None:
    raise StartupError(f"the metadata cannot be copied: {error}") from error


def _format(nodes: Sequence[dict[str, str]], known: Sequence[MetaProperties | None]) -> None:
    ids = {one.cluster_id for one in known if one is not None}
    if len(ids) > 1:
        raise StartupError(f"the brokers' folders belong to several clusters ({', '.join(sorted(ids))})")
    cluster_id = next(iter(ids), None) or render_uuid(random_uuid())
    for settings, one in zip(nodes, known, strict=True):
        if one is None:
            format_directories(BrokerConfig(settings), FormatPlan(cluster_id=cluster_id))


class _Supervised:
    """One broker's process, started again when it ends by itself."""

    def __init__(self, settings: dict[str, str], overrides: Mapping[str, str]) -> None:
        folder = Path(settings["log.dirs"])
        file = folder.with_suffix(PROPERTIES)
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        words = [word for key, value in overrides.items() for word in ("--override", f"{key}={value}")]
        self._command = [sys.executable, "-m", "moldau.cli.server.start", str(file), *words]
        self._node_id = settings["node.id"]
        self._pause_s = FIRST_PAUSE_S
        self._start()

    def _start(self) -> None:
        # A session of its own: Ctrl-C reaches this process alone, which then stops them one by one.
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            self._command,
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - this process has one thread
        )
        self._began = time.monotonic()
        self._again_at = 0.0

    def look(self) -> bool:
        """Start it again when it is due; returns whether it is worth going on."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._again_at:
                self._start()
            return True
        status = self._process.poll()
        if status is None:
            return True
        self._process = None
        if now - self._began < SOON_S and self._pause_s >= LONGEST_PAUSE_S:
            print(f"moldau: broker {self._node_id} has ended with status {status} again and again", file=sys.stderr)
            return False
        self._pause_s = FIRST_PAUSE_S if now - self._began > SETTLED_S else min(self._pause_s * 2, LONGEST_PAUSE_S)
        self._again_at = now + self._pause_s
        print(
            f"moldau: broker {self._node_id} has ended with status {status}; starting it again in {self._pause_s:g} s",
            file=sys.stderr,
        )
        return True

    def stop(self) -> None:
        if self._process is not None:
            _stop(self._process)


def _wait(brokers: Sequence[_Supervised]) -> int:
    wants_stop = False

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        nonlocal wants_stop
        wants_stop = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    hopes = list(brokers)
    while not wants_stop and hopes:
        hopes = [one for one in hopes if one.look()]
        time.sleep(0.1)
    for one in reversed(brokers):
        one.stop()
    return 0 if wants_stop else 1


def _end_with_parent() -> None:
    """Let the kernel stop this process when its supervisor is gone, even by a kill: brokers must not run on alone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
