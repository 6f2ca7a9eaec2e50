"""Two workers, three connectors, and a worker that is killed at any moment: nothing is lost and nothing doubled.

Workers are processes; their tasks run on Spark, or in threads of theirs. Start at `KillRun`; `scripts/connect-kill`
runs many rounds.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import Counter as Counts
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from tests.integration.connect.connectors import rows
from tests.integration.connect.talk import COUNTER, SINK
from tests.integration.server_process import ServerProcess, wait_until

from moldau.client.admin import Admin

__all__ = ["KillRun", "WorkerProcess"]

_STARTED = re.compile(r"Kafka Connect \(\w+ worker\) started: (http://\S+)")
LIMIT = 4000
SESSION_MS = 6000


class WorkerProcess(ServerProcess):
    """`connect-distributed` with a file, in a process of its own."""

    def __init__(self, folder: Path, servers: str, *, engine: str, overrides: dict[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "bootstrap.servers": servers,
            "group.id": "killing",
            "listeners": "http://127.0.0.1:0",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": "killing-configs",
            "offset.storage.topic": "killing-offsets",
            "status.storage.topic": "killing-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "offset.storage.partitions": "3",
            "status.storage.partitions": "1",
            "offset.flush.interval.ms": "500",
            "session.timeout.ms": str(SESSION_MS),
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
            "moldau.connect.engine": engine,
            "moldau.connect.state.dir": str(folder / "state"),
            **(overrides or {}),
        }
        file = folder / "worker.properties"
        file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
        super().__init__(
            [str(file)],
            program=("-m", "moldau.cli.connect.distributed"),
            environment={"PYTHONPATH": os.getcwd()},
        )
        self.folder = folder

    @property
    def url(self) -> str:
        wait_until(lambda: _STARTED.search(self.output) or self.has_ended, timeout_s=180, what="the worker's start")
        found = _STARTED.search(self.output)
        assert found, self.output
        return found.group(1)

    @property
    def worker_id(self) -> str:
        return self.url.removeprefix("http://")

    def kill(self) -> None:
        """Kill the worker, and its engine with all below it, as a machine that stops would."""
        assert self.process is not None
        for pid in [self.process.pid, *_below(self.process.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(30)


def _below(pid: int) -> list[int]:
    """All processes that descend from this one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child)
    return found


class KillRun:
    """A cluster of two workers with a source, another source, and a sink."""

    def __init__(self, folder: Path, servers: str, *, engine: str, seed: int = 0, limit: int = LIMIT) -> None:
        self._folder = folder
        self._servers = servers
        self._engine = engine
        self._limit = limit
        self._count = 0
        self._stack = ExitStack()
        self.random = random.Random(seed)
        self.database = folder / "rows.db"
        self.workers: list[WorkerProcess] = []
        self.overrides: dict[str, str] = {}
        """Settings of the workers that come."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Both workers, with the connectors."""
        with self._stack:
            for _ in range(2):
                self.start_worker()
            for worker in self.workers:
                assert worker.url
            Admin(self._servers, {}).create_topic("killing", partitions=3, replication_factor=1)
            self.make_connectors()
            yield

    def start_worker(self) -> None:
        self._count += 1
        worker = WorkerProcess(
            self._folder / f"worker-{self._count}", self._servers, engine=self._engine, overrides=self.overrides
        )
        self._stack.enter_context(worker)
        self._stack.callback(worker.kill)
        self.workers.append(worker)

    def make_connectors(self) -> None:
        counter = {"connector.class": COUNTER, "topic": "killing", "parts": "4", "limit": str(self._limit)}
        configs = {
            "first": {**counter, "tasks.max": "2", "pause.ms": "20"},
            "second": {**counter, "tasks.max": "1", "pause.ms": "20"},
            "keeper": {"connector.class": SINK, "topics": "killing", "tasks.max": "2", "database": str(self.database)},
        }
        for number, (name, config) in enumerate(configs.items()):
            url = self.workers[number % len(self.workers)].url  # the one that does not lead forwards
            answer = httpx.put(f"{url}/connectors/{name}/config", json=config, timeout=60)
            assert answer.status_code == 201, answer.text

    def placed(self, url: str) -> dict[str, str]:
        """The states of connectors and tasks, by worker."""
        document = httpx.get(f"{url}/connectors?expand=status", timeout=60).json()
        found = {}
        for name, entry in document.items():
            status = entry.get("status")
            if status is None:
                return {}
            found[name] = f"{status['connector']['state']} {status['connector']['worker_id']}"
            for task in status["tasks"]:
                found[f"{name}-{task['id']}"] = f"{task['state']} {task['worker_id']}"
        return found

    def await_running(self, *workers: WorkerProcess, timeout_s: float = 180) -> None:
        """Wait until all connectors and tasks run on these workers, and each has some."""
        ids = {worker.worker_id for worker in workers}

        def is_running() -> bool:
            found = self.placed(workers[0].url)
            states = [one.split() for one in found.values()]
            return (
                len(found) == 8
                and all(state == "RUNNING" for state, _ in states)
                and {where for _, where in states} == ids
            )

        wait_until(is_running, timeout_s=timeout_s, what=f"everything running on {ids}: {self.placed(workers[0].url)}")

    def kill_one(self) -> float:
        """Kill a worker; returns the seconds until the other runs everything."""
        victim = self.workers.pop(self.random.randrange(2))
        victim.kill()
        began = time.monotonic()
        self.await_running(self.workers[0])
        return time.monotonic() - began

    def check(self) -> None:
        """Wait until everything has arrived, and check that each number is there exactly twice: once a source."""
        expected = Counts({f"{part}:{number}": 2 for part in range(4) for number in range(self._limit)})
        wait_until(
            lambda: len(rows(self.database)) >= expected.total(),
            timeout_s=300,
            what=f"all {expected.total()} rows",
        )
        found = Counts(rows(self.database))
        assert found == expected, f"missing {expected - found}, doubled {found - expected}"
