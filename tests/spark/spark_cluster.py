"""A Spark cluster on this machine: a master and workers, each a process, from the jars of the PySpark package.

What runs on it is a real cluster's: drivers find executors through the master, tasks and files travel over sockets.
Start at `SparkCluster`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pyspark

from moldau.pipeline.spark.java import found_java

__all__ = ["SparkCluster", "until"]

PATIENCE_S = 60
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")


class SparkCluster:
    """A master with so many workers of one core each, on free ports; `folder` gets their logs and files."""

    def __init__(self, folder: Path, *, workers: int = 2, cores: int = 1) -> None:
        self._folder = folder
        self._count = workers
        self._cores = cores
        self._processes: list[subprocess.Popen[bytes]] = []
        self.url = ""
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> SparkCluster:
        try:
            self._spawn("master", "org.apache.spark.deploy.master.Master", "--port", "0")
            until(lambda: bool(_MASTER.findall(self.log("master"))))
            self.url = _MASTER.findall(self.log("master"))[0]
            for number in range(self._count):
                self.add_worker(f"worker-{number}")
            until(lambda: self.log("master").count("Registering worker") == self._count)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add_worker(self, name: str) -> None:
        """One more; it says to the master that it is there within seconds."""
        settings = ["-c", str(self._cores), "-m", "1g", "--port", "0", "--work-dir", str(self._folder / name)]
        self.workers.append(self._spawn(name, "org.apache.spark.deploy.worker.Worker", *settings, self.url))

    def kill_worker(self, worker: subprocess.Popen[bytes]) -> int:
        """Kill -9 a worker with its executors and their Python processes; how many processes that were."""
        victims = [worker.pid, *_descendants(worker.pid)]
        for pid in victims:
            _signal(pid, signal.SIGKILL)
        worker.wait()
        self.workers.remove(worker)
        return len(victims)

    def executors(self, worker: subprocess.Popen[bytes]) -> list[int]:
        """The Java processes that a worker has started for drivers."""
        return _children(worker.pid)

    def log(self, name: str) -> str:
        """What a process has said so far."""
        file = self._folder / f"{name}.log"
        return file.read_text() if file.exists() else ""

    def close(self) -> None:
        everyone = [pid for process in self._processes for pid in (process.pid, *_descendants(process.pid))]
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(PATIENCE_S)
        for pid in everyone:
            _signal(pid, signal.SIGKILL)

    def _spawn(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        # What `spark-class` would run, without the second Java that it asks how to.
        java = [
            found_java().command,
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            f"{home}/jars/*",
        ]
        command = [*java, main, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SCALA_VERSION": "2.13"}
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **own}, cwd=self._folder)
        self._processes.append(process)
        return process


def until(reached: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for something; an AssertionError where it does not come."""
    deadline = time.monotonic() + patience_s
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _children(pid: int) -> list[int]:
    """Of all threads of a process."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in tasks.read_text().split()]
        except OSError:
            continue
    return found


def _descendants(pid: int) -> list[int]:
    return [one for child in _children(pid) for one in (child, *_descendants(child))]
