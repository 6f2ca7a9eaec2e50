"""Votes, pre-votes, and leaders that come and go."""

from __future__ import annotations

import pytest
from tests.unit.raft.replicas import NOW, answer_of, deliver, elected, fetched, flush, granted, key, new_core, only

from moldau.core.errors import ErrorCode
from moldau.raft.core import QuorumCore
from moldau.raft.effects import Answer, AppendBatches, Claim, Effect, ElectionState, SaveElection, Send
from moldau.raft.log_history import LogHistory
from moldau.raft.messages import (
    NOBODY,
    BeginEpochRequest,
    EndEpochRequest,
    EpochReply,
    FetchReply,
    FetchRequest,
    LeaderHint,
    VoteReply,
    VoteRequest,
)
from moldau.raft.records import LeaderChangeRecord
from moldau.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from moldau.raft.voters import ReplicaKey


def vote(epoch: int = 5, *, by: int = 2, last_epoch: int = 0, end_offset: int = 0, **kw: object) -> VoteRequest:
    return VoteRequest("c", key(by), epoch, last_epoch, end_offset, **kw)  # type: ignore[arg-type]


def following(leader_id: int = 3, epoch: int = 4, *, has_fetched: bool = False) -> tuple[QuorumCore, list[Effect]]:
    core = new_core(election=ElectionState(epoch, leader_id))
    effects = core.start(NOW)
    if has_fetched:
        effects = deliver(core, effects, FetchReply(ErrorCode.NONE, LeaderHint(epoch, leader_id)), leader_id)
    return core, effects


# --- giving votes -----------------------------------------------------------------------------------


def test_a_vote_is_saved_before_it_is_told() -> None:
    core = new_core()
    core.start(NOW)
    effects = core.on_request("t", vote(), NOW)
    saved = [one.state for one in only(SaveElection, effects)]
    assert saved[-1] == ElectionState(5, NOBODY, key(2))
    kinds = [type(one) for one in effects]
    assert max(index for index, kind in enumerate(kinds) if kind is SaveElection) < kinds.index(Answer)
    assert answer_of(effects).is_granted


def test_a_vote_is_given_once_in_an_epoch_and_again_to_the_same() -> None:
    core = new_core()
    core.start(NOW)
    assert answer_of(core.on_request("t", vote(by=2), NOW)).is_granted
    assert not answer_of(core.on_request("t", vote(by=3), NOW)).is_granted
    assert answer_of(core.on_request("t", vote(by=2), NOW)).is_granted
    assert answer_of(core.on_request("t", vote(6, by=3), NOW)).is_granted


def test_a_vote_survives_a_restart() -> None:
    core = new_core(election=ElectionState(5, NOBODY, key(2)))
    core.start(NOW)
    assert not answer_of(core.on_request("t", vote(by=3), NOW)).is_granted
    assert answer_of(core.on_request("t", vote(by=2), NOW)).is_granted


