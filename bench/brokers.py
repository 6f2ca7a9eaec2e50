"""The two brokers as processes: start, time to the first acknowledged record, usage, kill, stop.

Both run with their default settings on a free port of the loopback interface, each in a folder of its own.
What is done with them is `bench.workloads`. Start at `BrokerProcess`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from bench import clients
from bench.machine import Usage, usage_of

__all__ = ["ApacheKafka", "BrokerError", "BrokerProcess", "Moldau", "end", "free_port"]

REPOSITORY = Path(__file__).parent.parent
READY_TOPIC = "bench-ready"


class BrokerError(Exception):
    """A broker that did not start or did not answer."""


class BrokerProcess:
    """One broker; a context manager that starts it on entry and leaves nothing behind on exit."""

    name: ClassVar[str]

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.port = free_port()
        self.settings = dict(settings or {})
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> BrokerProcess:
        self.prepare()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} is not running"
        return self.process.pid

    def prepare(self) -> None:
        """Write the configuration and whatever must exist before the first start."""
        self.data.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{key}={value}\n" for key, value in (self._properties() | self.settings).items())
        (self.directory / "server.properties").write_text(text)

    def start(self, *, timeout_s: int = 180) -> float:
        """Start the process; return the seconds from its start to the acknowledgement of one record."""
        waiting = subprocess.Popen(
            clients.command("socket_load", "first", port=self.port, topic=READY_TOPIC, timeout=timeout_s),
            stdout=subprocess.PIPE,
        )
        with (self.directory / "output").open("ab") as output:
            started_ns = time.monotonic_ns()
            self.process = subprocess.Popen(self._command(), stdout=output, stderr=output, cwd=self.directory)
        answer, _ = waiting.communicate()
        if waiting.returncode:
            tail = (self.directory / "output").read_text(errors="replace")[-2000:]
            self.stop()
            raise BrokerError(f"{self.name} acknowledged nothing within {timeout_s} s of its start:\n{tail}")
        return (int(answer.split(b":")[1].strip(b" }\n")) - started_ns) / 1e9

    def stop(self, *, timeout_s: float = 60) -> None:
        """Ask it to end; kill it if it does not."""
        process, self.process = self.process, None
        if process is None:
            return
        end(process, timeout_s)

    def kill(self) -> None:
        """End it as the kernel's out-of-memory killer would."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def usage(self) -> Usage:
        return usage_of(self.pid)

    def create_topic(self, topic: str, partitions: int = 1, **config: object) -> None:
        pairs = ",".join(f"{key.replace('_', '.')}={value}" for key, value in config.items())
        clients.run("rdkafka_load", "create", brokers=self.bootstrap, topic=topic, partitions=partitions, config=pairs)

    def alter_topic(self, topic: str, **config: object) -> None:
        pairs = ",".join(f"{key.replace('_', '.')}={value}" for key, value in config.items())
        clients.run("rdkafka_load", "alter", brokers=self.bootstrap, topic=topic, config=pairs)

    def delete_topic(self, topic: str) -> None:
        with contextlib.suppress(clients.ClientError):
            clients.run("rdkafka_load", "delete", brokers=self.bootstrap, topic=topic)

    def _properties(self) -> dict[str, str]:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError


class Moldau(BrokerProcess):
    """This work tree's broker, run by the Python that runs the benchmark."""

    name = "moldau"

    def _properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data),
            # Two of them may run at once, and both would want the default port of the metrics.
            "metrics.http.port": "0",
        }

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "moldau.cli.main", "server", "server.properties"]


class ApacheKafka(BrokerProcess):
    """Apache Kafka as its own scripts start it: 1 GiB of heap, G1, one KRaft node."""

    name = "Kafka"
    VERSION: ClassVar[str] = "4.3.1"

    def prepare(self) -> None:
        super().prepare()
        format_command = ["format", "--ignore-formatted", "-t", "bW9sZGF1LWJlbmNoLTAwMQ", "-c", "server.properties"]
        subprocess.run(
            self._java("kafka.tools.StorageTool", *format_command),
            cwd=self.directory,
            check=True,
            capture_output=True,
        )

    def _properties(self) -> dict[str, str]:
        controller_port = free_port()
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }

    def _command(self) -> list[str]:
        collector = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
        others = ["-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"]
        heap = ["-Xmx1G", "-Xms1G", "-server"]
        return self._java("kafka.Kafka", "server.properties", flags=[*heap, *collector, *others])

    def _java(self, class_name: str, *arguments: str, flags: list[str] | None = None) -> list[str]:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *(flags or []), quiet, "-cp", f"{_kafka_jars()}/*", class_name, *arguments]


def end(process: subprocess.Popen[Any], timeout_s: float = 60) -> None:
    """Ask a program to end; kill it if it does not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _kafka_jars() -> Path:
    cache = Path(os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau")
    folder = cache / f"kafka-{ApacheKafka.VERSION}" / "libs"
    if not folder.is_dir():
        subprocess.run([REPOSITORY / "scripts" / "fetch-kafka"], check=True, stdout=subprocess.DEVNULL)
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
