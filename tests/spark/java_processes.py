"""Java processes that are there together for the length of a block, each with a log. Start at `JavaProcesses`."""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from moldau.pipeline.spark.driver.java import find_java

__all__ = ["JavaProcesses", "small_java", "until"]

PATIENCE_S = 180


class JavaProcesses(ABC):
    """None is left behind, neither after the block nor where `begin` fails; `folder` gets their logs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            self.begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def begin(self) -> None:
        """Spawn them all, and wait until they can be used."""

    def close(self) -> None:
        """End them all."""
        for process in self.processes:
            process.kill()
            process.wait()

    def spawn(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A Java process with options that suit a small one."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*small_java(), *arguments],
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                cwd=self.folder,
            )
        self.processes.append(process)
        return process

    def log(self, name: str) -> str:
        """What a process has said so far."""
        file = self.folder / f"{name}.log"
        return file.read_text() if file.exists() else ""


def small_java() -> list[str]:
    return [find_java().command, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def until(reached: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait for something; an AssertionError where it does not come."""
    deadline = time.monotonic() + patience_s
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)
