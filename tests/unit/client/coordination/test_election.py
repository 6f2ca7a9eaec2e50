from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from moldau.client.admin import Admin
from moldau.client.coordination.membership import Assigned, Election, Leader, NoLeaderError
from moldau.client.errors import UnreachableError


class ByName:
    protocol_type, name = "test", "v0"

    def metadata(self) -> bytes:
        return b""

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return {}

    def read_leader(self, assignment: bytes) -> Leader:
        return Leader(error="two have one name") if assignment == b"twins" else Leader(assignment.decode() or None)


class Clock:
    ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


def never() -> Admin:
    raise AssertionError("no broker is asked here")


def candidate(clock: Clock, elected: list[int]) -> Election:
    election = Election(
        never,
        "g",
        ByName(),
        own_url="me",
        session_timeout_ms=100,
        heartbeat_interval_ms=10,
        on_elected=lambda: elected.append(clock.ms),
        logger=logging.getLogger("tests.election"),
        clock=clock,
    )
    election._membership._alive_ms = 0
    return election


def assigned(url: bytes) -> Assigned:
    return Assigned("member", 1, url)


def test_a_leader_stops_leading_by_the_clock_alone() -> None:
    clock, elected = Clock(), list[int]()
    election = candidate(clock, elected)
    election.on_assigned(assigned(b"me"))
    assert election.is_leader
    assert election.leader_url is None
    clock.ms = 99
    election.on_failed(UnreachableError("away"), is_transient=False)
    assert election.is_leader, "the session is alive: nobody else can have been elected"
    clock.ms = 100
    assert not election.is_leader
    election.on_failed(UnreachableError("away"), is_transient=False)
    election._membership._alive_ms = 101
    assert not election.is_leader, "only the group makes it lead again"
    election.on_assigned(assigned(b"me"))
    assert election.is_leader
    assert elected == [0, 100]


def test_each_change_to_this_instance_is_told_once() -> None:
    clock, elected = Clock(), list[int]()
    election = candidate(clock, elected)
    for url in (b"me", b"me", b"other", b"me", b"twins", b""):
        election.on_assigned(assigned(url))
        clock.ms += 1
    assert elected == [0, 3]
    assert election.leader_url is None
    assert not election.is_leader
    election.on_assigned(assigned(b"other"))
    assert election.leader_url == "other"
    election.on_revoked()
    assert election.leader_url is None


@pytest.mark.parametrize(
    ("is_transient", "expected"), [(True, NoLeaderError), (False, UnreachableError)], ids=["loading", "away"]
)
def test_who_waits_for_a_leader_learns_why_there_is_none(is_transient: bool, expected: type[Exception]) -> None:
    async def story() -> None:
        election = candidate(Clock(), [])
        election._membership._alive_ms = None
        election.on_failed(UnreachableError("nobody answers"), is_transient=is_transient)
        with pytest.raises(expected):
            await election.wait_for_leader(0.01)
        waiting = asyncio.ensure_future(election.wait_for_leader(30))
        election.on_assigned(assigned(b"other"))
        await waiting

    asyncio.run(story())


def test_a_failure_that_lasts_is_one_traceback_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        election = candidate(Clock(), [])
        asked = 0

        def broken() -> Admin:
            nonlocal asked
            asked += 1
            raise RuntimeError("unforeseen")

        election._membership._member._open_admin = broken
        election.start()
        async with asyncio.timeout(30):
            while asked < 3:
                await asyncio.sleep(0.01)
        await election.stop(30)

    asyncio.run(story())
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        "the membership in group g failed",
        "the group g cannot be reached: unforeseen. Trying until it can",
    ]
