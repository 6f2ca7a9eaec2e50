"""Voters that are added, removed and updated, and a static quorum that becomes a dynamic one."""

from __future__ import annotations

import pytest
from tests.unit.raft.replicas import NOW, answer_of, committed_leader, fetched, flush, key, new_core, only, voter

from moldau.core.errors import ErrorCode
from moldau.raft.core import QuorumCore
from moldau.raft.effects import Answer, AppendBatches, Effect, ElectionState, Send
from moldau.raft.messages import (
    AddVoterRequest,
    LeaderHint,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VersionsReply,
    VersionsRequest,
)
from moldau.raft.records import Batch, KRaftVersionRecord, LeaderChangeRecord, VotersRecord
from moldau.raft.roles import Prospective, Resigned
from moldau.raft.voters import Endpoint, ReplicaKey, VoterSet


def add(node_id: int = 4, **kw: object) -> AddVoterRequest:
    return AddVoterRequest("c", key(node_id), voter(node_id).endpoints, **kw)  # type: ignore[arg-type]


def probe(core: QuorumCore, effects: list[Effect], *, versions: tuple[int, int] = (0, 1)) -> list[Effect]:
    """Answer the leader's question to the new voter."""
    (asked,) = [one for one in only(Send, effects) if isinstance(one.request, VersionsRequest)]
    return core.on_reply(asked.to, asked.number, VersionsReply(ErrorCode.NONE, LeaderHint(-1), *versions), NOW)


def test_a_caught_up_replica_becomes_a_voter_and_that_is_committed_by_the_new_set() -> None:
    core = committed_leader(1)
    fetched(core, 4)
    effects = probe(core, core.on_request("add", add(), NOW))
    (appended,) = only(AppendBatches, effects)
    (record,) = appended.batches[0].control
    assert isinstance(record, VotersRecord)
    assert sorted(record.voters.by_id) == [1, 4]
    assert not only(Answer, effects)
    assert not only(Answer, flush(core, effects)), "one of two is no majority"
    answers = {one.ticket: one.reply for one in only(Answer, fetched(core, 4))}
    assert answers["add"].error is ErrorCode.NONE


