from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

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


def test_clients_that_ask_again_at_once_share_the_next_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.broker.data.group_commit.GATHER_SHARE", 1e9)
    monkeypatch.setattr("moldau.broker.data.group_commit.GATHER_MOST_S", 1.0)

    async def story() -> None:
        commit, log, done = GroupCommit(asyncio.get_running_loop(), print), SlowLog(), []

        def ask(client: int, more: int) -> None:
            def answered() -> None:
                done.append(client)
                if more:
                    # They come back one by one, in iterations of their own.
                    asyncio.get_running_loop().call_later(0.001 * client, ask, client, more - 1)

            commit.flush_then([log], answered)  # type: ignore[list-item]

        for client in range(5):
            ask(client, 3)
        log.go.set()
        while len(done) < 20:
            await asyncio.sleep(0.001)
        # The first sync is the first client's own, and the last one the others'; in between all five share each.
        assert log.flushes <= 5
        assert sorted(done) == sorted([0, 1, 2, 3, 4] * 4)
        commit.close()

    asyncio.run(story())


def test_who_does_not_come_back_is_not_waited_for_twice() -> None:
    async def story() -> None:
        commit, log, done = GroupCommit(asyncio.get_running_loop(), print), SlowLog(), []
        log.go.set()
        for client in range(5):
            commit.flush_then([log], lambda client=client: done.append(client))  # type: ignore[list-item,misc]
        while len(done) < 5:
            await asyncio.sleep(0.001)
        assert commit._expected > 1
        for number in range(2):
            commit.flush_then([log], lambda: done.append(9))  # type: ignore[list-item]
            while len(done) < 6 + number:
                await asyncio.sleep(0.001)
        assert commit._expected == 1
        commit.close()

    asyncio.run(story())


def test_closing_does_not_wait_for_those_who_were_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.broker.data.group_commit.GATHER_SHARE", 1e9)
    monkeypatch.setattr("moldau.broker.data.group_commit.GATHER_MOST_S", 3600.0)

    async def story() -> None:
        commit, log, done = GroupCommit(asyncio.get_running_loop(), print), SlowLog(), []
        log.go.set()
        commit.flush_then([log], lambda: done.append(1))  # type: ignore[list-item]
        while not done:
            await asyncio.sleep(0.001)
        commit._expected = 7
        commit.flush_then([log], lambda: done.append(2))  # type: ignore[list-item]
        commit.close()
        await asyncio.sleep(0)
        assert done == [1, 2]

    asyncio.run(story())
