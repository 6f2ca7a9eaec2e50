"""A group that changes protocol with members in it: up, mixed, and down again; and when it must not."""

from __future__ import annotations

import struct

import pytest
from tests.unit.coordinator.group.consumer_core import ORDERS, ConsumerCore

from moldau.coordinator.group.classic.consumer_protocol import decode_assignment, encode_assignment
from moldau.coordinator.group.classic.group import ClassicGroup, ClassicState
from moldau.coordinator.group.classic.requests import (
    HeartbeatRequest,
    JoinReply,
    JoinRequest,
    LeavingMember,
    MemberProtocol,
    SyncReply,
    SyncRequest,
)
from moldau.coordinator.group.consumer.group import ConsumerGroup
from moldau.core.errors import ErrorCode

NAME = b"orders"


def subscription(*owned: int) -> bytes:
    topics = struct.pack(">hih", 1, 1, len(NAME)) + NAME + struct.pack(">i", -1)
    held = struct.pack(">ih", 1, len(NAME)) + NAME + struct.pack(f">i{len(owned)}i", len(owned), *owned)
    return topics + (held if owned else struct.pack(">i", 0))


def join_request(member_id: str, *owned: int, protocol: str = "range", protocol_type: str = "consumer") -> JoinRequest:
    return JoinRequest(
        "g",
        member_id,
        None,
        "client",
        "/host",
        10_000,
        20_000,
        protocol_type,
        (MemberProtocol(protocol, subscription(*owned)),),
    )


def classic_join(core: ConsumerCore, member_id: str, *owned: int, **fields: str) -> JoinReply:
    reply = core.ask("join", join_request(member_id, *owned, **fields))
    if reply is None:
        core.pass_ms(3000)
        reply = core.replies[max(core.replies)]
    assert isinstance(reply, JoinReply)
    return reply


def sync(core: ConsumerCore, member_id: str, generation: int, *assignments: tuple[str, bytes]) -> SyncReply:
    reply = core.ask("sync", SyncRequest("g", generation, member_id, assignments=assignments))
    assert isinstance(reply, SyncReply)
    return reply


def heartbeat(core: ConsumerCore, member_id: str, generation: int) -> ErrorCode:
    error = core.ask("heartbeat", HeartbeatRequest("g", generation, member_id))
    assert isinstance(error, ErrorCode)
    return error


def assigned(reply: SyncReply) -> list[int]:
    return [number for _, numbers in decode_assignment(reply.assignment) or () for number in numbers]


def with_classic_member(**settings: str) -> tuple[ConsumerCore, str]:
    """A stable classic group of one, which has all four partitions."""
    core = ConsumerCore(**settings)
    member_id = classic_join(core, "").member_id
    assert classic_join(core, member_id).error is ErrorCode.NONE
    everything = encode_assignment(1, [("orders", [0, 1, 2, 3])])
    assert assigned(sync(core, member_id, 1, (member_id, everything))) == [0, 1, 2, 3]
    return core, member_id