def test_the_answer_may_come_when_the_record_is_appended() -> None:
    core = committed_leader(1)
    fetched(core, 4)
    effects = probe(core, core.on_request("add", add(ack_when_committed=False), NOW))
    assert answer_of(effects).error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (add()._replace(cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (add(2), ErrorCode.DUPLICATE_VOTER),
        (add()._replace(endpoints=()), ErrorCode.INVALID_REQUEST),
        (add()._replace(voter=ReplicaKey(4)), ErrorCode.INVALID_REQUEST),
        (RemoveVoterRequest("c", key(9)), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoterRequest("c", ReplicaKey(2, key(9).directory_id)), ErrorCode.VOTER_NOT_FOUND),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(request_: AddVoterRequest, error: ErrorCode) -> None:
    core = committed_leader(3)
    assert answer_of(core.on_request("t", request_, NOW)).error is error


def test_whoever_has_not_caught_up_or_cannot_speak_the_version_is_refused() -> None:
    core = committed_leader(1)
    core.append(b"x", 1, core.replica.epoch, NOW)
    fetched(core, 4, 1)
    effects = probe(core, core.on_request("t", add(), NOW))
    assert answer_of(effects).error is ErrorCode.REQUEST_TIMED_OUT
    effects = probe(core, core.on_request("t", add(), NOW), versions=(0, 0))
    assert answer_of(effects).error is ErrorCode.INVALID_REQUEST


def test_a_new_voter_that_does_not_answer_is_given_up() -> None:
    core = committed_leader(1)
    core.on_request("t", add(timeout_ms=3000), NOW)
    core.on_time(NOW + 2000)
    assert answer_of(core.on_time(NOW + 3000)).error is ErrorCode.REQUEST_TIMED_OUT
    assert core.next_deadline_ms() > NOW + 10**9


def test_there_is_one_change_at_a_time_and_none_before_the_leader_has_committed() -> None:
    core = committed_leader(3)
    core.on_request("first", RemoveVoterRequest("c", key(3)), NOW)
    assert answer_of(core.on_request("t", add(), NOW)).error is ErrorCode.REQUEST_TIMED_OUT
    fresh = new_core(1, 1)
    fresh.start(NOW)
    assert answer_of(fresh.on_request("t", add(), NOW)).error is ErrorCode.REQUEST_TIMED_OUT


def test_only_the_leader_changes_voters() -> None:
    core = new_core(election=ElectionState(4, 3))
    core.start(NOW)
    assert answer_of(core.on_request("t", add(), NOW)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_last_voter_stays() -> None:
    core = committed_leader(1)
    reply = answer_of(core.on_request("t", RemoveVoterRequest("c", key(1)), NOW))
    assert (reply.error, "last voter" in reply.message) == (ErrorCode.INVALID_REQUEST, True)


def test_a_leader_that_is_removed_resigns_when_the_others_have_committed_it() -> None:
    core = committed_leader(3)
    effects = core.on_request("t", RemoveVoterRequest("c", key(1)), NOW)
    flush(core, effects)
    fetched(core, 2)
    assert core.is_leader
    answers = {one.ticket: one.reply.error for one in only(Answer, fetched(core, 3))}
    assert answers["t"] is ErrorCode.NONE
    assert isinstance(core.replica.role, Resigned)
    core.on_time(NOW + 5000)
    core.on_time(NOW + 60_000)
    assert not isinstance(core.replica.role, Prospective)


def test_whoever_is_removed_by_a_record_that_is_not_committed_may_still_stand() -> None:
    """The others may need its vote, and its longer log forbids it to give it."""
    core = new_core(1, 2, election=ElectionState(4))
    core.replica.append((Batch(0, 0, 4, b"", (VotersRecord(VoterSet.of([voter(2)])),)),))
    core.start(NOW)
    asked = core.on_time(NOW + 2000)
    assert isinstance(core.replica.role, Prospective)
    assert {one.to for one in only(Send, asked)} == {2}


def test_a_voter_with_new_endpoints_tells_the_leader() -> None:
    core = committed_leader(3)
    moved = voter(2)._replace(endpoints=(Endpoint("CONTROLLER", "elsewhere", 1),))
    effects = core.on_request("t", UpdateVoterRequest("c", core.replica.epoch, moved), NOW)
    flush(core, effects)
    answers = {one.ticket: one.reply.error for one in only(Answer, fetched(core, 2))}
    assert answers["t"] is ErrorCode.NONE
    assert core.replica.endpoints_of(2)[0].host == "elsewhere"
    stranger = UpdateVoterRequest("c", core.replica.epoch, voter(7))
    assert answer_of(core.on_request("t", stranger, NOW)).error is ErrorCode.VOTER_NOT_FOUND
    old = voter(2)._replace(max_kraft_version=0)
    refused = core.on_request("t", UpdateVoterRequest("c", core.replica.epoch, old), NOW)
    assert answer_of(refused).error is ErrorCode.INVALID_REQUEST


def test_a_static_quorum_becomes_dynamic_when_all_voters_have_told_their_directories() -> None:
    core = committed_leader(3, kraft_version=0)
    epoch = core.replica.epoch
    assert answer_of(core.on_request("t", add(), NOW)).error is ErrorCode.UNSUPPORTED_VERSION
    assert answer_of(core.upgrade("t", 1, 5000, NOW)).error is ErrorCode.INVALID_UPDATE_VERSION
    for peer in (2, 3):
        reply = answer_of(core.on_request("t", UpdateVoterRequest("c", epoch, voter(peer)), NOW))
        assert reply.error is ErrorCode.NONE
    effects = core.upgrade("up", 1, 5000, NOW)
    (appended,) = only(AppendBatches, effects)
    assert appended.batches[0].control == (
        KRaftVersionRecord(1),
        VotersRecord(VoterSet.of([voter(1), voter(2), voter(3)])),
    )
    flush(core, effects)
    answers = {one.ticket: one.reply.error for one in only(Answer, fetched(core, 2))}
    assert answers["up"] is ErrorCode.NONE
    assert answer_of(core.upgrade("t", 1, 5000, NOW)).error is ErrorCode.NONE
    assert answer_of(core.upgrade("t", 2, 5000, NOW)).error is ErrorCode.INVALID_UPDATE_VERSION


def test_the_first_leader_writes_the_voters_that_the_log_was_formatted_with() -> None:
    core = new_core(1, 1, kraft_version=1)
    (appended,) = only(AppendBatches, core.start(NOW))
    assert appended.batches[0].control == (
        LeaderChangeRecord(1, (1,), (1,)),
        KRaftVersionRecord(1),
        VotersRecord(VoterSet.of([voter(1)])),
    )


def test_a_voter_whose_directory_was_replaced_is_no_voter() -> None:
    voters = VoterSet.of([voter(1), voter(2)])
    assert voters.has(key(1))
    assert not voters.has(ReplicaKey(1, key(9).directory_id))
    assert not voters.has(ReplicaKey(1))
    assert VoterSet.of([voter(1)._replace(key=ReplicaKey(1))]).has(key(1))
