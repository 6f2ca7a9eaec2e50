"""Syncing, staying and leaving: every answer of the classic protocol after the join."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.group.classic_core import GROUP, Harness

from moldau.coordinator.group.classic.group import ClassicState
from moldau.coordinator.group.classic.requests import LeavingMember
from moldau.core.errors import ErrorCode


@pytest.fixture
def groups() -> Harness:
    return Harness()


def test_everybody_hears_what_the_leader_assigned(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    assert groups.sync(leader).assignment == leader.encode()
    reply = groups.sync(follower)
    assert (reply.assignment, reply.protocol_type, reply.protocol_name) == (follower.encode(), "consumer", "range")


def test_a_member_the_leader_forgot_gets_nothing(groups: Harness) -> None:
    member_id = groups.join().member_id
    assert groups.sync(member_id, assignments=(("another", b"all"),)).assignment == b""
    assert groups.group.state is ClassicState.STABLE


def test_a_follower_waits_for_the_leaders_assignment(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    for one in (leader, follower):
        groups.begin_join(one)
    waiting = groups.begin_sync(follower)
    assert not waiting.is_there
    groups.sync(leader, assignments=((follower, b"yours"),))
    assert waiting.reply.assignment == b"yours"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_that_does_not_fit_is_refused(groups: Harness, changed: dict[str, object], error: ErrorCode) -> None:
    (member_id,) = groups.stable()
    reply = groups.sync(**({"member_id": member_id} | changed))  # type: ignore[arg-type]
    assert (reply.error, reply.assignment) == (error, b"")


def test_a_sync_while_members_gather_is_told_so(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    groups.begin_join(leader)
    assert groups.sync(follower).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rebalance_in_the_sync_phase_frees_those_who_wait(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    for one in (leader, follower):
        groups.begin_join(one)
    waiting = groups.begin_sync(follower)
    groups.begin_join()
    assert waiting.reply.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_never_sync_are_dropped_after_the_rebalance_timeout(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    for one in (leader, follower):
        groups.begin_join(one)
    waiting = groups.begin_sync(follower)
    for _ in range(11):
        groups.heartbeat(leader)
        groups.advance(5_000)
    assert not waiting.is_there
    groups.heartbeat(leader)
    groups.advance(5_000)
    assert waiting.reply.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(groups.group.members) == [follower]


def test_an_assignment_that_cannot_be_written_is_told_to_all_and_can_be_repeated(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    for one in (leader, follower):
        groups.begin_join(one)
    waiting = groups.begin_sync(follower)
    groups.break_disk()
    assert groups.sync(leader, assignments=((follower, b"yours"),)) is ErrorCode.NOT_COORDINATOR
    assert waiting.reply is ErrorCode.NOT_COORDINATOR
    assert groups.group.state is ClassicState.COMPLETING
    groups.log.error = None
    assert groups.sync(leader, assignments=((follower, b"yours"),)).error is ErrorCode.NONE
    assert groups.sync(follower).assignment == b"yours"


def test_heartbeats_tell_the_state_of_the_group(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    assert groups.heartbeat(follower) is ErrorCode.NONE
    assert groups.heartbeat(follower, 1) is ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    groups.begin_join(leader)
    assert groups.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.begin_join(follower)
    assert groups.heartbeat(follower) is ErrorCode.NONE
    groups.leave(LeavingMember(leader), LeavingMember(follower))
    assert groups.heartbeat(follower) is ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_beats_for_a_group_that_is_not_there(groups: Harness) -> None:
    assert groups.heartbeat("member", 1) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("sign", ["heartbeat", "commit", "sync"])
def test_any_sign_of_life_keeps_a_session(groups: Harness, sign: str) -> None:
    (member_id,) = groups.stable()
    for _ in range(3):
        groups.advance(9_000)
        if sign == "heartbeat":
            groups.heartbeat(member_id)
        elif sign == "sync":
            groups.sync(member_id)
        else:
            groups.commit(member_id=member_id, epoch=1)
    assert groups.group.state is ClassicState.STABLE


def test_silence_for_a_session_removes_a_member_and_rebalances(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    groups.advance(5_000)
    groups.heartbeat(follower)
    groups.advance(5_000)
    assert list(groups.group.members) == [follower]
    assert groups.group.leader == follower
    assert groups.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.join(follower).generation_id == 3
    assert groups.heartbeat(leader) is ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_rebalances_those_who_stay(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    reply = groups.leave(LeavingMember(leader))
    assert reply.members == ((LeavingMember(leader), ErrorCode.NONE),)
    assert groups.heartbeat(follower) is ErrorCode.REBALANCE_IN_PROGRESS


def test_each_leaving_member_has_its_own_answer(groups: Harness) -> None:
    (member_id,) = groups.stable()
    pending = groups.join(requires_known_member_id=True).member_id
    leaving = [LeavingMember("stranger"), LeavingMember(pending), LeavingMember(member_id), LeavingMember("", "nobody")]
    assert [error for _, error in groups.leave(*leaving).members] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert groups.group.state is ClassicState.EMPTY


def test_leaving_a_group_that_is_not_there(groups: Harness) -> None:
    assert groups.leave(LeavingMember("member")).error is ErrorCode.UNKNOWN_MEMBER_ID


# --- static members -------------------------------------------------------------------------------------


def with_static_member(groups: Harness) -> tuple[str, str]:
    """A stable group of a dynamic leader and a static follower."""
    (leader,) = groups.stable()
    static = groups.begin_join(group_instance_id="i")
    groups.begin_join(leader)
    static_id = static.reply.member_id
    waiting = groups.begin_sync(static_id, group_instance_id="i")
    groups.sync(leader, assignments=((static_id, b"mine"),))
    assert waiting.reply.assignment == b"mine"
    return leader, static_id


def test_a_static_member_comes_back_without_a_rebalance(groups: Harness) -> None:
    leader, old = with_static_member(groups)
    reply = groups.join(group_instance_id="i")
    assert (reply.error, reply.generation_id, reply.leader, reply.members) == (ErrorCode.NONE, 2, leader, ())
    assert reply.member_id != old
    assert reply.member_id.startswith("i-")
    assert groups.sync(reply.member_id, group_instance_id="i").assignment == b"mine"
    assert groups.heartbeat(leader) is ErrorCode.NONE
    assert groups.heartbeat(old, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat(old) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.restarted().group.static_members == {"i": reply.member_id}


def test_a_static_leader_that_comes_back_may_skip_assigning(groups: Harness) -> None:
    old = groups.join(group_instance_id="i").member_id
    groups.sync(old, group_instance_id="i", assignments=((old, b"mine"),))
    reply = groups.join(group_instance_id="i")
    assert reply.skip_assignment
    assert reply.leader == reply.member_id
    assert [one.member_id for one in reply.members] == [reply.member_id]
    older_client = groups.join(group_instance_id="i", can_skip_assignment=False)
    assert not older_client.skip_assignment
    assert older_client.leader == reply.member_id != older_client.member_id
    assert groups.sync(older_client.member_id, group_instance_id="i").assignment == b"mine"


def test_a_static_member_that_changes_the_vote_rebalances(groups: Harness) -> None:
    from moldau.coordinator.group.classic.requests import MemberProtocol

    old = groups.join(group_instance_id="i", protocols=(MemberProtocol("a", b""), MemberProtocol("b", b""))).member_id
    groups.sync(old, group_instance_id="i")
    changed = groups.join(group_instance_id="i", protocols=(MemberProtocol("b", b""), MemberProtocol("a", b"")))
    assert (changed.generation_id, changed.protocol_name) == (2, "b")


def test_another_member_of_the_same_instance_is_fenced(groups: Harness) -> None:
    _, static_id = with_static_member(groups)
    assert groups.join("impostor", group_instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert groups.sync("impostor", group_instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    leaving = groups.leave(LeavingMember("impostor", "i"))
    assert leaving.members[0][1] is ErrorCode.FENCED_INSTANCE_ID
    assert groups.commit(member_id="impostor", group_instance_id="i", epoch=2) is ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat(static_id, instance_id="i") is ErrorCode.NONE


def test_a_waiting_static_member_is_fenced_by_its_successor(groups: Harness) -> None:
    _, static_id = with_static_member(groups)
    groups.begin_join()
    waiting = groups.begin_join(static_id, group_instance_id="i")
    successor = groups.begin_join(group_instance_id="i")
    assert waiting.reply.error is ErrorCode.FENCED_INSTANCE_ID
    assert not successor.is_there


def test_a_static_member_stays_through_a_rebalance_until_its_session_ends(groups: Harness) -> None:
    leader, _ = with_static_member(groups)
    rejoined = groups.begin_join(leader, rebalance_timeout_ms=6000, session_timeout_ms=30_000)
    for member in groups.group.members.values():
        member.rebalance_timeout_ms = 6000
    groups.advance(9_999)
    assert not rejoined.is_there
    groups.advance(1)
    assert rejoined.reply.generation_id == 3
    assert list(groups.group.members) == [leader]


def test_an_operator_removes_a_static_member_by_its_instance(groups: Harness) -> None:
    _, static_id = with_static_member(groups)
    assert groups.leave(LeavingMember("", "i")).members[0][1] is ErrorCode.NONE
    assert static_id not in groups.group.members


def test_what_happens_in_a_group_is_found_under_its_name_only(groups: Harness) -> None:
    groups.stable()
    assert set(groups.core.groups) == {GROUP}
