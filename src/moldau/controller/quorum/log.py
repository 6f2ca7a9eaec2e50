"""The raft core's log on disk: the metadata log, and `quorum-state` beside it.

`raft.core` decides, and this carries out what concerns the disk, in the calling thread; whoever drives a core calls it
in the order of the effects. Control records are encoded here. Start at `QuorumLog.carry_out`.
"""

from __future__ import annotations

from collections.abc import Sequence

from moldau.controller.metadata_log import MetadataLog
from moldau.controller.quorum.records import batches_in, control_values
from moldau.controller.quorum.state import NOBODY, QuorumState, load_quorum_state, save_quorum_state
from moldau.log.errors import TRANSIENT_ERRNOS, StorageError
from moldau.protocol.record_batch import CONTROL_BIT
from moldau.protocol.records import Record, control_key, encode_batch
from moldau.raft.effects import AppendBatches, Effect, ElectionState, Flush, SaveElection, TruncateLog
from moldau.raft.log_history import UNKNOWN_EPOCH, LogHistory, SnapshotId
from moldau.raft.records import Batch, ControlRecord
from moldau.raft.voter_history import VoterHistory, VoterState
from moldau.raft.voters import ReplicaKey, VoterSet

__all__ = ["QuorumLog", "merged"]

READ_BYTES = 1024 * 1024


class QuorumLog:
    def __init__(self, log: MetadataLog) -> None:
        self.log = log

    # --- what a core starts with ------------------------------------------------------------------------

    def history(self) -> LogHistory:
        """What the files say; the metadata log must be loaded."""
        partition, snapshot = self.log.partition, self.log.last_snapshot
        known = None if snapshot is None else SnapshotId(*snapshot)
        start_offset = partition.log_start_offset
        start_epoch = 0
        if known is not None and start_offset == known.end_offset:
            start_epoch = known.epoch
        elif start_offset > 0:
            start_epoch = UNKNOWN_EPOCH
        return LogHistory(
            start_offset=start_offset,
            start_epoch=start_epoch,
            end_offset=partition.log_end_offset,
            epochs=partition.leader_epochs.entries,
            snapshot=known,
        )

    def voters(self, configured: VoterSet, snapshot: VoterState | None) -> VoterHistory:
        """The voters of the settings, or of the newest snapshot, and the changes that the log has after it."""
        voters = VoterHistory(configured)
        offset = self.log.partition.log_start_offset
        if self.log.last_snapshot is not None:
            offset = max(offset, self.log.last_snapshot.end_offset)
            if snapshot is not None:
                voters.start_at(self.log.last_snapshot.end_offset, snapshot.kraft_version, snapshot.voters)
        while offset < self.log.end_offset:
            batches = batches_in(self.log.read(offset, READ_BYTES))
            if not batches:
                break
            for batch in batches:
                voters.append(batch)
            offset = batches[-1].last_offset + 1
        return voters

    def election(self) -> ElectionState:
        state = load_quorum_state(self.log.partition.files, self.log.directory)
        voted = None if state.voted_id == NOBODY else ReplicaKey(state.voted_id, state.voted_directory_id)
        return ElectionState(state.leader_epoch, state.leader_id, voted)

    def make_durable(self) -> None:
        """Sync what a killed process may have left in the page cache only: a node's first fetch vouches for it."""
        if self.log.partition.recovery_point < self.log.end_offset:
            self.log.flush()

    # --- effects ----------------------------------------------------------------------------------------

    def carry_out(self, effect: Effect) -> None:
        """Carry out an effect that concerns the disk; raises `StorageError` or `FatalDiskError`."""
        if isinstance(effect, SaveElection):
            self._save_election(effect.state)
        elif isinstance(effect, AppendBatches):
            for batch in effect.batches:
                self.append(batch)
        elif isinstance(effect, Flush):
            self.log.flush()
        elif isinstance(effect, TruncateLog):
            self.log.take_back(effect.end_offset)

    def _save_election(self, state: ElectionState) -> None:
        voted_id = NOBODY if state.voted is None else state.voted.id
        saved = QuorumState(state.epoch, state.leader_id, voted_id, state.voted_directory_id)
        try:
            save_quorum_state(self.log.partition.files, self.log.directory, saved)
        except OSError as error:
            if error.errno in TRANSIENT_ERRNOS:
                raise StorageError(f"{self.log.directory}: the election state cannot be written: {error}") from error
            raise

    def append(self, batch: Batch) -> None:
        """Append a batch at the log's end, in its epoch; offset and epoch are written into it.

        One that was decided before an earlier append failed does not belong there any more, and is skipped.
        """
        if batch.base_offset != self.log.end_offset:
            return
        self.log.append_batch(batch.payload or self._encoded(batch.control), batch.epoch)

    def _encoded(self, records: Sequence[ControlRecord]) -> bytes:
        values = control_values(records)
        encoded = [Record(delta, 0, control_key(kind), value) for delta, (kind, value) in enumerate(values)]
        return encode_batch(encoded, base_timestamp=self.log.now_ms(), attributes=CONTROL_BIT)


def merged(effects: Sequence[Effect]) -> list[Effect]:
    """The same effects with fewer writes: of states saved one after the other, only the last."""
    kept: list[Effect] = []
    for effect in effects:
        if isinstance(effect, SaveElection) and kept and isinstance(kept[-1], SaveElection):
            kept.pop()
        kept.append(effect)
    return kept
