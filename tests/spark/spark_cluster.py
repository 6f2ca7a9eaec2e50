"""A Spark cluster on this machine: a master and workers, each a process, from the jars of the PySpark package.

What runs on it is a real cluster's: drivers find executors through the master, tasks and files travel over sockets.
Start at `SparkCluster`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pyspark
from tests.spark.java_processes import PATIENCE_S, JavaProcesses, until

__all__ = ["SparkCluster"]

_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")


class SparkCluster(JavaProcesses):
    """A master with so many workers of one core each, on free ports; `folder` gets their logs and files."""

    def __init__(self, folder: Path, *, workers: int = 2, cores: int = 1) -> None:
        super().__init__(folder)
        self._count = workers
        self._cores = cores
        self.url = ""
        self.workers: list[subprocess.Popen[bytes]] = []

    def begin(self) -> None:
        self._spawn("master", "org.apache.spark.deploy.master.Master", "--port", "0")
        until(lambda: bool(_MASTER.findall(self.log("master"))))
        self.url = _MASTER.findall(self.log("master"))[0]
        for number in range(self._count):
            self.add_worker(f"worker-{number}")
        until(lambda: self.log("master").count("Registering worker") == self._count)

    def add_worker(self, name: str) -> None:
        """One more; it says to the master that it is there within seconds."""
        settings = ["-c", str(self._cores), "-m", "1g", "--port", "0", "--work-dir", str(self.folder / name)]
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

    def python_processes(self, worker: subprocess.Popen[bytes]) -> int:
        """How many processes are below a worker's executors."""
        return sum(len(_descendants(executor)) for executor in self.executors(worker))

    def close(self) -> None:
        everyone = [pid for process in self.processes for pid in (process.pid, *_descendants(process.pid))]
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE_S)
        for pid in everyone:
            _signal(pid, signal.SIGKILL)

    def _spawn(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        # What `spark-class` would run, without the second Java that it asks how to.
        own = ["-cp", f"{home}/jars/*", main, "--host", "127.0.0.1", "--webui-port", "0"]
        environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SCALA_VERSION": "2.13"}
        return self.spawn(name, [*own, *arguments], environment)


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
