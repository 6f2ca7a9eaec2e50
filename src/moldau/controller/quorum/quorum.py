"""The quorum: commits a controller's records.

A controller passes records to a `Quorum`, which commits them: on the disks of a majority, in one
order, written by the only leader of their epoch. `QuorumOfOne` is the smallest: one node, whose own disk
is the majority. It drives the same core (`raft.core`) as a quorum of several, without a network and without timers.
Start at `Quorum`.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple, Protocol

from moldau.controller.metadata_log import MetadataLog
from moldau.controller.quorum.log import QuorumLog, merged
from moldau.core.activity import Activity
from moldau.log.errors import StorageError
from moldau.protocol.metadata_records import MetadataRecord
from moldau.raft.core import QuorumCore
from moldau.raft.effects import Commit, Effect, Flush
from moldau.raft.settings import QuorumSettings
from moldau.raft.voter_history import VoterHistory
from moldau.raft.voters import ReplicaKey, Voter, VoterSet

__all__ = ["Committed", "Quorum", "QuorumOfOne"]

NO_TIME = 0
"""A quorum of one has no timers: nobody is waited for."""


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
        self._disk = QuorumLog(log)
        self._me = Voter(ReplicaKey(node_id, directory_id))
        self._core: QuorumCore | None = None
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
        return max(self._disk.election().epoch, self.log.last_epoch)

    def claim(self) -> Committed:
        """Start the next epoch: first in `quorum-state`, then as the epoch's first record (synced with the next)."""
        core = self._core = QuorumCore(
            self._me,
            QuorumSettings(),
            log=self._disk.history(),
            voters=VoterHistory(VoterSet.of([Voter(ReplicaKey(self.node_id))])),
            election=self._disk.election(),
            random=Random(),
        )
        effects = core.start(NO_TIME)
        self._carry_out(core, [one for one in effects if not isinstance(one, Flush)])
        self._epoch = core.replica.epoch
        return Committed(self.log.end_offset - 1, self._epoch)

    async def append(self, records: Sequence[MetadataRecord]) -> Committed:
        """Write and sync in a thread: a slow disk must not block clients. The controller makes one change at a time,
        so appends never run concurrently."""
        return await asyncio.get_running_loop().run_in_executor(None, self.append_now, records)

    def append_now(self, records: Sequence[MetadataRecord]) -> Committed:
        """Like `append`, for use before the event loop runs."""
        core = self._core
        assert core is not None, "the epoch is not claimed yet"
        with self._writing, self.activity:
            first_offset = self.next_offset
            payload = self.log.encoded(records)
            offset, effects = core.append(payload, len(records), self._epoch, NO_TIME)
            try:
                self._carry_out(core, effects)
            except StorageError:
                self.log.take_back(first_offset)
                core.append_failed(first_offset, self._epoch, NO_TIME)
                raise
        return Committed(offset, self._epoch)

    def _carry_out(self, core: QuorumCore, effects: Iterable[Effect]) -> None:
        waiting = deque(merged(list(effects)))
        while waiting:
            effect = waiting.popleft()
            self._disk.carry_out(effect)
            if isinstance(effect, Flush):
                waiting.extend(core.flushed(effect.end_offset, effect.epoch, NO_TIME))
            elif isinstance(effect, Commit):
                self.log.partition.high_watermark = effect.high_watermark

    def close(self) -> None:
        """Wait for a change in progress and close the log, which rejects all later changes. Call off the event loop."""
        with self._writing:
            self.log.partition.close()