@pytest.mark.parametrize(
    ("last_epoch", "end_offset", "is_granted"), [(2, 9, False), (3, 4, False), (3, 5, True), (3, 6, True), (4, 1, True)]
)
def test_only_a_log_that_has_as_much_gets_a_vote(last_epoch: int, end_offset: int, is_granted: bool) -> None:
    core = new_core(log=LogHistory(end_offset=5, epochs=[(3, 0)]))
    core.start(NOW)
    reply = answer_of(core.on_request("t", vote(9, last_epoch=last_epoch, end_offset=end_offset), NOW))
    assert reply.is_granted is is_granted
    assert core.replica.epoch == 9


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote()._replace(cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (vote()._replace(last_epoch=-1), ErrorCode.INVALID_REQUEST),
        (vote()._replace(end_offset=-1), ErrorCode.INVALID_REQUEST),
        (vote()._replace(candidate=ReplicaKey(-1)), ErrorCode.INVALID_REQUEST),
        (vote(2), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(5, last_epoch=5), ErrorCode.INVALID_REQUEST),
        (vote(5, last_epoch=6, is_pre_vote=True), ErrorCode.INVALID_REQUEST),
        (vote(voter=ReplicaKey(2)), ErrorCode.INVALID_VOTER_KEY),
        (vote(voter=ReplicaKey(1, key(7).directory_id)), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_a_vote_request_that_makes_no_sense_is_refused(request_: VoteRequest, error: ErrorCode) -> None:
    core = new_core(election=ElectionState(3))
    core.start(NOW)
    reply = answer_of(core.on_request("t", request_, NOW))
    assert (reply.error, reply.is_granted, reply.leader.epoch) == (error, False, 3)


def test_no_vote_is_given_where_a_leader_is_known() -> None:
    core, _ = following(3, 4)
    assert not answer_of(core.on_request("t", vote(4), NOW)).is_granted


def test_a_pre_vote_is_not_saved_and_not_exclusive() -> None:
    core = new_core(election=ElectionState(5))
    core.start(NOW)
    for candidate in (2, 3, 2):
        effects = core.on_request("t", vote(by=candidate, is_pre_vote=True), NOW)
        assert answer_of(effects).is_granted
        assert not only(SaveElection, effects)


def test_a_follower_gives_pre_votes_until_its_leader_has_answered() -> None:
    core, _ = following(3, 4)
    assert answer_of(core.on_request("t", vote(4, is_pre_vote=True), NOW)).is_granted
    core, _ = following(3, 4, has_fetched=True)
    assert not answer_of(core.on_request("t", vote(4, is_pre_vote=True), NOW)).is_granted


# --- standing ---------------------------------------------------------------------------------------


def test_an_election_goes_by_pre_votes_votes_and_the_first_record() -> None:
    core = new_core(election=ElectionState(7), kraft_version=0)
    core.start(NOW)
    assert isinstance(core.replica.role, Unattached)
    deadline_ms = core.replica.role.deadline_ms
    assert NOW + 1000 <= deadline_ms < NOW + 2000
    asked = core.on_time(deadline_ms)
    assert isinstance(core.replica.role, Prospective)
    assert core.replica.epoch == 7
    assert {one.to for one in only(Send, asked) if isinstance(one.request, VoteRequest)} == {2, 3}
    asked = deliver(core, asked, granted(7), 2)
    assert isinstance(core.replica.role, Candidate)
    assert only(SaveElection, asked)[0].state == ElectionState(8, NOBODY, key(1))
    won = deliver(core, asked, granted(8), 3)
    assert isinstance(core.replica.role, Leader)
    (appended,) = only(AppendBatches, won)
    assert appended.batches[0].control == (LeaderChangeRecord(1, (1, 2, 3), (1, 3)),)
    assert {one.to for one in only(Send, won) if isinstance(one.request, BeginEpochRequest)} == {2, 3}
    assert not only(Claim, won)


def test_a_lonely_voter_leads_at_once_and_a_restart_takes_a_new_epoch() -> None:
    core = new_core(1, 1, election=ElectionState(4, 1, key(1)))
    effects = core.start(NOW)
    assert core.is_leader
    assert core.replica.epoch == 5
    assert only(Claim, flush(core, effects))
    assert core.high_watermark == 3
    assert core.next_deadline_ms() > NOW + 10**9


def test_a_voter_that_would_not_be_elected_returns_to_its_leader() -> None:
    core, _ = following(3, 4)
    asked = core.on_time(NOW + 2000)
    assert isinstance(core.replica.role, Prospective)
    for peer in (2, 3):
        deliver(core, asked, granted(4, is_granted=False), peer)
    role = core.replica.role
    assert isinstance(role, Follower)
    assert core.replica.epoch == 4


def test_a_voter_that_is_cut_off_does_not_raise_the_epoch() -> None:
    core = new_core(election=ElectionState(4))
    core.start(NOW)
    now_ms = NOW
    for _ in range(50):
        now_ms = max(now_ms + 1, min(core.next_deadline_ms(), now_ms + 500))
        core.on_time(now_ms)
    assert core.replica.epoch == 4


def test_voters_that_do_not_know_pre_votes_do_not_prevent_an_election() -> None:
    core = new_core(election=ElectionState(4))
    core.start(NOW)
    asked = core.on_time(NOW + 2000)
    deliver(core, asked, VoteReply(ErrorCode.UNSUPPORTED_VERSION, LeaderHint(-1)), 2)
    assert isinstance(core.replica.role, Candidate)


def test_a_lost_election_is_followed_by_a_pause() -> None:
    core = new_core(election=ElectionState(4))
    core.start(NOW)
    asked = deliver(core, core.on_time(NOW + 2000), granted(4), 2)
    for peer in (2, 3):
        deliver(core, asked, granted(5, is_granted=False), peer)
    role = core.replica.role
    assert isinstance(role, Candidate)
    assert role.is_lost
    assert NOW < role.deadline_ms <= NOW + 1000
    core.on_time(role.deadline_ms)
    assert isinstance(core.replica.role, Prospective)


def test_a_reply_with_a_newer_epoch_or_leader_is_followed() -> None:
    core = new_core(election=ElectionState(4))
    core.start(NOW)
    asked = core.on_time(NOW + 2000)
    deliver(core, asked, VoteReply(ErrorCode.FENCED_LEADER_EPOCH, LeaderHint(9)), 2)
    assert (type(core.replica.role), core.replica.epoch) == (Unattached, 9)
    deliver(core, asked, VoteReply(ErrorCode.FENCED_LEADER_EPOCH, LeaderHint(9, 3)), 3)
    assert isinstance(core.replica.role, Follower)


# --- begin and end of an epoch ----------------------------------------------------------------------


def test_a_leader_of_this_or_a_newer_epoch_is_followed_when_that_is_saved() -> None:
    core = new_core(election=ElectionState(4))
    core.start(NOW)
    effects = core.on_request("t", BeginEpochRequest("c", 2, 4), NOW)
    assert answer_of(effects).error is ErrorCode.NONE
    assert [one.state for one in only(SaveElection, effects)] == [ElectionState(4, 2)]
    assert answer_of(core.on_request("t", BeginEpochRequest("c", 3, 4), NOW)).error is ErrorCode.INVALID_REQUEST
    assert answer_of(core.on_request("t", BeginEpochRequest("c", 3, 3), NOW)).error is ErrorCode.FENCED_LEADER_EPOCH
    assert answer_of(core.on_request("t", BeginEpochRequest("c", 3, 5), NOW)).error is ErrorCode.NONE
    assert core.replica.leader_id == 3
    wrong = BeginEpochRequest("c", 3, 5, voter=ReplicaKey(2))
    assert answer_of(core.on_request("t", wrong, NOW)).error is ErrorCode.INVALID_VOTER_KEY


@pytest.mark.parametrize(("successors", "delay_ms"), [((1, 2), 0), ((2, 1), 500), ((2, 3, 1), 500), ((2,), 1000)])
def test_successors_stand_in_their_order(successors: tuple[int, ...], delay_ms: int) -> None:
    core, _ = following(3, 4, has_fetched=True)
    ending = EndEpochRequest("c", 3, 4, tuple(key(one) for one in successors))
    core.on_request("t", ending, NOW)
    role = core.replica.role
    if delay_ms == 0:
        assert isinstance(role, Prospective)
    else:
        assert isinstance(role, Follower)
        assert role.deadline_ms == NOW + delay_ms


def test_only_the_known_leader_ends_an_epoch() -> None:
    core, _ = following(3, 4)
    reply = answer_of(core.on_request("t", EndEpochRequest("c", 2, 4, (key(1),)), NOW))
    assert reply.error is ErrorCode.INVALID_REQUEST
    reply = answer_of(core.on_request("t", EndEpochRequest("c", 3, 3, (key(1),)), NOW))
    assert reply.error is ErrorCode.FENCED_LEADER_EPOCH


def test_a_leader_that_closes_names_its_best_followers_first() -> None:
    core = new_core(1, 3)
    flush(core, elected(core))
    fetched(core, 3)
    fetched(core, 2, 0)
    ending = [one.request for one in only(Send, core.close(NOW))]
    assert [one.successors for one in ending if isinstance(one, EndEpochRequest)] == [(key(3), key(2))] * 2
    assert core.next_deadline_ms() > NOW + 10**9
    assert answer_of(core.on_request("t", vote(99), NOW)).error is ErrorCode.BROKER_NOT_AVAILABLE


def test_a_leader_that_nobody_fetches_from_resigns_and_answers_who_waits() -> None:
    core = new_core(1, 3, fetch_max_wait_ms=60_000)
    flush(core, elected(core))
    assert not only(Answer, fetched(core, 9, high_watermark=5, max_wait_ms=60_000))
    (answer,) = only(Answer, core.on_time(NOW + 6100))
    assert isinstance(core.replica.role, Resigned)
    assert answer.reply.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    epoch = core.replica.epoch
    core.on_time(NOW + 10_000)
    assert (type(core.replica.role), core.replica.epoch) == (Unattached, epoch + 1)


def test_a_restarted_leader_has_resigned() -> None:
    core = new_core(election=ElectionState(6, 1, key(1)))
    effects = core.start(NOW)
    assert isinstance(core.replica.role, Resigned)
    assert {type(one.request) for one in only(Send, effects)} == {EndEpochRequest}
    reply = answer_of(core.on_request("t", FetchRequest("c", key(2), 6, 0, 0), NOW))
    assert (reply.error, reply.leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, LeaderHint(6))


def test_the_leader_tells_those_again_that_do_not_fetch() -> None:
    core = new_core(1, 3)
    sent = elected(core)
    for peer in (2, 3):
        deliver(core, sent, EpochReply(ErrorCode.NONE, LeaderHint(core.replica.epoch, 1)), peer)
    fetched(core, 2)
    again = core.on_time(NOW + 1000)
    assert {one.to for one in only(Send, again)} <= {2, 3}
    assert 3 in {one.to for one in only(Send, again)}
