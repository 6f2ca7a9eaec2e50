"""Kafka Streams in a process of its own: cases in, results out, one line of JSON each.

The program under java/ is compiled once into the cache, under a name that depends on its text. Needs a Java
development kit and the jars of `scripts/fetch-kafka streams`; `missing()` tells why not, for a skip. Start at
`KafkaStreamsOracle`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from tests.oracle.apache_kafka import QUICK_START, VERSION

__all__ = ["KafkaStreamsOracle", "libs", "missing", "needs_kafka_streams"]

SOURCES = Path(__file__).parent / "java" / "oracle"


def libs() -> Path:
    """The folder `scripts/fetch-kafka streams` fills."""
    cache = os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau"
    return Path(cache) / f"kafka-streams-{VERSION}" / "libs"


def missing() -> str | None:
    """Why Kafka Streams cannot be run here, or `None`."""
    if shutil.which("javac") is None:
        return "no javac on PATH: install a Java development kit (Debian, Ubuntu: apt-get install default-jdk-headless)"
    if not libs().is_dir():
        return "Kafka Streams' jars are not there: run scripts/fetch-kafka streams"
    return None


def needs_kafka_streams() -> None:
    """Skip the calling test, with the reason, where Kafka Streams cannot be run."""
    reason = missing()
    if reason:
        pytest.skip(reason)


def compiled() -> Path:
    """The folder with the program's classes; made where it is not there for this text of the program."""
    files = sorted(SOURCES.glob("*.java"))
    text = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
    classes = libs().parent / f"oracle-{text}"
    if not classes.is_dir():
        with tempfile.TemporaryDirectory(dir=libs().parent) as scratch:
            command = ["javac", "-encoding", "UTF-8", "-cp", f"{libs()}/*", "-d", f"{scratch}/classes"]
            subprocess.run([*command, *map(str, files)], check=True)
            try:
                (Path(scratch) / "classes").rename(classes)
            except OSError:
                # Another run was quicker; its classes come from the same text.
                assert classes.is_dir()
    return classes


class KafkaStreamsOracle:
    """A running oracle; `ask` gives it one case and waits for its result."""

    def __init__(self) -> None:
        # In memory where that can be had: most of a case's time goes into opening and closing stores on disk.
        memory = Path("/dev/shm")
        parent = str(memory) if os.access(memory, os.W_OK) else None
        self._state = tempfile.TemporaryDirectory(prefix="kafka-streams-", dir=parent)
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        command = ["java", *QUICK_START, "-Xmx512m", quiet, "-Dfile.encoding=UTF-8"]
        command += ["-cp", f"{compiled()}:{libs()}/*", "oracle.Main", self._state.name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def __enter__(self) -> KafkaStreamsOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, case: dict[str, Any]) -> dict[str, Any]:
        self.send(case)
        return self.receive()

    def send(self, case: dict[str, Any]) -> None:
        """Hand a case over; it is worked on while the caller goes on, until `receive`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the oracle ended with status {self._process.wait()} before it answered")
        result: dict[str, Any] = json.loads(line)
        return result

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)
        self._state.cleanup()
