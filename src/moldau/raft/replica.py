"""One replica of the metadata log: what it knows, its role, and the transitions between roles.

Nothing here answers requests: that is `raft.voting`, `raft.leading`, `raft.following`, `raft.voter_changes`, which use
the transitions and put effects into `Replica.effects`. `raft.core` is what a shell uses. Start at
`Replica.become_unattached`.
"""

from __future__ import annotations

from random import Random

from moldau.core.errors import ErrorCode, MoldauError
from moldau.raft.effects import (
    Answer,
    AppendBatches,
    Commit,
    Effect,
    ElectionState,
    Flush,
    Renounce,
    SaveElection,
    Send,
    TruncateLog,
)
from moldau.raft.log_history import LogHistory
from moldau.raft.messages import NOBODY, UNKNOWN_OFFSET, FetchReply, LeaderHint, Reply, Request, VoterReply
from moldau.raft.outreach import NEVER, Outreach
from moldau.raft.records import (
    Batch,
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeRecord,
    VotersRecord,
)
from moldau.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role, Unattached
from moldau.raft.settings import QuorumSettings
from moldau.raft.voter_history import BEFORE_THE_LOG, VoterHistory
from moldau.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

__all__ = ["FIRST_BOOTSTRAP_SERVER", "QuorumBrokenError", "Replica"]

FIRST_BOOTSTRAP_SERVER = -2


