"""The core of a quorum's replica: facts and the time in, effects out. No I/O, no clock, no threads.

A shell tells it what happens (`on_request`, `on_reply`, `on_time`, `append`, `flushed`, ...) and carries out the
effects each call returns, in order (`raft.effects` says what the order is for). It calls `on_time` at
`next_deadline_ms`. A quorum of one is the same code: it elects itself at `start`. Start at `QuorumCore.on_request`.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from moldau.core.errors import ErrorCode
from moldau.raft import following, leading, voter_changes, voting
from moldau.raft.effects import Effect, ElectionState, Flush
from moldau.raft.log_history import LogHistory, SnapshotId
from moldau.raft.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    EpochReply,
    FetchReply,
    FetchRequest,
    FetchSnapshotReply,
    FetchSnapshotRequest,
    RemoveVoterRequest,
    Reply,
    Request,
    UpdateVoterRequest,
    VersionsReply,
    VersionsRequest,
    VoteReply,
    VoteRequest,
    VoterReply,
)
from moldau.raft.outreach import NEVER
from moldau.raft.records import Batch
from moldau.raft.replica import QuorumBrokenError, Replica
from moldau.raft.roles import Candidate, Follower, Leader, Progress, Prospective, Resigned, Unattached
from moldau.raft.settings import QuorumSettings
from moldau.raft.voter_history import VoterHistory, VoterState
from moldau.raft.voters import Voter

__all__ = ["NotLeaderError", "QuorumCore", "QuorumView"]


class NotLeaderError(QuorumBrokenError):
    """Records were to be appended in an epoch in which this node does not lead."""

    code = ErrorCode.NOT_CONTROLLER
    retriable = True


class QuorumView(NamedTuple):
    """The quorum as this node sees it, for DescribeQuorum and metrics."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: list[Progress]
    observers: list[Progress]


