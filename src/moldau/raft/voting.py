"""Elections: who gets this replica's vote, and what it does with the votes it gets.

A vote is given once in an epoch, and counts only when it is on disk (`Replica.grant_vote`). A pre-vote is no more than
an opinion: would I vote for this log, having no leader? Start at `on_vote` and `on_vote_reply`.
"""

from __future__ import annotations

from moldau.core.errors import ErrorCode
from moldau.raft.messages import NOBODY, BeginEpochRequest, EndEpochRequest, EpochReply, VoteReply, VoteRequest
from moldau.raft.outreach import NEVER
from moldau.raft.replica import Replica
from moldau.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached

__all__ = [
    "ask_for_votes",
    "give_up_prospect",
    "is_other_cluster",
    "on_begin_epoch",
    "on_end_epoch",
    "on_vote",
    "on_vote_reply",
]

_EXPONENT_LIMIT = 10


# --- voting -----------------------------------------------------------------------------------------


def on_vote(replica: Replica, request: VoteRequest, now_ms: int) -> VoteReply:
    error = _vote_error(replica, request)
    if error is not ErrorCode.NONE:
        return VoteReply(error, replica.hint())
    if request.epoch > replica.epoch:
        replica.become_unattached(request.epoch, now_ms)
    if request.is_pre_vote:
        return VoteReply(ErrorCode.NONE, replica.hint(), _would_vote(replica, request))
    is_granted = _may_vote(replica, request)
    if is_granted and replica.election.voted is None:
        replica.grant_vote(request.candidate)
        if isinstance(replica.role, Unattached):
            # The candidate gets the time of an election before this replica stands against it.
            replica.role.deadline_ms = replica.election_deadline(now_ms) if replica.may_stand else NEVER
    return VoteReply(ErrorCode.NONE, replica.hint(), is_granted)


