from __future__ import annotations

import asyncio
import threading
from typing import Any

from moldau.broker.data.group_commit import GroupCommit
from moldau.log.errors import StorageError


class SlowLog:
    """A log whose sync takes until it is let go."""

    def __init__(self) -> None:
        self.flushes = 0
        self.go = threading.Event()
        self.error: Exception | None = None

    def flush(self) -> None:
        self.go.wait(10)
        if self.error is not None:
            raise self.error
        self.flushes += 1


def test_one_sync_covers_all_who_came_before_it_began() -> None:
    async def story() -> None:
        commit, log, done = GroupCommit(asyncio.get_running_loop(), print), SlowLog(), []
        for number in range(10):
            commit.flush_then([log], lambda number=number: done.append(number))  # type: ignore[list-item,misc]
        assert done == []
        log.go.set()
        while len(done) < 10:
            await asyncio.sleep(0.001)
        # The first had the first sync to itself; the other nine came while it ran and shared the second.
        assert (done, log.flushes, commit.rounds) == (list(range(10)), 2, 2)
        commit.close()

    asyncio.run(story())


def test_the_logs_of_a_round_are_synced_side_by_side() -> None:
    async def story() -> None:
        commit, done = GroupCommit(asyncio.get_running_loop(), print), []
        logs = [SlowLog() for _ in range(3)]
        meeting = threading.Barrier(3)
        for log in logs:
            log.go.wait = lambda _: bool(meeting.wait(10)) or True  # type: ignore[method-assign,assignment,misc]
        commit.flush_then(logs, lambda: done.append(1))  # type: ignore[arg-type]
        while not done:
            await asyncio.sleep(0.001)
        assert [log.flushes for log in logs] == [1, 1, 1]
        commit.close()

    asyncio.run(story())


def test_a_failed_sync_acknowledges_nothing_and_is_fatal() -> None:
    async def story() -> None:
        fatal: list[BaseException] = []
        done: list[Any] = []
        commit, log = GroupCommit(asyncio.get_running_loop(), fatal.append), SlowLog()
        log.error = OSError("the disk is gone")
        log.go.set()
        commit.flush_then([log], lambda: done.append(1))  # type: ignore[list-item]
        while not fatal:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert (done, fatal) == ([], [log.error])
        commit.close()

    asyncio.run(story())


def test_a_sync_that_could_not_be_tried_is_tried_again() -> None:
    async def story() -> None:
        fatal: list[BaseException] = []
        done: list[Any] = []
        commit, log = GroupCommit(asyncio.get_running_loop(), fatal.append), SlowLog()
        log.error = StorageError("too many open files")
        log.go.set()
        commit.flush_then([log], lambda: done.append(1))  # type: ignore[list-item]
        await asyncio.sleep(0.01)
        assert done == []
        log.error = None
        while not done:
            await asyncio.sleep(0.001)
        assert (fatal, log.flushes) == ([], 1)
        commit.close()

    asyncio.run(story())


def test_closing_does_not_wait_for_descriptors_and_acknowledges_nothing() -> None:
    async def story() -> None:
        fatal: list[BaseException] = []
        done: list[Any] = []
        commit, log = GroupCommit(asyncio.get_running_loop(), fatal.append), SlowLog()
        log.error = StorageError("too many open files")
        log.go.set()
        commit.flush_then([log], lambda: done.append(1))  # type: ignore[list-item]
        commit.close()
        await asyncio.sleep(0.01)
        assert (done, fatal) == ([], [])

    asyncio.run(story())


def test_closing_syncs_for_those_who_still_wait() -> None:
    async def story() -> None:
        commit, log, done = GroupCommit(asyncio.get_running_loop(), print), SlowLog(), []
        log.go.set()
        for number in range(5):
            commit.flush_then([log], lambda number=number: done.append(number))  # type: ignore[list-item,misc]
        commit.close()
        await asyncio.sleep(0)
        assert done == list(range(5))

    asyncio.run(story())