class QuorumCore:
    def __init__(
        self,
        me: Voter,
        settings: QuorumSettings,
        *,
        log: LogHistory,
        voters: VoterHistory,
        election: ElectionState,
        random: Random,
    ) -> None:
        self.replica = Replica(me, settings, log=log, voters=voters, election=election, random=random)

    # --- facts ------------------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        return isinstance(self.replica.role, Leader)

    @property
    def high_watermark(self) -> int:
        """Everything below it is committed; -1 while that is not known."""
        return self.replica.high_watermark

    def voters_at(self, end_offset: int) -> VoterState:
        """What a snapshot that ends at `end_offset` must say about the voters."""
        return self.replica.voters.at(end_offset)

    def view(self) -> QuorumView:
        replica, role = self.replica, self.replica.role
        known = role.progress if isinstance(role, Leader) else {}
        voters = []
        for voter in replica.voter_set:
            match = next((one for key, one in known.items() if voter.is_replica(key)), Progress(voter.key))
            voters.append(Progress(replica.key, replica.log.end_offset) if voter.is_replica(replica.key) else match)
        observers = [one for key, one in known.items() if not replica.voter_set.has(key)]
        return QuorumView(replica.hint().leader_id, replica.epoch, replica.high_watermark, voters, observers)

    def next_deadline_ms(self) -> int:
        """When `on_time` is due, at the latest."""
        role = self.replica.role
        if self.replica.is_closing:
            return NEVER
        due_ms = role.outreach.next_ms()
        if isinstance(role, Leader):
            parked_ms = min((one.deadline_ms for one in role.parked), default=NEVER)
            check_ms = NEVER if self.replica.voter_set.is_only(self.replica.key) else role.check_deadline_ms
            return min(due_ms, parked_ms, check_ms, role.probe.next_ms(), voter_changes.next_deadline_ms(role))
        if isinstance(role, Follower):
            return min(due_ms, role.deadline_ms, role.update.next_ms())
        return min(due_ms, role.deadline_ms)

    # --- what happens -----------------------------------------------------------------------------------

    def start(self, now_ms: int) -> list[Effect]:
        self.replica.start(now_ms)
        return self._decided(now_ms)

    def close(self, now_ms: int) -> list[Effect]:
        """Shut down: a leader resigns, so that the others need not wait for their timeouts."""
        if isinstance(self.replica.role, Leader):
            self.replica.become_resigned(now_ms)
        effects = self._decided(now_ms)
        self.replica.is_closing = True
        return effects

    def on_request(self, ticket: object, request: Request, now_ms: int) -> list[Effect]:
        """A request of another node; its `Answer` has the same ticket, now or later."""
        replica = self.replica
        if isinstance(request, VoteRequest):
            replica.answer(ticket, voting.on_vote(replica, request, now_ms))
        elif isinstance(request, BeginEpochRequest):
            replica.answer(ticket, voting.on_begin_epoch(replica, request, now_ms))
        elif isinstance(request, EndEpochRequest):
            replica.answer(ticket, voting.on_end_epoch(replica, request, now_ms))
        elif isinstance(request, FetchRequest):
            leading.on_fetch(replica, ticket, request, now_ms)
        elif isinstance(request, FetchSnapshotRequest):
            leading.on_fetch_snapshot(replica, ticket, request, now_ms)
        elif isinstance(request, AddVoterRequest):
            voter_changes.on_add_voter(replica, ticket, request, now_ms)
        elif isinstance(request, RemoveVoterRequest):
            voter_changes.on_remove_voter(replica, ticket, request, now_ms)
        elif isinstance(request, UpdateVoterRequest):
            voter_changes.on_update_voter(replica, ticket, request, now_ms)
        elif isinstance(request, VersionsRequest):
            me = replica.me
            reply = VersionsReply(ErrorCode.NONE, replica.hint(), me.min_kraft_version, me.max_kraft_version)
            replica.answer(ticket, reply)
        return self._decided(now_ms)

    def on_reply(self, peer: int, number: int, reply: Reply, now_ms: int) -> list[Effect]:
        """The reply to the request with this number; every reply may tell of a newer epoch."""
        replica = self.replica
        replica.learn(reply.leader, now_ms)
        if isinstance(reply, VoteReply):
            voting.on_vote_reply(replica, peer, number, reply, now_ms)
        elif isinstance(reply, EpochReply):
            leading.on_epoch_reply(replica, peer, number, reply, now_ms)
        elif isinstance(reply, FetchReply):
            following.on_fetch_reply(replica, peer, number, reply, now_ms)
        elif isinstance(reply, FetchSnapshotReply):
            following.on_fetch_snapshot_reply(replica, peer, number, reply, now_ms)
        elif isinstance(reply, VersionsReply):
            voter_changes.on_versions_reply(replica, peer, number, reply, now_ms)
        elif isinstance(reply, VoterReply):
            following.on_update_reply(replica, peer, number, reply, now_ms)
        return self._decided(now_ms)

    def on_failure(self, peer: int, number: int, now_ms: int) -> list[Effect]:
        """A request could not be sent, or its connection broke: repeat it soon rather than at its timeout."""
        role, backoff_ms = self.replica.role, self.replica.settings.retry_backoff_ms
        if role.outreach.fail(peer, number, now_ms, backoff_ms) and isinstance(role, Unattached):
            self.replica.look_elsewhere(now_ms + following.pause_ms(self.replica, role))
        if isinstance(role, Leader):
            role.probe.fail(peer, number, now_ms, backoff_ms)
        elif isinstance(role, Follower):
            role.update.fail(peer, number, now_ms, backoff_ms)
        return self._decided(now_ms)

    def on_time(self, now_ms: int) -> list[Effect]:
        replica, role = self.replica, self.replica.role
        if isinstance(role, Leader):
            leading.serve_parked(replica, role, now_ms)
            voter_changes.on_time(replica, role, now_ms)
            if role.check_deadline_ms <= now_ms and not replica.voter_set.is_only(replica.key):
                replica.become_resigned(now_ms)
        elif role.deadline_ms <= now_ms:
            self._on_timeout(now_ms)
        return self._decided(now_ms)

    def _on_timeout(self, now_ms: int) -> None:
        replica, role = self.replica, self.replica.role
        if isinstance(role, Unattached):
            if replica.may_stand:
                replica.become_prospective(now_ms)
            else:
                role.deadline_ms = NEVER
        elif isinstance(role, Prospective):
            voting.give_up_prospect(replica, role, now_ms)
        elif isinstance(role, Candidate):
            replica.become_prospective(now_ms, retries=role.retries + 1)
        elif isinstance(role, Follower):
            if replica.may_stand:
                replica.become_prospective(now_ms)
            else:
                replica.become_unattached(replica.epoch, now_ms)
        elif isinstance(role, Resigned):
            replica.become_unattached(replica.epoch + 1, now_ms)

    # --- the log ----------------------------------------------------------------------------------------

    def append(self, payload: bytes, count: int, epoch: int, now_ms: int) -> tuple[int, list[Effect]]:
        """Append `count` records as the leader of `epoch`; returns the last one's offset.

        They are committed when the high watermark passes it. Raises `NotLeaderError` in any other epoch.
        """
        replica, role = self.replica, self.replica.role
        if not isinstance(role, Leader) or role.epoch != epoch:
            raise NotLeaderError(f"node {replica.key.id} does not lead the metadata quorum in epoch {epoch}")
        first = replica.log.end_offset
        replica.append((Batch(first, first + count - 1, epoch, payload),))
        replica.effects.append(Flush(replica.log.end_offset, epoch))
        leading.serve_parked(replica, role, now_ms)
        return first + count - 1, self._decided(now_ms)

    def flushed(self, end_offset: int, epoch: int, now_ms: int) -> list[Effect]:
        """A `Flush` is done."""
        leading.on_flushed(self.replica, end_offset, epoch, now_ms)
        return self._decided(now_ms)

    def append_failed(self, end_offset: int, epoch: int, now_ms: int) -> list[Effect] | None:
        """An append of `epoch` has left the log at `end_offset`.

        `None` means that this core has to be dropped with all effects not yet carried out, and a new one started from
        what is on disk: they tell others of records that are not there. Only a leader can go on, because nothing it
        says counts records that it has not synced; and not without its first record, or with other voters.
        """
        replica, role = self.replica, self.replica.role
        is_leader = isinstance(role, Leader) and role.epoch == epoch and end_offset > role.epoch_start_offset
        if not is_leader or replica.voters.truncate(end_offset):
            return None
        replica.log.truncate(end_offset)
        if not replica.voter_set.is_only(replica.key):
            # Another controller's disk may have room; here no decision could be written.
            replica.become_resigned(now_ms)
        return self._decided(now_ms)

    def snapshot_saved(self, snapshot: SnapshotId) -> None:
        """This node has written a snapshot of committed records."""
        if snapshot.end_offset > max(self.high_watermark, self.replica.log.start_offset):
            raise QuorumBrokenError(f"a snapshot up to {snapshot.end_offset}, but {self.high_watermark} is committed")
        self.replica.log.snapshot = snapshot

    def log_trimmed(self, start_offset: int) -> None:
        """The log now begins at `start_offset`, which a snapshot covers."""
        self.replica.log.trim(start_offset)
        self.replica.voters.trim(start_offset)

    def snapshot_installed(self, snapshot: SnapshotId, voters: VoterState | None, now_ms: int) -> list[Effect]:
        """A `FinishSnapshot` is done; `voters` is what the snapshot says of them."""
        level, members = (0, None) if voters is None else (voters.kraft_version, voters.voters)
        following.on_snapshot_installed(self.replica, snapshot, level, members, now_ms)
        return self._decided(now_ms)

    def snapshot_failed(self, now_ms: int) -> list[Effect]:
        """The fetched snapshot is damaged or could not be written."""
        following.on_snapshot_failed(self.replica, now_ms)
        return self._decided(now_ms)

    def upgrade(self, ticket: object, kraft_version: int, timeout_ms: int, now_ms: int) -> list[Effect]:
        """Raise kraft.version; answered with a `VoterReply` when that is committed."""
        voter_changes.upgrade_kraft_version(self.replica, ticket, kraft_version, now_ms, timeout_ms)
        return self._decided(now_ms)

    # --- after every call -------------------------------------------------------------------------------

    def _decided(self, now_ms: int) -> list[Effect]:
        """Send what is due in the present role, and hand over all effects."""
        replica, role = self.replica, self.replica.role
        if isinstance(role, Leader):
            voter_changes.settle(replica, role, now_ms)
            role = replica.role
        if replica.is_closing:
            pass
        elif isinstance(role, Leader):
            leading.serve_parked(replica, role, now_ms)
            leading.announce(replica, role, now_ms)
            voter_changes.ask_new_voter(replica, role, now_ms)
        elif isinstance(role, Follower):
            following.fetch(replica, role, now_ms)
            following.update_voter(replica, role, now_ms)
        elif isinstance(role, Prospective | Candidate):
            voting.ask_for_votes(replica, role, now_ms)
        elif isinstance(role, Resigned):
            leading.say_goodbye(replica, role, now_ms)
        else:
            following.look_for_leader(replica, role, now_ms)
        effects, replica.effects = replica.effects, []
        return effects
