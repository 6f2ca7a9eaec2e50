"""What operators read of a group's rebalances."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.unit.coordinator.group.classic_core import Harness
from tests.unit.coordinator.group.consumer_core import ConsumerCore

from moldau.coordinator.group.classic.requests import LeavingMember
from moldau.coordinator.group.rebalance_log import some_of


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def drain(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


@pytest.fixture
def log() -> Iterator[Lines]:
    logger, lines = logging.getLogger("moldau.coordinator.group"), Lines()
    before = logger.level
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(lines)
    logger.setLevel(before)


def test_a_classic_group_tells_why_it_rebalances_and_what_came_of_it(log: Lines) -> None:
    groups = Harness()
    (first,) = groups.stable(1)
    assert log.drain() == [
        f"group g: rebalance of generation 0 with 1 member begins: {first} joins",
        "group g: generation 1 has 1 member, protocol range",
    ]
    second = groups.begin_join()
    groups.begin_join(first)
    assert log.drain() == [
        f"group g: rebalance of generation 1 with 2 members begins: {second.reply.member_id} joins",
        "group g: generation 2 has 2 members, protocol range",
    ]
    groups.leave(LeavingMember(second.reply.member_id))
    assert log.drain() == [f"group g: rebalance of generation 2 with 1 member begins: {second.reply.member_id} left"]


def test_a_silent_member_is_named_and_an_empty_group_said_to_be_so(log: Lines) -> None:
    groups = Harness()
    (only,) = groups.stable(1)
    log.drain()
    groups.advance(10 * 60_000)
    assert log.drain() == [
        f"group g: rebalance of generation 1 with 0 members begins: the session of {only} has expired",
        "group g: generation 2 is empty",
    ]


def test_heartbeats_and_commits_write_nothing(log: Lines) -> None:
    groups = Harness()
    (only,) = groups.stable(1)
    log.drain()
    for _ in range(10):
        groups.heartbeat(only)
    assert log.drain() == []


def test_a_group_of_the_consumer_protocol_has_a_line_for_each_epoch(log: Lines) -> None:
    groups = ConsumerCore()
    groups.join("a", "orders")
    groups.join("b", "orders")
    assert log.drain() == ["group g: epoch 1 has 1 member: a joins", "group g: epoch 2 has 2 members: b joins"]
    groups.beat("b", -1)
    assert log.drain() == ["group g: epoch 3 has 1 member: b left"]
    groups.pass_ms(100_000)
    assert log.drain() == ["group g: epoch 4 has 0 members: the session of a has expired"]


def test_many_names_stay_one_line() -> None:
    assert some_of(["a", "b", "c"]) == "a, b, c"
    assert some_of([str(number) for number in range(1000)]) == "0, 1, 2 and 997 more"
