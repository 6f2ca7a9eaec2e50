"""The files by which an engine process is found: who it is, where it listens, and that there is only one.

The folder belongs to the engine. `engine.lock` is held as long as the process lives, so there is one engine for a
folder; `engine.json` says where it listens and carries the token, readable by its user only. A killed engine leaves a
stale `engine.json` behind, which the lock tells from a current one. Start at `EngineFiles`.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moldau.core.errors import StartupError

__all__ = ["EngineAddress", "EngineFiles"]

LOCK_S = 1.0
"""Services hold the lock for an instant when they look whether an engine lives."""


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Where an engine listens, on this machine."""

    pid: int
    port: int
    token: str


class EngineFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock_file = folder / "engine.lock"
        self._address_file = folder / "engine.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the engine of this folder while the block runs; raises `StartupError` if another one is."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock_file.open("a") as lock:
            if not _lock_soon(lock.fileno()):
                raise StartupError(f"another engine process works in {self.folder}; there can be only one")
            try:
                yield
            finally:
                self._address_file.unlink(missing_ok=True)

    def announce(self, port: int, token: str) -> None:
        """Say where this process listens; call within `held`."""
        written = self._address_file.with_suffix(f".{secrets.token_hex(4)}")
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({"pid": os.getpid(), "port": port, "token": token}, file)
        written.rename(self._address_file)

    def find(self) -> EngineAddress | None:
        """The engine that runs now; None if there is none, or it does not listen yet."""
        if not self.is_held():
            return None
        try:
            found = json.loads(self._address_file.read_text())
            return EngineAddress(int(found["pid"]), int(found["port"]), str(found["token"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def is_held(self) -> bool:
        """Whether an engine process lives, listening or not."""
        try:
            with self._lock_file.open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True


def _lock_soon(descriptor: int) -> bool:
    """Whether the lock could be had within `LOCK_S`."""
    deadline = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
