"""Broken quorums, to show that the rules of the simulation can fail: each breaks one thing the protocol rests on.

A mutant either replaces a function of the core or is a node whose shell does not keep its word. It names the rules that
forbid what it does; being caught by an exception does not count. Start at `MUTANTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from moldau.raft import following, voting
from moldau.raft.effects import Commit, Effect, Flush, SaveElection, TruncateLog
from moldau.raft.log_history import LogHistory, SnapshotId
from moldau.raft.outreach import Outreach
from moldau.raft.replica import Replica
from moldau.raft.roles import Candidate, Leader, Prospective, Unattached
from moldau.raft.voters import VoterSet
from moldau.testing.simulation.raft_node import RaftNode, SavedSnapshot
from moldau.testing.simulation.raft_rules import (
    COMMITTED_IS_ON_DISK,
    COMMITTED_STAYS,
    COMPLETE_LEADER,
    HIGH_WATERMARK,
    LOG_MATCHING,
    ONE_LEADER,
    OWN_EPOCH,
    SNAPSHOTS,
)


@dataclass(frozen=True)
class Mutant:
    name: str
    rules: frozenset[str]
    """The rules that may catch it."""
    node: type[RaftNode] = RaftNode
    target: Any = None
    attribute: str = ""
    replacement: Any = None

    @contextmanager
    def broken(self) -> Iterator[None]:
        if self.target is None:
            yield
        else:
            with patch.object(self.target, self.attribute, self.replacement):
                yield

    def __str__(self) -> str:
        return self.name


# --- shells that do not keep their word -------------------------------------------------------------


class ForgetsVotes(RaftNode):
    """Its election state is never on disk."""

    def _act(self, effect: Effect) -> None:
        if not isinstance(effect, SaveElection):
            super()._act(effect)


class AcknowledgesBeforeSync(RaftNode):
    """A follower that does not sync before it fetches on."""

    def _flush(self, effect: Flush) -> None:
        if self.core is None or self.core.is_leader:
            super()._flush(effect)


class LeadsWithoutSync(RaftNode):
    """A leader that counts itself before its records are on disk."""

    def _flush(self, effect: Flush) -> None:
        if self.core is not None and self.core.is_leader:
            self.tell(lambda core: core.flushed(effect.end_offset, effect.epoch, self.kernel.now_ms))
        else:
            super()._flush(effect)


class SkipsTruncation(RaftNode):
    """Its log keeps the records that it was told to cut off."""

    def _act(self, effect: Effect) -> None:
        if not isinstance(effect, TruncateLog):
            super()._act(effect)


class IgnoresFailedAppends(RaftNode):
    """Goes on after an append that failed, as if the records were there."""

    def _on_failed_append(self, end_offset: int, epoch: int) -> None:
        self.kernel.count("ignored")


class SnapshotsTooMuch(RaftNode):
    """Its snapshots have the uncommitted end of the log, too."""

    def save_snapshot(self, *, is_trimmed: bool) -> None:
        core, log = self.core, self.disk.log
        if core is None or not log.entries or self.applied_offset < log.start_offset:
            return
        last = log.entries[-1]
        data = b"".join(self.applied) + b"".join(
            one.payload for one in log.entries if one.base_offset >= self.applied_offset
        )
        snapshot = SnapshotId(last.last_offset + 1, last.epoch)
        self.disk.snapshots[snapshot] = SavedSnapshot(data, None)
        self.cluster.check_snapshot(self, snapshot)
        del self.disk.snapshots[snapshot]


# --- broken decisions -------------------------------------------------------------------------------

_become_leader = Replica.become_leader
_start = Replica.start


def _commit_any_epoch(replica: Replica, now_ms: int) -> None:
    _become_leader(replica, now_ms)
    assert isinstance(replica.role, Leader)
    replica.role.epoch_start_offset = -1


def _vote_twice(replica: Replica, request: Any) -> bool:
    if not isinstance(replica.role, Unattached | Prospective | Candidate):
        return False
    return (request.last_epoch, request.end_offset) >= (replica.log.last_epoch, replica.log.end_offset)


def _same_offset_is_same_log(log: LogHistory, offset: int, epoch: int) -> bool:
    return log.start_offset <= offset <= log.end_offset


def _believe_the_leader(replica: Replica, reply: Any) -> None:
    batches = tuple(following._following(replica, reply.batches))
    if batches:
        replica.append(batches)
        replica.effects.append(Flush(replica.log.end_offset, replica.epoch))
    replica.advance_high_watermark(reply.high_watermark)


def _move_back(replica: Replica, offset: int) -> bool:
    if offset < 0 or offset == replica.high_watermark:
        return False
    replica.high_watermark = offset
    replica.effects.append(Commit(offset))
    return True


def _lead_again(replica: Replica, now_ms: int) -> None:
    """After a restart, go on leading in the epoch it led in."""
    if replica.election.leader_id == replica.key.id and replica.is_voter:
        replica._enter(Candidate(now_ms, Outreach()))
        replica.become_leader(now_ms)
    else:
        _start(replica, now_ms)


def _drop_all_but_one(voters: VoterSet, replica_id: int) -> VoterSet:
    """Remove more than one voter by one record: a majority before and one after it may have nobody in common."""
    kept = max(one for one in voters.by_id if one != replica_id)
    return VoterSet({kept: voters.by_id[kept]})


def _mutant(name: str, *rules: str, node: type[RaftNode] = RaftNode, **replaced: Any) -> Mutant:
    return Mutant(name, frozenset(rules), node, **replaced)


def _core(target: Any, attribute: str, replacement: Callable[..., Any] | property) -> dict[str, Any]:
    return {"target": target, "attribute": attribute, "replacement": replacement}


MUTANTS = (
    _mutant("a vote is not synced", ONE_LEADER, node=ForgetsVotes),
    _mutant("a vote is given twice", ONE_LEADER, **_core(voting, "_may_vote", _vote_twice)),
    _mutant(
        "half of the voters elect",
        ONE_LEADER,
        COMMITTED_IS_ON_DISK,
        **_core(VoterSet, "majority", property(lambda voters: max(1, len(voters) // 2))),
    ),
    _mutant("a candidate's log is not compared", COMPLETE_LEADER, **_core(voting, "_is_up_to_date", lambda *_: True)),
    _mutant("records of an older epoch are committed", OWN_EPOCH, **_core(Replica, "become_leader", _commit_any_epoch)),
    _mutant("a follower acknowledges before it syncs", COMMITTED_IS_ON_DISK, node=AcknowledgesBeforeSync),
    _mutant("a leader counts what it has not synced", COMMITTED_IS_ON_DISK, node=LeadsWithoutSync),
    _mutant("truncation is skipped", COMMITTED_IS_ON_DISK, COMMITTED_STAYS, HIGH_WATERMARK, node=SkipsTruncation),
    _mutant(
        "divergence is not noticed",
        LOG_MATCHING,
        COMMITTED_IS_ON_DISK,
        COMMITTED_STAYS,
        **_core(LogHistory, "is_prefix", _same_offset_is_same_log),
    ),
    _mutant("a failed append is ignored", COMMITTED_IS_ON_DISK, HIGH_WATERMARK, node=IgnoresFailedAppends),
    _mutant(
        "a follower's high watermark passes its log", HIGH_WATERMARK, **_core(following, "_append", _believe_the_leader)
    ),
    _mutant("the high watermark goes back", HIGH_WATERMARK, **_core(Replica, "advance_high_watermark", _move_back)),
    _mutant(
        "a restarted leader leads on in its epoch",
        LOG_MATCHING,
        COMMITTED_STAYS,
        COMMITTED_IS_ON_DISK,
        OWN_EPOCH,
        **_core(Replica, "start", _lead_again),
    ),
    _mutant(
        "one change removes several voters",
        ONE_LEADER,
        COMPLETE_LEADER,
        COMMITTED_STAYS,
        **_core(VoterSet, "without", _drop_all_but_one),
    ),
    _mutant("a snapshot has uncommitted records", SNAPSHOTS, node=SnapshotsTooMuch),
)
