"""The folder of one pipeline: its checkpoint, its stores, the layout of its state, and a lock.

If the folder is on another file system, only the checkpoint is there; the lock and the queryable stores stay on this
machine. Start at `PipelineFolder`.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from moldau.pipeline.runtime.checkpoint import Checkpoint
from moldau.pipeline.runtime.errors import AlreadyRunningError, StreamsError
from moldau.pipeline.runtime.files import Files, LocalFiles, local_path
from moldau.pipeline.runtime.identity import PipelineIdentity

__all__ = ["PipelineFolder"]


class PipelineFolder:
    """The persistent files of a pipeline."""

    def __init__(self, identity: PipelineIdentity) -> None:
        self._identity = identity
        folder = local_path(identity.folder)
        self.is_local = folder is not None
        self.is_declared_shared = identity.folder.startswith("file:")
        """Whether a `file:` URI declares that every machine of a Spark cluster sees the same folder."""
        self.local = folder or identity.local_folder
        self.location = str(folder) if folder is not None else identity.folder
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
        """Locked by Spark's Java process, which may outlive this process for a moment."""
        return self.local / "lock.spark"

    def checkpoint(self, files: Files | None = None) -> Checkpoint:
        """The checkpoint; `files` is the file system if it is not on this machine."""
        return Checkpoint(self.checkpoint_location, files or LocalFiles())

    def acquire(self) -> None:
        """Create the folder and lock it; raises `AlreadyRunningError` if another process holds the lock."""
        try:
            self.local.mkdir(parents=True, exist_ok=True)
            lock = (self.local / "lock").open("a+")
        except OSError as error:
            raise StreamsError(f"the state folder {self.local} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise AlreadyRunningError(
                f"{self._identity.title} runs already in {self.local} (process {holder}); "
                f"stop it first, or give this one another {self._identity.name_setting}"
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
        """Whether this machine's folder contains anything except the locks."""
        return any(one.name not in ("lock", self.process_lock_file.name) for one in self.local.iterdir())

    def delete(self, files: Files | None = None) -> None:
        """Remove the checkpoint and everything derived from it; the folder must be acquired."""
        (files or LocalFiles()).delete(self.checkpoint_location)
        (files or LocalFiles()).delete(self.layout_file)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.stores_file}{suffix}").unlink(missing_ok=True)
