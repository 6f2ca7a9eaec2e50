"""The Connect workers under measurement, as users start them: moldau's and Apache Kafka's. Start at `Worker`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from bench.brokers import REPOSITORY, ApacheKafka, end, free_port
from bench.machine import Usage, usage_of

__all__ = ["KafkaWorker", "MoldauWorker", "Worker"]

PATIENCE_S = 240.0


class Worker:
    """One worker with settings of its own; a context manager. Connectors are made over its REST API."""

    name: ClassVar[str]

    def __init__(self, folder: Path, bootstrap: str, settings: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        own = {
            "bootstrap.servers": bootstrap,
            "listeners": self.url,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.flush.interval.ms": "1000",
        }
        self._settings = {**own, **self._extra(), **(settings or {})}

    def __enter__(self) -> Worker:
        (self._folder / "worker.properties").write_text("".join(f"{k}={v}\n" for k, v in self._settings.items()))
        with (self._folder / "worker.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command(), stdout=log, stderr=log, cwd=self._folder, env={**os.environ, **self._environment()}
            )
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}'s worker did not start: {self.log()[-2000:]}")
            time.sleep(0.2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._process)

    def log(self) -> str:
        return (self._folder / "worker.log").read_text(errors="replace")

    def usage(self) -> Usage:
        """Of the worker and all that it has started."""
        return usage_of(self._process.pid)

    def make(self, name: str, config: Mapping[str, str]) -> None:
        self._ask("POST", "/connectors", {"name": name, "config": {**config, "name": name}})

    def delete(self, name: str) -> None:
        self._ask("DELETE", f"/connectors/{name}")

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Partitions and offsets of a connector, as far as they are stored."""
        found: list[dict[str, Any]] = self._ask("GET", f"/connectors/{name}/offsets")["offsets"]
        return found

    def check(self) -> None:
        """Raise what made a task fail."""
        for name, entry in self._ask("GET", "/connectors?expand=status").items():
            if "status" not in entry:
                continue  # it was made a moment ago
            for one in (entry["status"]["connector"], *entry["status"]["tasks"]):
                if one["state"] == "FAILED":
                    raise RuntimeError(f"{name} failed: {one.get('trace', '')[-1500:]}")

    def is_running(self, name: str, tasks: int = 1) -> bool:
        try:
            status = self._ask("GET", f"/connectors/{name}/status")
        except urllib.error.HTTPError:
            return False
        self.check()
        return [one["state"] for one in status["tasks"]] == ["RUNNING"] * tasks

    def _is_ready(self) -> bool:
        try:
            self._ask("GET", "/connectors")
        except OSError:
            return False
        return True

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=90) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _extra(self) -> dict[str, str]:
        return {}

    def _environment(self) -> dict[str, str]:
        return {}

    def _command(self) -> list[str]:
        raise NotImplementedError


class MoldauWorker(Worker):
    """A worker of this work tree with its tasks on Spark, in distributed mode unless it is said to be standalone."""

    name = "moldau"

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        settings: Mapping[str, str] | None = None,
        *,
        standalone: bool = False,
    ) -> None:
        self._is_standalone = standalone
        super().__init__(folder, bootstrap, settings)

    def _extra(self) -> dict[str, str]:
        state = {"moldau.connect.state.dir": str(self._folder / "state")}
        if self._is_standalone:
            return {**state, "offset.storage.file.filename": str(self._folder / "offsets")}
        topics = {
            f"{name}.storage.{key}": value
            for name in ("config", "offset", "status")
            for key, value in (("topic", f"bench-{name}"), ("replication.factor", "1"))
        }
        return {**state, **topics, "group.id": "bench", "offset.storage.partitions": "4"}

    def _command(self) -> list[str]:
        if not self._is_standalone:
            return [sys.executable, "-m", "moldau.cli.connect.distributed", "worker.properties"]
        return [sys.executable, "-m", "moldau.cli.connect.standalone", "worker.properties"]

    def _environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(REPOSITORY)}


class KafkaWorker(Worker):
    """Apache Kafka's `connect-standalone` as its own script starts it, with its file connectors."""

    name = "Kafka"

    def _extra(self) -> dict[str, str]:
        return {
            "offset.storage.file.filename": str(self._folder / "offsets"),
            "plugin.discovery": "service_load",  # a scan of all jars takes minutes
        }

    def _command(self) -> list[str]:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        heap = ["-Xms256M", "-Xmx2G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        return ["java", *heap, quiet, "-cp", f"{_jars()}/*", main, "worker.properties"]


def _jars() -> Path:
    cache = Path(os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau")
    folder = cache / f"kafka-connect-{ApacheKafka.VERSION}" / "libs"
    if not folder.is_dir():
        raise RuntimeError("Kafka Connect is not fetched yet; run scripts/fetch-kafka connect")
    return folder
