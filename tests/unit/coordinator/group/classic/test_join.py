"""Joining a classic group: who is let in, and when the join phase ends."""

from __future__ import annotations

import pytest
from tests.unit.coordinator.group.classic_core import TOPIC_T, Harness

from moldau.coordinator.group.classic.group import ClassicState
from moldau.coordinator.group.classic.requests import LeavingMember, MemberProtocol
from moldau.core.errors import ErrorCode

RANGE, ROBIN = MemberProtocol("range", b"r"), MemberProtocol("roundrobin", b"rr")


@pytest.fixture
def groups() -> Harness:
    return Harness()


def test_the_first_member_leads_the_first_generation(groups: Harness) -> None:
    reply = groups.join()
    assert reply.error is ErrorCode.NONE
    assert (reply.generation_id, reply.leader, reply.protocol_name) == (1, reply.member_id, "range")
    assert reply.member_id == "client-1"
    assert [(one.member_id, one.metadata) for one in reply.members] == [("client-1", TOPIC_T)]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_cannot_be_is_refused_and_leaves_no_group(
    groups: Harness, changed: dict[str, object], error: ErrorCode
) -> None:
    reply = groups.join(**changed)
    assert (reply.error, reply.generation_id) == (error, -1)
    assert not groups.core.groups


@pytest.mark.parametrize("changed", [{"protocol_type": "connect"}, {"protocols": (ROBIN,)}])
def test_a_protocol_the_others_do_not_share_is_inconsistent(groups: Harness, changed: dict[str, object]) -> None:
    groups.stable()
    assert groups.join(**changed).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_stranger_with_a_member_id_is_unknown_to_a_group(groups: Harness) -> None:
    groups.stable()
    assert groups.join("stranger").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_newcomers_are_given_an_id_to_come_back_with(groups: Harness) -> None:
    first = groups.join(requires_known_member_id=True)
    assert (first.error, first.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "client-1")
    assert groups.join("client-1").error is ErrorCode.NONE


def test_an_id_that_nobody_came_back_with_expires(groups: Harness) -> None:
    groups.join(requires_known_member_id=True)
    groups.advance(10_000)
    assert groups.join("client-1").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_join_phase_waits_for_ids_given_out(groups: Harness) -> None:
    (leader,) = groups.stable()
    groups.join(requires_known_member_id=True)
    rejoined = groups.begin_join(leader)
    assert not rejoined.is_there
    groups.advance(9_999)
    assert not rejoined.is_there
    groups.advance(1)
    assert rejoined.reply.error is ErrorCode.NONE


def test_a_full_group_takes_nobody() -> None:
    groups = Harness(group_max_size=1)
    (member_id,) = groups.stable()
    refused = groups.join()
    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert groups.heartbeat(member_id) is ErrorCode.NONE


def test_an_empty_group_waits_for_more_members_as_long_as_they_keep_coming() -> None:
    groups = Harness(group_initial_rebalance_delay_ms=3000)
    joins = [groups.begin_join()]
    groups.advance(2000)
    joins.append(groups.begin_join())
    groups.advance(2000)
    joins.append(groups.begin_join())
    assert not any(one.is_there for one in joins)
    groups.advance(4999)
    assert not any(one.is_there for one in joins)
    groups.advance(1)
    assert [one.reply.generation_id for one in joins] == [1, 1, 1]


def test_the_initial_wait_is_no_longer_than_the_rebalance_timeout() -> None:
    groups = Harness(group_initial_rebalance_delay_ms=3000)
    first = groups.begin_join(rebalance_timeout_ms=7000)
    for _ in range(7):
        assert not first.is_there
        groups.begin_join(rebalance_timeout_ms=7000)
        groups.advance(1000)
    assert first.is_there


