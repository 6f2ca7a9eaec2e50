"""Apache Kafka itself, as a judge: its tools as functions, its broker as a context manager.

Needs a Java runtime and the jars of `scripts/fetch-kafka`; `missing()` tells why not, for a skip.
Nothing here knows moldau. Start at `ApacheKafka` and `run_tool`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pytest
from tests.free_ports import free_port

__all__ = ["ApacheKafka", "java_command", "libs", "missing", "needs_apache_kafka", "run_tool"]

VERSION = "4.3.1"
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""For short-lived tools: half the start-up time. A broker under a benchmark must not get these."""

READY_LINE = "Kafka Server started"


def libs() -> Path:
    """The folder `scripts/fetch-kafka` fills."""
    cache = os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau"
    return Path(cache) / f"kafka-{VERSION}" / "libs"


def missing() -> str | None:
    """Why Apache Kafka cannot be run here, or `None`."""
    if shutil.which("java") is None:
        return "no java on PATH"
    if not libs().is_dir():
        return "Apache Kafka's jars are not there: run scripts/fetch-kafka"
    return None


def needs_apache_kafka() -> None:
    """Skip the calling test, with the reason, where Apache Kafka cannot be run."""
    reason = missing()
    if reason:
        pytest.skip(reason)


def java_command(class_name: str, arguments: Sequence[str] = (), *, flags: Sequence[str] = QUICK_START) -> list[str]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    # Java 17 takes the first two for its standard streams, later ones the third; by default it would ask the locale.
    unicode = [f"-D{name}=UTF-8" for name in ("file.encoding", "sun.stdout.encoding", "stdout.encoding")]
    return ["java", *flags, quiet, *unicode, "-cp", f"{libs()}/*", class_name, *arguments]


def run_tool(
    class_name: str, arguments: Sequence[str] = (), *, stdin: str | None = None, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end, e.g. `run_tool("org.apache.kafka.tools.TopicCommand", [...])`."""
    return subprocess.run(
        java_command(class_name, arguments),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=timeout_s,
        check=False,
    )


class ApacheKafka:
    """A one-node Apache Kafka (KRaft, broker and controller in one) on free ports in a folder of its own.

    `bootstrap` is ready to use inside the `with` block. A folder given by the caller is kept and may be started
    again; one made here goes away. `stop` and `start` may be called inside the block too.
    """

    def __init__(
        self,
        directory: Path | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        jvm_flags: Sequence[str] = ("-Xmx512m", *QUICK_START),
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="apache-kafka-") if directory is None else None
        self.directory = Path(self._temporary.name) if self._temporary else Path(str(directory))
        self.log_dir = self.directory / "data"
        self.output = self.directory / "server.out"
        self.port, self.controller_port = free_port(), free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None
        self._properties = dict(properties or {})
        self._jvm_flags = tuple(jvm_flags)

    def __enter__(self) -> ApacheKafka:
        needs_apache_kafka()
        self.format()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._temporary:
            self._temporary.cleanup()

    @property
    def properties_file(self) -> Path:
        return self.directory / "server.properties"

    def format(self) -> None:
        """Write the configuration and format the data folder, unless that happened before, by whomever."""
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self.properties_file.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))
        if (self.log_dir / "meta.properties").exists():
            return
        arguments = ["format", "-t", "bW9sZGF1LW9yYWNsZS0wMQ", "-c", str(self.properties_file)]
        done = run_tool("kafka.tools.StorageTool", arguments)
        if done.returncode:
            raise RuntimeError(f"Apache Kafka could not format {self.log_dir}: {done.stdout}{done.stderr}")

    def start(self, *, timeout_s: float = 60) -> None:
        """Start the broker and wait until it says it has started."""
        command = java_command("kafka.Kafka", [str(self.properties_file)], flags=self._jvm_flags)
        command = [word.replace("defaultLogLevel=warn", "defaultLogLevel=info") for word in command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        ended_or_ready, ready = threading.Event(), threading.Event()
        threading.Thread(target=self._copy_output, args=(self.process, ended_or_ready, ready), daemon=True).start()
        ended_or_ready.wait(timeout_s)
        if not ready.is_set():
            self.stop()
            raise RuntimeError(f"Apache Kafka did not start:\n{self.output.read_text()[-4000:]}")

    def stop(self, *, timeout_s: float = 30) -> None:
        """Shut down cleanly; kill what does not end in time."""
        process, self.process = self.process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _copy_output(
        self, process: subprocess.Popen[str], ended_or_ready: threading.Event, ready: threading.Event
    ) -> None:
        assert process.stdout is not None
        with self.output.open("a") as copy, process.stdout as lines:
            for line in lines:
                copy.write(line)
                copy.flush()
                if READY_LINE in line:
                    ready.set()
                    ended_or_ready.set()
        ended_or_ready.set()

    def _settings(self) -> dict[str, str]:
        node_id = self._properties.get("node.id", "1")
        return {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "controller.quorum.voters": f"{node_id}@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self._properties,
        }