def test_a_classic_member_gives_half_to_the_first_new_one() -> None:
    core, old = with_classic_member()
    joined = core.join("new", "orders")
    assert (joined.error, joined.member_epoch, joined.assignment) == (ErrorCode.NONE, 2, {})
    assert core.group.members[old].uses_classic_protocol
    assert heartbeat(core, old, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    revoking = classic_join(core, old, 0, 1, 2, 3)
    assert (revoking.error, revoking.generation_id, revoking.leader) == (ErrorCode.NONE, 1, "")
    kept = assigned(sync(core, old, 1))
    assert kept == [0, 1]
    assert core.beat("new", 2).assignment is None, "nothing is free before it is let go"
    assert classic_join(core, old, *kept).generation_id == 2
    assert assigned(sync(core, old, 2)) == [0, 1]
    assert core.beat("new", 2).assignment == {ORDERS: frozenset([2, 3])}
    assert heartbeat(core, old, 2) is ErrorCode.NONE


def test_a_member_that_uses_what_it_was_not_assigned_holds_it_until_it_lets_go() -> None:
    core, old = with_classic_member()
    assert core.ask("join", join_request(old, 0, 1, 2, 3)) is not None
    assert sync(core, old, 2, (old, encode_assignment(1, [("orders", [0])]))).error is ErrorCode.NONE
    core.join("new", "orders")
    held = core.group.members[old].held[ORDERS]
    assert held == {0, 1, 2, 3}


def test_the_last_new_member_leaves_a_classic_group_that_rebalances() -> None:
    core, old = with_classic_member()
    core.join("new", "orders")
    core.beat("new", -1)
    group = core.core.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert (group.state, list(group.members)) == (ClassicState.PREPARING, [old])
    joined = classic_join(core, old, 0, 1, 2, 3)
    assert (joined.error, joined.leader) == (ErrorCode.NONE, old)
    replayed = core.new_core()
    for key, value in core.log:
        replayed.replay(key, value)
    assert isinstance(replayed.groups["g"], ClassicGroup)


@pytest.mark.parametrize(("policy", "kind"), [("upgrade", ConsumerGroup), ("downgrade", ClassicGroup)])
def test_the_policy_decides_about_ways_back(policy: str, kind: type) -> None:
    core, _ = with_classic_member()
    core.join("new", "orders")
    core.settings = ConsumerCore(group_consumer_migration_policy=policy).settings
    core.beat("new", -1)
    assert isinstance(core.core.groups["g"], kind)


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_classic_group_that_must_stay_one_refuses_new_members(policy: str) -> None:
    core, old = with_classic_member(group_consumer_migration_policy=policy)
    assert core.join("new", "orders").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert heartbeat(core, old, 1) is ErrorCode.NONE


def test_members_that_are_no_consumers_keep_their_group() -> None:
    core = ConsumerCore()
    member_id = classic_join(core, "", protocol_type="connect").member_id
    assert classic_join(core, member_id, protocol_type="connect").error is ErrorCode.NONE
    assert core.join("new", "orders").error is ErrorCode.GROUP_ID_NOT_FOUND


def test_whoever_waits_in_a_join_comes_back_to_the_new_group() -> None:
    core = ConsumerCore()
    member_id = classic_join(core, "").member_id
    assert core.ask("join", join_request(member_id)) is None, "the initial delay"
    assert core.join("new", "orders").error is ErrorCode.NONE
    assert JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member_id) in core.replies.values()
    assert classic_join(core, member_id).error is ErrorCode.NONE


def test_refusals_of_classic_members_in_a_new_group() -> None:
    core, old = with_classic_member()
    core.join("new", "orders")
    assert heartbeat(core, old, 9) is ErrorCode.ILLEGAL_GENERATION
    assert heartbeat(core, "stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(core, "new", 2) is ErrorCode.UNKNOWN_MEMBER_ID, "it speaks the other protocol"
    assert sync(core, old, 9).error is ErrorCode.ILLEGAL_GENERATION
    assert sync(core, old, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert classic_join(core, old, protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert classic_join(core, "other", protocol="roundrobin").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert classic_join(core, "gone", 1).error is ErrorCode.UNKNOWN_MEMBER_ID, "a newcomer owns nothing"


def test_a_classic_member_that_does_not_rejoin_in_time_is_given_up() -> None:
    core, old = with_classic_member()
    core.join("new", "orders")
    for _ in range(5):
        heartbeat(core, old, 1)
        core.beat("new", 2)
        core.pass_ms(4000)
    assert heartbeat(core, old, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert core.beat("new", 2).assignment == {ORDERS: frozenset([0, 1, 2, 3])}


def test_a_silent_classic_member_has_its_own_session() -> None:
    core, old = with_classic_member()
    core.join("new", "orders")
    core.pass_ms(9999)
    assert old in core.group.members
    core.pass_ms(1)
    assert old not in core.group.members


def test_classic_members_leave_by_leave_group() -> None:
    core, old = with_classic_member()
    core.join("new", "orders")
    reply = core.ask("leave", "g", [LeavingMember(old), LeavingMember("stranger")])
    assert [error for _, error in reply.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(core.group.members) == ["new"]
