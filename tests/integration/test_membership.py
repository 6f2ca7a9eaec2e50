"""Groups with a protocol of their own: whatever members say of themselves and are assigned, on a real broker."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from moldau.client.admin import Admin
from moldau.client.coordination.membership import Assigned, Election, Leader, Membership
from moldau.testing import Broker

logger = logging.getLogger("tests.membership")


class Worker:
    """Shares out the tasks that all members together want: as Connect's workers do, in few words."""

    protocol_type = "workers"
    name = "evenly"

    def __init__(self, broker: Broker, group: str, tasks: list[str]) -> None:
        self.tasks = tasks
        self.assigned: list[str] | None = None
        self.generation = -1
        self.membership = Membership(
            lambda: Admin(broker.bootstrap_servers, timeout_ms=30_000),
            group,
            self,
            self,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=100,
            logger=logger,
        )

    def metadata(self) -> bytes:
        return json.dumps(self.tasks).encode()

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        tasks = sorted({task for metadata in members.values() for task in json.loads(metadata)})
        names = sorted(members)
        return {name: json.dumps(tasks[index :: len(names)]).encode() for index, name in enumerate(names)}

    def on_assigned(self, assigned: Assigned) -> None:
        self.assigned, self.generation = json.loads(assigned.assignment), assigned.generation

    def on_revoked(self) -> None:
        self.assigned = None

    def on_failed(self, error: Exception, *, is_transient: bool) -> None:
        assert is_transient, error


class Candidate:
    """Whoever has the smallest name leads."""

    protocol_type = "leaders"
    name = "smallest"

    def __init__(self, broker: Broker, group: str, url: str) -> None:
        self.url = url
        self.times_elected = 0
        self.election = Election(
            lambda: Admin(broker.bootstrap_servers, timeout_ms=30_000),
            group,
            self,
            own_url=url,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=100,
            on_elected=self._count,
            logger=logger,
        )

    def _count(self) -> None:
        self.times_elected += 1

    def metadata(self) -> bytes:
        return self.url.encode()

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return dict.fromkeys(members, min(members.values()))

    def read_leader(self, assignment: bytes) -> Leader:
        return Leader(assignment.decode())


@asynccontextmanager
async def started(*members: Membership | Election) -> AsyncIterator[None]:
    try:
        for member in members:
            member.start()
        yield
    finally:
        for member in members:
            await member.stop(10)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


def test_members_share_out_by_a_protocol_of_their_own(broker: Broker) -> None:
    async def story() -> None:
        one, other = Worker(broker, "workers", ["a", "b", "c"]), Worker(broker, "workers", ["a", "b", "c"])

        def shared() -> list[str]:
            return sorted([*(one.assigned or []), *(other.assigned or [])])

        async with started(one.membership, other.membership):
            await until(lambda: bool(one.assigned and other.assigned) and shared() == ["a", "b", "c"])
            generation = one.generation
            one.tasks = ["a", "b", "c", "d"]
            one.membership.rejoin()
            await until(lambda: shared() == ["a", "b", "c", "d"])
            assert one.generation > generation
            assert one.membership.is_session_alive
            await other.membership.stop(10)
            await until(lambda: one.assigned == ["a", "b", "c", "d"])

    run(story)


def test_another_candidate_leads_when_the_leader_leaves(broker: Broker) -> None:
    async def story() -> None:
        first, second = Candidate(broker, "leaders", "http://a:1"), Candidate(broker, "leaders", "http://b:1")
        async with started(second.election, first.election):
            await until(lambda: first.election.is_leader and second.election.leader_url == "http://a:1")
            await second.election.wait_for_leader(30)
            await first.election.stop(10)
            assert not first.election.is_leader
            await until(lambda: second.election.is_leader)
            assert second.election.leader_url is None
            assert min(first.times_elected, second.times_elected) >= 1

    run(story)