def test_only_the_leader_hears_of_everybody(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    joins = {one: groups.begin_join(one) for one in (leader, follower)}
    assert [one.member_id for one in joins[leader].reply.members] == [leader, follower]
    assert joins[follower].reply.members == ()
    assert joins[follower].reply.leader == leader


def test_a_follower_that_rejoins_unchanged_disturbs_nobody(groups: Harness) -> None:
    _, follower = groups.stable(2)
    reply = groups.join(follower)
    assert (reply.error, reply.generation_id) == (ErrorCode.NONE, 2)
    assert groups.group.state is ClassicState.STABLE


@pytest.mark.parametrize("who", ["leader", "follower"])
def test_a_leader_or_a_changed_follower_starts_a_rebalance(groups: Harness, who: str) -> None:
    leader, follower = groups.stable(2)
    if who == "leader":
        groups.begin_join(leader)
    else:
        groups.begin_join(follower, protocols=(MemberProtocol("range", b"other"),))
    assert groups.group.state is ClassicState.PREPARING
    assert groups.heartbeat(follower if who == "leader" else leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_whoever_does_not_rejoin_in_time_is_dropped(groups: Harness) -> None:
    leader, follower = groups.stable(2)
    rejoined = groups.begin_join(follower)
    groups.begin_join(follower, protocols=(MemberProtocol("range", b"other"),))
    assert rejoined.is_there
    for _ in range(11):
        groups.heartbeat(leader)
        groups.advance(5_000)
    assert groups.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.advance(5_000)
    assert list(groups.group.members) == [follower]
    assert groups.group.leader == follower
    assert groups.heartbeat(leader) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_protocol_most_members_like_best_wins() -> None:
    groups = Harness(group_initial_rebalance_delay_ms=3000)
    joins = [groups.begin_join(protocols=order) for order in [(RANGE, ROBIN), (ROBIN, RANGE), (ROBIN, RANGE)]]
    groups.advance(6000)
    assert {one.reply.protocol_name for one in joins} == {"roundrobin"}
    assert [one.metadata for one in joins[0].reply.members] == [b"rr"] * 3


def test_a_draw_goes_by_the_leaders_order() -> None:
    groups = Harness(group_initial_rebalance_delay_ms=3000)
    joins = [groups.begin_join(protocols=order) for order in [(RANGE, ROBIN), (ROBIN, RANGE)]]
    groups.advance(6000)
    assert {one.reply.protocol_name for one in joins} == {"range"}


def test_a_protocol_that_one_member_lacks_cannot_win() -> None:
    groups = Harness(group_initial_rebalance_delay_ms=3000)
    joins = [groups.begin_join(protocols=order) for order in [(RANGE, ROBIN), (RANGE, ROBIN), (ROBIN,)]]
    groups.advance(6000)
    assert {one.reply.protocol_name for one in joins} == {"roundrobin"}


def test_a_newcomer_waits_five_minutes_at_most(groups: Harness) -> None:
    leader = groups.join(rebalance_timeout_ms=400_000).member_id
    groups.sync(leader)
    newcomer = groups.begin_join(rebalance_timeout_ms=400_000)
    for _ in range(59):
        groups.advance(5_000)
        groups.heartbeat(leader)
    assert not newcomer.is_there
    groups.advance(5_000)
    assert newcomer.reply.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_join_of_a_waiting_member_takes_the_firsts_place(groups: Harness) -> None:
    leader, _ = groups.stable(2)
    lost = groups.begin_join(leader)
    again = groups.begin_join(leader)
    assert lost.reply.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert not again.is_there


def test_generations_rise_through_empty_times(groups: Harness) -> None:
    (member_id,) = groups.stable()
    groups.leave(LeavingMember(member_id))
    assert groups.group.state is ClassicState.EMPTY
    assert groups.join().generation_id == 3


def test_a_group_keeps_members_and_generation_through_a_restart(groups: Harness) -> None:
    members = groups.stable(2)
    again = groups.restarted()
    assert [again.heartbeat(one, 2) for one in members] == [ErrorCode.NONE] * 2
    assert [again.sync(one).assignment for one in members] == [one.encode() for one in members]
    again.advance(9_999)
    assert again.group.state is ClassicState.STABLE
    again.advance(1)
    assert again.group.state is ClassicState.EMPTY


def test_a_join_in_the_sync_phase_repeats_the_lost_reply(groups: Harness) -> None:
    first = groups.join()
    again = groups.join(first.member_id)
    assert again == first
