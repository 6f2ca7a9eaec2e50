"""The folder of one application: its checkpoint, its stores, what its state was made for, and a lock.

A `state.dir` on another file system holds the checkpoint; the lock and the stores that can be asked stay on this
machine. Start at `ApplicationFolder`.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from moldau.pipeline.runtime.checkpoint import Checkpoint
from moldau.pipeline.runtime.errors import AlreadyRunningError, StreamsError
from moldau.pipeline.runtime.files import Files, LocalFiles, local_path
from moldau.pipeline.runtime.settings import StreamsSettings, default_state_dir

__all__ = ["ApplicationFolder"]


class ApplicationFolder:
    """Where an application keeps what must survive it."""

    def __init__(self, settings: StreamsSettings) -> None:
        self.application_id = settings.application_id
        folder = local_path(settings.state_dir)
        self.is_local = folder is not None
        self.local = (folder or Path(default_state_dir())) / settings.application_id
        self.location = str(self.local) if self.is_local else f"{settings.state_dir.rstrip('/')}/{self.application_id}"
        self._lock: IO[str] | None = None

    @property
    def checkpoint_location(self) -> str:
        return f"{self.location}/checkpoint"

    @property
    def layout_file(self) -> str:
        return f"{self.location}/topology.json"

    @property
    def stores_file(self) -> Path:
        return self.local / "stores.sqlite"

    @property
    def process_lock_file(self) -> Path:
        """Locked by Spark's Java process, which may outlive ours for a moment."""
        return self.local / "lock.spark"

    def checkpoint(self, files: Files | None = None) -> Checkpoint:
        """The checkpoint, through these files where it is not on this machine."""
        return Checkpoint(self.checkpoint_location, files or LocalFiles())

    def acquire(self) -> None:
        """Make the folder and lock it; raises `AlreadyRunningError` where another process has."""
        try:
            self.local.mkdir(parents=True, exist_ok=True)
            lock = (self.local / "lock").open("a+")
        except OSError as error:
            raise StreamsError(f"state.dir {self.local} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise AlreadyRunningError(
                f"application {self.application_id} runs already in {self.local} (process {holder}); "
                "stop it first, or give this one another application.id"
            ) from None
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def holds_state(self) -> bool:
        """Whether anything was kept on this machine, beside the locks."""
        return any(one.name not in ("lock", self.process_lock_file.name) for one in self.local.iterdir())

    def delete(self, files: Files | None = None) -> None:
        """Remove the checkpoint and everything made from it; the folder must be acquired."""
        (files or LocalFiles()).delete(self.checkpoint_location)
        (files or LocalFiles()).delete(self.layout_file)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.stores_file}{suffix}").unlink(missing_ok=True)
