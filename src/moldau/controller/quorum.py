"""The quorum: commits a controller's records.

A controller passes records to a `Quorum`, which commits them: on the disks of a majority, in one
order, written by the only leader of their epoch. `QuorumOfOne` is the smallest: one node, whose own disk
is the majority. A replicated quorum can replace it behind the same three members.
Start at `Quorum`.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from moldau.controller.metadata_log import MetadataLog
from moldau.controller.quorum_state import QuorumState, load_quorum_state, save_quorum_state
from moldau.core.activity import Activity
from moldau.log.errors import StorageError
from moldau.protocol.metadata_records import MetadataRecord

__all__ = ["Committed", "Quorum", "QuorumOfOne"]


class Committed(NamedTuple):
    offset: int
    """The offset of the last record."""
    epoch: int


class Quorum(Protocol):
    @property
    def epoch(self) -> int:
        """The epoch in which this node leads."""
        ...

    @property
    def next_offset(self) -> int:
        """The offset that the first record of the next append gets."""
        ...

    async def append(self, records: Sequence[MetadataRecord]) -> Committed:
        """Commit records in their order; returns once they are durable."""
        ...


class QuorumOfOne:
    """A quorum of one voter: every start wins an election, in an epoch never used before."""

    def __init__(self, log: MetadataLog, *, node_id: int, directory_id: uuid.UUID | None = None) -> None:
        self.log = log
        self.node_id = node_id
        self._directory_id = directory_id
        self._epoch = 0
        self._writing = threading.Lock()
        self.activity = Activity("a metadata write", patience_s=0.5)

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def next_offset(self) -> int:
        return self.log.end_offset

    def known_epoch(self) -> int:
        """The newest epoch recorded in the files."""
        return max(load_quorum_state(self.log.partition.files, self.log.directory).leader_epoch, self.log.last_epoch)

    def claim(self) -> Committed:
        """Start the next epoch: first in `quorum-state`, then as the epoch's first record (synced with the next)."""
        files, directory = self.log.partition.files, self.log.directory
        self._epoch = self.known_epoch() + 1
        state = QuorumState(self._epoch, self.node_id, self.node_id, self._directory_id)
        save_quorum_state(files, directory, state)
        offset = self.log.append_leader_change(self.node_id, self._epoch)
        return Committed(offset, self._epoch)

    async def append(self, records: Sequence[MetadataRecord]) -> Committed:
        """Write and sync in a thread: a slow disk must not block clients. The controller makes one change at a time,
        so appends never run concurrently."""
        offset = await asyncio.get_running_loop().run_in_executor(None, self._write, records)
        self._on_committed(offset)
        return Committed(offset, self._epoch)

    def append_now(self, records: Sequence[MetadataRecord]) -> Committed:
        """Like `append`, for use before the event loop runs."""
        offset = self._write(records)
        self._on_committed(offset)
        return Committed(offset, self._epoch)

    def _write(self, records: Sequence[MetadataRecord]) -> int:
        with self._writing, self.activity:
            first_offset = self.next_offset
            offset = self.log.append(records, self._epoch)
            try:
                self.log.flush()
            except StorageError:
                self.log.take_back(first_offset)
                raise
        return offset

    def close(self) -> None:
        """Wait for a change in progress and close the log, which rejects all later changes. Call off the event loop."""
        with self._writing:
            self.log.partition.close()

    def _on_committed(self, offset: int) -> None:
        self.log.partition.high_watermark = offset + 1
