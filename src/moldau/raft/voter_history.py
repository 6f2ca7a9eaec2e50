"""The sets of voters over the log: each takes effect when it is appended, and is taken back if it is truncated.

A static quorum has one set, from the settings, and kraft.version 0. In a dynamic quorum the sets are records of the
log or of a snapshot. Start at `VoterHistory.append`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.raft.records import Batch, KRaftVersionRecord, VotersRecord
from moldau.raft.voters import ReplicaKey, VoterSet

__all__ = ["BEFORE_THE_LOG", "VoterHistory", "VoterState"]

BEFORE_THE_LOG: Final = -1


class VoterState(NamedTuple):
    """The voters and the kraft.version from an offset on."""

    offset: int
    """The offset of the record that set it; -1 for the settings and for the snapshot a log was formatted with."""
    kraft_version: int
    voters: VoterSet


class VoterHistory:
    __slots__ = ("_states",)

    def __init__(self, voters: VoterSet, kraft_version: int = 0) -> None:
        self._states = [VoterState(BEFORE_THE_LOG, kraft_version, voters)]

    @property
    def latest(self) -> VoterState:
        """What counts now, committed or not."""
        return self._states[-1]

    def at(self, end_offset: int) -> VoterState:
        """What the records below `end_offset` say."""
        return next((one for one in reversed(self._states) if one.offset < end_offset), self._states[0])

    def was_voter(self, replica: ReplicaKey, committed_offset: int) -> bool:
        """Whether a set that the uncommitted records replace has this replica."""
        states = self._states
        return len(states) > 1 and states[-1].offset >= committed_offset and states[-2].voters.has(replica)

    def append(self, batch: Batch) -> bool:
        """Take over what a batch says; return whether it says anything about voters."""
        latest = self.latest
        state = latest
        for offset, record in enumerate(batch.control, batch.base_offset):
            if isinstance(record, KRaftVersionRecord):
                state = VoterState(offset, record.version, state.voters)
            elif isinstance(record, VotersRecord):
                state = VoterState(offset, state.kraft_version, record.voters)
        if state is not latest:
            self._states.append(state)
        return state is not latest

    def truncate(self, end_offset: int) -> bool:
        """Take back what was appended from `end_offset` on; return whether there was anything."""
        kept = [one for one in self._states if one.offset < end_offset]
        changed = len(kept) < len(self._states)
        self._states = kept
        return changed

    def start_at(self, end_offset: int, kraft_version: int, voters: VoterSet | None) -> None:
        """Start again from a snapshot. One without voters is a static quorum's: the settings stay."""
        known = self._states[0].voters if voters is None else voters
        offset = BEFORE_THE_LOG if voters is None else end_offset - 1
        self._states = [VoterState(offset, kraft_version, known)]

    def trim(self, end_offset: int) -> None:
        """Forget sets that a snapshot at `end_offset` has made history."""
        current = self.at(end_offset)
        self._states = [one for one in self._states if one.offset >= current.offset]