class QuorumBrokenError(MoldauError):
    """Something happened that a correct quorum rules out; the node must stop before it does harm."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class Replica:
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
        self.me = me
        self.settings = settings
        self.log = log
        self.voters = voters
        self.election = election
        self.random = random
        self.high_watermark = log.snapshot.end_offset if log.snapshot is not None else UNKNOWN_OFFSET
        """Everything below it is committed. After a start only what a snapshot has is known to be."""
        self.endpoints: dict[int, tuple[Endpoint, ...]] = {}
        """Where leaders were said to be reachable; voters have theirs in the set of voters."""
        self.role: Role = Unattached(NEVER, Outreach())
        self.effects: list[Effect] = []
        self.is_closing = False
        self._next_number = 0

    # --- facts ------------------------------------------------------------------------------------------

    @property
    def key(self) -> ReplicaKey:
        return self.me.key

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def voter_set(self) -> VoterSet:
        """The voters that count now: the last set appended, committed or not."""
        return self.voters.latest.voters

    @property
    def is_voter(self) -> bool:
        return self.voter_set.has(self.key)

    @property
    def may_stand(self) -> bool:
        """Whether this replica may be elected: if it is a voter, or its removal is not known to be committed.

        The others may not have the record that removes it, and may need its vote, which its longer log forbids it to
        give them. So it must stand itself, commit its own removal and resign.
        """
        return self.is_voter or self.voters.was_voter(self.key, self.high_watermark)

    @property
    def leader_id(self) -> int:
        """The leader of this epoch, if known."""
        return self.election.leader_id

    def hint(self) -> LeaderHint:
        """What others are told about the leader. One that has resigned is no leader any more."""
        leader_id = self.leader_id
        if leader_id == NOBODY or isinstance(self.role, Resigned):
            return LeaderHint(self.epoch)
        return LeaderHint(self.epoch, leader_id, self.endpoints_of(leader_id))

    def endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        if node_id == self.key.id:
            return self.me.endpoints
        voter = self.voter_set.by_id.get(node_id)
        return self.endpoints.get(node_id) or (() if voter is None else voter.endpoints)

    # --- effects ----------------------------------------------------------------------------------------

    def send(self, to: int, request: Request) -> int:
        self._next_number += 1
        self.effects.append(Send(to, self._next_number, request))
        return self._next_number

    def answer(self, ticket: object, reply: Reply) -> None:
        self.effects.append(Answer(ticket, reply))

    def append(self, batches: tuple[Batch, ...]) -> None:
        for batch in batches:
            self.log.append(batch.last_offset, batch.epoch)
            self.voters.append(batch)
        self.effects.append(AppendBatches(batches))

    def append_control(self, records: tuple[ControlRecord, ...]) -> int:
        """Append control records as this epoch's leader, and sync them; returns the last one's offset."""
        first = self.log.end_offset
        self.append((Batch(first, first + len(records) - 1, self.epoch, b"", records),))
        self.effects.append(Flush(self.log.end_offset, self.epoch))
        return self.log.end_offset - 1

    def truncate(self, end_offset: int) -> None:
        """Cut the log; whatever is committed must stay."""
        if end_offset < self.high_watermark:
            raise QuorumBrokenError(
                f"node {self.key.id} was told to cut its log to {end_offset}, but everything below "
                f"{self.high_watermark} is committed; stop it and compare the logs of the controllers"
            )
        self.log.truncate(end_offset)
        self.voters.truncate(end_offset)
        self.effects.append(TruncateLog(end_offset))

    def advance_high_watermark(self, offset: int) -> bool:
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.effects.append(Commit(offset))
        return True

    def _save(self, election: ElectionState) -> None:
        if election != self.election:
            self.election = election
            self.effects.append(SaveElection(election))

    # --- transitions ------------------------------------------------------------------------------------

    def election_deadline(self, now_ms: int) -> int:
        """A moment between one and two election timeouts away, so that voters seldom stand at the same time."""
        timeout_ms = self.settings.election_timeout_ms
        return now_ms + timeout_ms + self.random.randrange(max(1, timeout_ms))

    def _enter(self, role: Role) -> None:
        """Take up a role; whoever waits for the leader that this was is told that it is none any more."""
        former, self.role = self.role, role
        if isinstance(former, Leader):
            self.effects.append(Renounce(former.epoch))
            for parked in former.parked:
                self.answer(parked.ticket, FetchReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.hint()))
            change = former.change
            if change is not None and not change.is_answered:
                self.answer(change.ticket, VoterReply(ErrorCode.NOT_LEADER_OR_FOLLOWER, self.hint()))

    def become_unattached(self, epoch: int, now_ms: int) -> None:
        """Know no leader of this epoch. Time that has passed without one is not counted anew."""
        if epoch > self.epoch:
            self._save(ElectionState(epoch))
        self._enter(Unattached(self._deadline_without_leader(now_ms), Outreach((self._somebody(0),), now_ms)))

    def _deadline_without_leader(self, now_ms: int) -> int:
        if not self.may_stand:
            return NEVER
        role = self.role
        if isinstance(role, Unattached | Prospective) or (isinstance(role, Candidate) and not role.is_lost):
            return role.deadline_ms if role.deadline_ms != NEVER else self.election_deadline(now_ms)
        return self.election_deadline(now_ms)

    def _somebody(self, attempt: int) -> int:
        """A node that may know the leader: a voter, or a server given for that while there are no voters."""
        servers = [FIRST_BOOTSTRAP_SERVER - index for index in range(self.settings.bootstrap_servers)]
        voters = [one.key.id for one in self.voter_set.others(self.key)]
        known = voters if voters and (not servers or attempt % 2 == 0) else servers
        return known[self.random.randrange(len(known))] if known else NOBODY

    def look_elsewhere(self, now_ms: int) -> None:
        """Ask another node for the leader."""
        role = self.role
        assert isinstance(role, Unattached), role
        role.attempt += 1
        role.outreach = Outreach((self._somebody(role.attempt),), now_ms)

    def grant_vote(self, candidate: ReplicaKey) -> None:
        self._save(ElectionState(self.epoch, NOBODY, candidate))

    def become_prospective(self, now_ms: int, *, retries: int = 0) -> None:
        if self.voter_set.is_only(self.key):
            self.become_candidate(now_ms)
            return
        voters = self.voter_set
        role = Prospective(
            self.election_deadline(now_ms),
            Outreach((one.key.id for one in voters.others(self.key)), now_ms),
            self.leader_id,
            retries=retries,
        )
        role.granted.add(self.key.id)
        self._enter(role)

    def become_candidate(self, now_ms: int, *, retries: int = 0) -> None:
        self._save(ElectionState(self.epoch + 1, NOBODY, self.key))
        voters = self.voter_set
        role = Candidate(
            self.election_deadline(now_ms),
            Outreach((one.key.id for one in voters.others(self.key)), now_ms),
            retries=retries,
        )
        role.granted.add(self.key.id)
        self._enter(role)
        if voters.is_only(self.key):
            self.become_leader(now_ms)

    def become_leader(self, now_ms: int) -> None:
        """Lead: first of all append a record of the new epoch, without which nothing can be committed."""
        role = self.role
        assert isinstance(role, Candidate), role
        self._save(ElectionState(self.epoch, self.key.id, self.key))
        voters = self.voter_set
        leader = Leader(
            self.epoch,
            self.log.end_offset,
            tuple(sorted(role.granted)),
            now_ms + self.settings.check_quorum_ms,
            Outreach((one.key.id for one in voters.others(self.key)), now_ms),
        )
        leader.is_leaving = not self.is_voter
        self._enter(leader)
        change = LeaderChangeRecord(self.key.id, tuple(sorted(voters.by_id)), leader.granting)
        self.append_control((change, *self._formatted_voters()))

    def _formatted_voters(self) -> tuple[ControlRecord, ...]:
        """The voters given when the log was formatted, for replicas that were formatted without them."""
        latest = self.voters.latest
        if latest.kraft_version == 0 or latest.offset != BEFORE_THE_LOG:
            return ()
        return KRaftVersionRecord(latest.kraft_version), VotersRecord(latest.voters)

    def become_follower(self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...], now_ms: int) -> None:
        if endpoints:
            self.endpoints = {leader_id: endpoints}
        voted = self.election.voted if epoch == self.epoch else None
        self._save(ElectionState(epoch, leader_id, voted))
        self._enter(Follower(leader_id, now_ms + self.settings.fetch_timeout_ms, Outreach((leader_id,), now_ms)))

    def become_resigned(self, now_ms: int) -> None:
        """Stop leading, or find after a restart that this node has led in its epoch: it must not do so again."""
        successors: tuple[ReplicaKey, ...] = ()
        if isinstance(self.role, Leader):
            known = self.role.progress
            followers = [one.key for one in self.voter_set.others(self.key)]
            reached = {key.id: one.end_offset for key, one in known.items()}
            successors = tuple(sorted(followers, key=lambda key: (-reached.get(key.id, UNKNOWN_OFFSET), key.id)))
        peers = (one.key.id for one in self.voter_set.others(self.key))
        self._enter(Resigned(self.election_deadline(now_ms), Outreach(peers, now_ms), successors))

    def learn(self, hint: LeaderHint, now_ms: int) -> None:
        """Follow what another replica knows, if it knows more."""
        is_newer = hint.epoch > self.epoch
        if hint.epoch < self.epoch:
            return
        if hint.leader_id in (NOBODY, self.key.id):
            if is_newer:
                self.become_unattached(hint.epoch, now_ms)
            return
        is_found = hint.leader_id == self.leader_id and isinstance(self.role, Unattached)
        if is_newer or is_found or self.leader_id == NOBODY:
            self.become_follower(hint.epoch, hint.leader_id, hint.endpoints, now_ms)

    def start(self, now_ms: int) -> None:
        """Take up the role that the durable state allows."""
        election = self.election
        if self.log.last_epoch > election.epoch:  # `quorum-state` is missing: its votes are unknown, the log's epoch is
            self._save(ElectionState(self.log.last_epoch))
        if self.voter_set.is_only(self.key):
            self.become_candidate(now_ms)
        elif election.leader_id == self.key.id and self.may_stand:
            self.become_resigned(now_ms)
        elif election.leader_id != NOBODY and self.endpoints_of(election.leader_id):
            self.become_follower(election.epoch, election.leader_id, (), now_ms)
        else:
            self.become_unattached(self.epoch, now_ms)
