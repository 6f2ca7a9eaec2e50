"""Heartbeats of the consumer protocol: joining, moving partitions, being fenced, leaving, and every refusal."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator.group.consumer_core import ORDERS, PAYMENTS, ConsumerCore

from moldau.coordinator.group.consumer.group import ConsumerGroupState
from moldau.coordinator.group.consumer.topics import TopicFacts
from moldau.coordinator.group.group import RefusedError
from moldau.core.errors import ErrorCode


@pytest.fixture
def core() -> ConsumerCore:
    return ConsumerCore()


def parts(*numbers: int) -> dict[Any, frozenset[int]]:
    return {ORDERS: frozenset(numbers)} if numbers else {}


def test_the_first_member_gets_everything_at_once(core: ConsumerCore) -> None:
    reply = core.join("a", "orders")
    assert (reply.error, reply.member_id, reply.member_epoch) == (ErrorCode.NONE, "a", 1)
    assert reply.heartbeat_interval_ms == 5000
    assert reply.assignment == parts(0, 1, 2, 3)
    assert core.group.state is ConsumerGroupState.STABLE


def test_a_member_without_an_id_is_given_one_where_it_cannot_bring_its_own(core: ConsumerCore) -> None:
    assert core.join("", "orders", brings_member_id=False).member_id == "id-1"
    assert core.join("", "orders").error is ErrorCode.INVALID_REQUEST


def test_a_quiet_heartbeat_writes_nothing_and_tells_nothing(core: ConsumerCore) -> None:
    core.join("a", "orders")
    written = len(core.log)
    reply = core.beat("a", 1)
    assert (reply.error, reply.member_epoch, reply.assignment) == (ErrorCode.NONE, 1, None)
    assert len(core.log) == written


def test_a_newcomer_waits_until_partitions_are_let_go(core: ConsumerCore) -> None:
    core.join("a", "orders")
    assert core.join("b", "orders").assignment == {}
    assert core.group.state is ConsumerGroupState.RECONCILING
    revoking = core.beat("a", 1)
    assert (revoking.member_epoch, revoking.assignment) == (1, parts(0, 1))
    assert core.beat("b", 2).assignment is None
    assert core.beat("a", 1).member_epoch == 1, "it said nothing about what it owns"
    assert core.beat("a", 1, owned=parts(0, 1)).member_epoch == 2
    assert core.beat("b", 2).assignment == parts(2, 3)
    assert core.group.state is ConsumerGroupState.STABLE


def test_a_member_that_missed_a_reply_may_come_with_its_previous_epoch(core: ConsumerCore) -> None:
    core.join("a", "orders")
    core.topics.by_name = {**core.topics.by_name, "orders": TopicFacts(ORDERS, 6)}
    assert core.beat("a", 1).member_epoch == 2
    again = core.beat("a", 1, owned=parts(0, 1, 2, 3), rebalance_timeout_ms=9, subscribed_topic_names=("orders",))
    assert (again.error, again.member_epoch, again.assignment) == (ErrorCode.NONE, 2, parts(0, 1, 2, 3, 4, 5))
    assert core.beat("a", 1, owned=parts(7)).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert core.beat("a", 1).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_epochs_of_the_past_and_the_future_are_fenced(core: ConsumerCore) -> None:
    core.join("a", "orders")
    assert core.beat("a", 9).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert core.join("a", "orders").assignment == parts(0, 1, 2, 3), "joining again is always allowed"


def test_strangers_are_told_so(core: ConsumerCore) -> None:
    assert core.beat("a", 1).error is ErrorCode.GROUP_ID_NOT_FOUND
    core.join("a", "orders")
    assert core.beat("b", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert core.beat("b", -1).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("epoch", "fields"),
    [
        (-3, {}),
        (-2, {}),
        (0, {}),
        (0, {"subscribed_topic_names": ("orders",), "owned": {}}),
        (0, {"subscribed_topic_names": ("orders",), "rebalance_timeout_ms": 9}),
        (0, {"subscribed_topic_names": ("orders",), "rebalance_timeout_ms": 9, "owned": {ORDERS: frozenset([1])}}),
        (0, {"rebalance_timeout_ms": 9, "owned": {}}),
        (1, {"instance_id": ""}),
        (1, {"rack_id": ""}),
        (1, {"rack_id": "r" * 32_768}),
        (1, {"subscribed_topic_regex": "é" * 16_384}),
    ],
)
def test_what_cannot_be_meant_is_an_invalid_request(core: ConsumerCore, epoch: int, fields: dict[str, Any]) -> None:
    reply = core.beat("a", epoch, **fields)
    assert reply.error is ErrorCode.INVALID_REQUEST
    assert reply.message


def test_assignors_and_patterns_are_checked(core: ConsumerCore) -> None:
    assert core.join("a", "orders", server_assignor="sticky").error is ErrorCode.UNSUPPORTED_ASSIGNOR
    reply = core.join("a", subscribed_topic_regex="(?=orders)")
    assert reply.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert core.core.groups == {}


def test_a_full_group_takes_nobody_else() -> None:
    core = ConsumerCore(group_consumer_max_size=1)
    core.join("a", "orders")
    assert core.join("b", "orders").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert core.join("a", "orders").error is ErrorCode.NONE


def test_what_a_member_leaves_goes_to_the_others(core: ConsumerCore) -> None:
    core.join("a", "orders")
    core.join("b", "orders")
    assert core.beat("a", -1).member_epoch == -1
    assert core.group.state is ConsumerGroupState.ASSIGNING
    assert core.beat("b", 2).assignment == parts(0, 1, 2, 3)
    core.beat("b", -1)
    assert core.group.state is ConsumerGroupState.EMPTY


def test_a_silent_member_is_given_up_after_a_session(core: ConsumerCore) -> None:
    core.join("a", "orders")
    core.pass_ms(44_999)
    core.beat("a", 1)
    core.pass_ms(44_999)
    assert "a" in core.group.members
    core.pass_ms(1)
    assert core.group.members == {}
    assert core.beat("a", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_may_have_its_own_session_and_interval(core: ConsumerCore) -> None:
    core.own_settings = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "99999"}
    assert core.join("a", "orders").heartbeat_interval_ms == 15_000, "not more than the broker allows"
    core.pass_ms(49_999)
    assert "a" in core.group.members
    core.pass_ms(1)
    assert core.group.members == {}


def test_a_member_that_does_not_let_go_in_time_is_given_up(core: ConsumerCore) -> None:
    core.join("a", "orders", rebalance_timeout_ms=8000)
    core.join("b", "orders")
    core.beat("a", 1)
    for _ in range(7):
        core.pass_ms(1000)
        assert core.beat("a", 1).error is ErrorCode.NONE
    core.pass_ms(1000)
    assert core.beat("a", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert core.beat("b", 2).assignment == parts(0, 1, 2, 3)


def test_sessions_begin_anew_when_the_coordinator_was_restarted(core: ConsumerCore) -> None:
    core.join("a", "orders")
    core.core = core.new_core()
    for key, value in core.log:
        core.core.replay(key, value)
    core.core.on_loaded(core.now_ms)
    core.pass_ms(44_999)
    assert core.beat("a", 1).error is ErrorCode.NONE


def test_a_static_member_that_is_back_gets_what_it_had(core: ConsumerCore) -> None:
    core.join("a", "orders", instance_id="i")
    core.join("b", "orders")
    core.beat("a", 1, instance_id="i", owned=parts(0, 1))
    assert core.join("c", "orders", instance_id="i").error is ErrorCode.UNRELEASED_INSTANCE_ID
    assert core.beat("a", -2, instance_id="i").member_epoch == -2
    epoch = core.group.epoch
    back = core.join("c", "orders", instance_id="i")
    assert (back.error, back.assignment) == (ErrorCode.NONE, parts(0, 1))
    assert core.group.epoch == epoch, "nobody else had to notice"
    assert core.beat("a", 2, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert core.beat("a", -1, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_stays_away_is_given_up(core: ConsumerCore) -> None:
    core.join("a", "orders", instance_id="i")
    core.beat("a", -2, instance_id="i")
    core.pass_ms(45_000)
    assert core.group.members == {}


def test_a_pattern_follows_topics_that_come_and_go(core: ConsumerCore) -> None:
    reply = core.join("a", subscribed_topic_regex="or.*|in.*")
    assert reply.assignment == parts(0, 1, 2, 3)
    core.topics.by_name = {**core.topics.by_name, "invoices": TopicFacts(PAYMENTS, 1)}
    reply = core.beat("a", 1)
    assert reply.assignment == {**parts(0, 1, 2, 3), PAYMENTS: frozenset([0])}
    assert core.group.regexes["or.*|in.*"].topics == ("invoices", "orders")
    core.beat("a", 2, subscribed_topic_regex="", subscribed_topic_names=("orders",))
    assert core.group.regexes == {}


def test_subscribing_to_other_topics_moves_the_member_there(core: ConsumerCore) -> None:
    core.join("a", "orders")
    reply = core.beat("a", 1, subscribed_topic_names=("payments",))
    assert (reply.member_epoch, reply.assignment) == (1, {})
    reply = core.beat("a", 1, owned={})
    assert (reply.member_epoch, reply.assignment) == (2, {PAYMENTS: frozenset([0, 1])})


def test_the_assignor_most_members_ask_for_decides(core: ConsumerCore) -> None:
    core.join("b", "orders", "payments", server_assignor="range")
    core.join("a", "orders", "payments", server_assignor="range")
    assert core.group.targets["a"] == {**parts(0, 1), PAYMENTS: frozenset([0])}


def test_commits_need_the_members_epoch(core: ConsumerCore) -> None:
    core.join("a", "orders")
    check = core.group.check_commit
    check("a", None, 1, is_transactional=False, api_version=9)
    for epoch, version, error in ((0, 9, ErrorCode.STALE_MEMBER_EPOCH), (0, 8, ErrorCode.ILLEGAL_GENERATION)):
        with pytest.raises(RefusedError) as refused:
            check("a", None, epoch, is_transactional=False, api_version=version)
        assert refused.value.error is error
    with pytest.raises(RefusedError, match="UNKNOWN_MEMBER_ID"):
        check("b", None, 1, is_transactional=False, api_version=9)
    with pytest.raises(RefusedError, match="UNKNOWN_MEMBER_ID"):
        check("", None, -1, is_transactional=False, api_version=9)
    with pytest.raises(RefusedError, match="STALE_MEMBER_EPOCH"):
        core.group.check_fetch("a", 0)
    core.group.check_fetch(None, -1)


def test_a_deleted_group_leaves_nothing(core: ConsumerCore) -> None:
    core.join("a", "orders", subscribed_topic_regex="p.*")
    core.beat("a", -1)
    ticket = 99
    core.carry_out(core.core.delete_group("g", ticket))
    assert core.replies[ticket] is ErrorCode.NONE
    assert core.core.groups == {}
    replayed = core.new_core()
    for key, value in core.log:
        replayed.replay(key, value)
    assert replayed.groups == {}
