"""Kafka Connect's own classes in a process of their own: cases in, results out, one line of JSON each.

Needs a Java development kit and the jars of `scripts/fetch-kafka connect`; `missing()` tells why not, for a skip.
Start at `ConnectOracle`.
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

__all__ = ["ConnectOracle", "missing", "needs_connect"]

SOURCE = Path(__file__).parent / "java" / "oracle" / "ConnectOracle.java"


def libs() -> Path:
    """The folder `scripts/fetch-kafka connect` fills."""
    cache = os.environ.get("MOLDAU_CACHE") or Path.home() / ".cache" / "moldau"
    return Path(cache) / f"kafka-connect-{VERSION}" / "libs"


def missing() -> str | None:
    """Why Connect's classes cannot be run here, or `None`."""
    if not os.environ.get("MOLDAU_CONNECT_ORACLE"):
        return "runs by hand: scripts/connect-oracle"
    if shutil.which("javac") is None:
        return "no javac on PATH: install a Java development kit (Debian, Ubuntu: apt-get install default-jdk-headless)"
    if not libs().is_dir():
        return "Kafka Connect's jars are not there: run scripts/fetch-kafka connect"
    return None


def needs_connect() -> None:
    """Skip the calling test, with the reason, where Connect's classes cannot be run."""
    reason = missing()
    if reason:
        pytest.skip(reason)


def compiled() -> Path:
    """The folder with the program's classes; made where it is not there for this text of the program."""
    classes = libs().parent / f"oracle-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    if not classes.is_dir():
        with tempfile.TemporaryDirectory(dir=libs().parent) as scratch:
            command = ["javac", "-encoding", "UTF-8", "-cp", f"{libs()}/*", "-d", f"{scratch}/classes", str(SOURCE)]
            subprocess.run(command, check=True)
            try:
                (Path(scratch) / "classes").rename(classes)
            except OSError:
                # Another run was quicker; its classes come from the same text.
                assert classes.is_dir()
    return classes


class ConnectOracle:
    """A running oracle; `ask` gives it one case and waits for its result."""

    def __init__(self) -> None:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        command = ["java", *QUICK_START, "-Xmx256m", quiet, "-Dfile.encoding=UTF-8", "-Duser.timezone=UTC"]
        command += ["-cp", f"{compiled()}:{libs()}/*", "oracle.ConnectOracle"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
        )

    def __enter__(self) -> ConnectOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(30)

    def ask(self, case: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the oracle ended with status {self._process.wait()} before it answered")
        result: dict[str, Any] = json.loads(line)
        return result