def _vote_error(replica: Replica, request: VoteRequest) -> ErrorCode:
    if is_other_cluster(replica, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if request.last_epoch < 0 or request.end_offset < 0 or request.candidate.id < 0:
        return ErrorCode.INVALID_REQUEST
    if replica.is_closing:
        return ErrorCode.BROKER_NOT_AVAILABLE
    if request.epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if request.last_epoch > request.epoch or (request.last_epoch == request.epoch and not request.is_pre_vote):
        return ErrorCode.INVALID_REQUEST
    if request.voter is not None and not _is_me(replica, request.voter):
        return ErrorCode.INVALID_VOTER_KEY
    return ErrorCode.NONE


def is_other_cluster(replica: Replica, cluster_id: str | None) -> bool:
    own = replica.settings.cluster_id
    return None not in (cluster_id, own) and cluster_id != own


def _is_me(replica: Replica, addressed: tuple[int, object]) -> bool:
    node_id, directory_id = addressed
    return node_id == replica.key.id and directory_id in (None, replica.key.directory_id)


def _is_up_to_date(replica: Replica, request: VoteRequest) -> bool:
    return (request.last_epoch, request.end_offset) >= (replica.log.last_epoch, replica.log.end_offset)


def _may_vote(replica: Replica, request: VoteRequest) -> bool:
    """Whether the candidate gets this replica's one vote of the epoch."""
    if not isinstance(replica.role, Unattached | Prospective):
        return False
    voted = replica.election.voted
    if voted is not None:
        return voted == request.candidate
    return replica.leader_id == NOBODY and _is_up_to_date(replica, request)


def _would_vote(replica: Replica, request: VoteRequest) -> bool:
    role = replica.role
    if isinstance(role, Leader) or (isinstance(role, Follower) and role.has_fetched):
        return False
    return _is_up_to_date(replica, request)


# --- standing for election --------------------------------------------------------------------------


def ask_for_votes(replica: Replica, role: Prospective | Candidate, now_ms: int) -> None:
    for peer in role.outreach.take_due(now_ms):
        voter = replica.voter_set.by_id.get(peer)
        request = VoteRequest(
            replica.settings.cluster_id,
            replica.key,
            replica.epoch,
            replica.log.last_epoch,
            replica.log.end_offset,
            isinstance(role, Prospective),
            None if voter is None else voter.key,
        )
        role.outreach.sent(peer, replica.send(peer, request), now_ms + replica.settings.request_timeout_ms)


def on_vote_reply(replica: Replica, peer: int, number: int, reply: VoteReply, now_ms: int) -> None:
    role = replica.role
    if not isinstance(role, Prospective | Candidate):
        return
    retry_ms = now_ms + replica.settings.retry_backoff_ms
    is_answer = reply.error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    if not role.outreach.accept(peer, number, NEVER if is_answer else retry_ms) or not is_answer:
        return
    if peer not in replica.voter_set.by_id:
        return
    is_old = reply.error is ErrorCode.UNSUPPORTED_VERSION and isinstance(role, Prospective)
    (role.granted if reply.is_granted or is_old else role.rejected).add(peer)
    _count(replica, role, now_ms)


def _count(replica: Replica, role: Prospective | Candidate, now_ms: int) -> None:
    voters = replica.voter_set
    granted = len(role.granted & voters.by_id.keys())
    rejected = len(role.rejected & voters.by_id.keys())
    if granted >= voters.majority:
        if isinstance(role, Prospective):
            replica.become_candidate(now_ms, retries=role.retries)
        else:
            replica.become_leader(now_ms)
    elif rejected > len(voters) - voters.majority:
        if isinstance(role, Prospective):
            give_up_prospect(replica, role, now_ms)
        elif not role.is_lost:
            role.is_lost = True
            role.deadline_ms = now_ms + _pause_ms(replica, role.retries)


def give_up_prospect(replica: Replica, role: Prospective, now_ms: int) -> None:
    """Nobody wants this replica as leader now: go back to the leader it had, or wait for another."""
    if role.leader_id not in (NOBODY, replica.key.id):
        replica.become_follower(replica.epoch, role.leader_id, (), now_ms)
    else:
        replica.become_unattached(replica.epoch, now_ms)
        if isinstance(replica.role, Unattached):
            replica.role.deadline_ms = replica.election_deadline(now_ms)


def _pause_ms(replica: Replica, retries: int) -> int:
    """A random pause, longer after each lost election, so that two candidates part company."""
    most = replica.settings.election_backoff_max_ms
    limit = min(most, replica.settings.retry_backoff_ms << min(retries + 1, _EXPONENT_LIMIT))
    return replica.random.randrange(max(1, limit)) + 1


# --- leaders that come and go -----------------------------------------------------------------------


def on_begin_epoch(replica: Replica, request: BeginEpochRequest, now_ms: int) -> EpochReply:
    if is_other_cluster(replica, request.cluster_id):
        return EpochReply(ErrorCode.INCONSISTENT_CLUSTER_ID, replica.hint())
    if request.epoch < replica.epoch:
        return EpochReply(ErrorCode.FENCED_LEADER_EPOCH, replica.hint())
    if request.voter is not None and not _is_me(replica, request.voter):
        return EpochReply(ErrorCode.INVALID_VOTER_KEY, replica.hint())
    is_known = request.epoch == replica.epoch and replica.leader_id not in (NOBODY, request.leader_id)
    if request.leader_id in (NOBODY, replica.key.id) or is_known:
        return EpochReply(ErrorCode.INVALID_REQUEST, replica.hint())
    role = replica.role
    if isinstance(role, Follower) and request.epoch == replica.epoch:
        role.deadline_ms = now_ms + replica.settings.fetch_timeout_ms
        if request.endpoints:
            replica.endpoints = {request.leader_id: request.endpoints}
    else:
        replica.become_follower(request.epoch, request.leader_id, request.endpoints, now_ms)
    return EpochReply(ErrorCode.NONE, replica.hint())


def on_end_epoch(replica: Replica, request: EndEpochRequest, now_ms: int) -> EpochReply:
    if is_other_cluster(replica, request.cluster_id):
        return EpochReply(ErrorCode.INCONSISTENT_CLUSTER_ID, replica.hint())
    if request.epoch < replica.epoch:
        return EpochReply(ErrorCode.FENCED_LEADER_EPOCH, replica.hint())
    if request.epoch > replica.epoch:
        if request.leader_id == replica.key.id:
            return EpochReply(ErrorCode.INVALID_REQUEST, replica.hint())
        replica.become_follower(request.epoch, request.leader_id, request.endpoints, now_ms)
    if isinstance(replica.role, Leader | Resigned) or replica.leader_id not in (NOBODY, request.leader_id):
        return EpochReply(ErrorCode.INVALID_REQUEST, replica.hint())
    role = replica.role
    if isinstance(role, Follower) and replica.may_stand:
        delay_ms = _turn_ms(replica, request)
        role.has_fetched = False  # the leader has gone: others may ask for a pre-vote
        if delay_ms == 0:
            replica.become_prospective(now_ms)
        else:
            role.deadline_ms = min(role.deadline_ms, now_ms + delay_ms)
    return EpochReply(ErrorCode.NONE, replica.hint())


def _turn_ms(replica: Replica, request: EndEpochRequest) -> int:
    """How long to wait before standing: the best successor at once, those after it ever longer."""
    most = replica.settings.election_backoff_max_ms
    ids = [key.id for key in request.successors]
    if replica.key.id not in ids:
        return most
    position = ids.index(replica.key.id)
    return 0 if position == 0 else min(most, (most >> (len(ids) - 1)) << (position - 1))
