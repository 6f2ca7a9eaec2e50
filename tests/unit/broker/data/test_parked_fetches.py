from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

from moldau.broker.data.parked_fetches import STALE_DEADLINES_KEPT, ParkedFetch, ParkedFetches


def partition() -> Any:
    class Waited(SimpleNamespace):
        __hash__ = object.__hash__

    return Waited(waiting=set())


class Reader:
    """Remembers when it was asked to look again; satisfied on request."""

    def __init__(self, *partitions: Any) -> None:
        self.looks: list[Collection[Any] | None] = []
        self.is_satisfied = False
        self.parked = ParkedFetch(partitions, self._retry)

    def _retry(self, changed: Collection[Any] | None) -> bool:
        self.looks.append(changed)
        return self.is_satisfied


def test_readers_look_once_per_turn_however_many_appends_there_were() -> None:
    async def story() -> None:
        fetches, one, other = ParkedFetches(asyncio.get_running_loop()), partition(), partition()
        reader, stranger = Reader(one, other), Reader(partition())
        fetches.park(reader.parked, 10_000)
        fetches.park(stranger.parked, 10_000)
        for _ in range(100):
            fetches.mark(one)
            fetches.mark(other)
        await asyncio.sleep(0)
        assert reader.looks == [{one, other}]
        assert stranger.looks == []
        fetches.close()

    asyncio.run(story())


def test_a_satisfied_reader_leaves_every_partition() -> None:
    async def story() -> None:
        fetches, one, other = ParkedFetches(asyncio.get_running_loop()), partition(), partition()
        reader = Reader(one, other)
        reader.is_satisfied = True
        fetches.park(reader.parked, 10_000)
        fetches.mark(one)
        await asyncio.sleep(0)
        assert (fetches.count, one.waiting, other.waiting) == (0, set(), set())
        fetches.close()

    asyncio.run(story())


def test_time_runs_out_in_the_order_of_the_deadlines_and_not_before() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        fetches, order, began = ParkedFetches(loop), [], loop.time()
        for wait_ms in (60, 20, 40):

            def retry(changed: Any, wait_ms: int = wait_ms) -> bool:
                order.append((wait_ms, changed, loop.time() - began >= wait_ms / 1000))
                return True

            fetches.park(ParkedFetch((), retry), wait_ms)
        while fetches.count:
            await asyncio.sleep(0.005)
        assert order == [(20, None, True), (40, None, True), (60, None, True)]
        assert fetches.expired == 3

    asyncio.run(story())


def test_deadlines_of_answered_fetches_are_swept() -> None:
    async def story() -> None:
        fetches = ParkedFetches(asyncio.get_running_loop())
        for _ in range(3 * STALE_DEADLINES_KEPT):
            reader = Reader()
            fetches.park(reader.parked, 2**31 - 1)
            fetches.leave(reader.parked)
        assert fetches.count == 0
        assert len(fetches._deadlines) <= STALE_DEADLINES_KEPT + 1
        fetches.close()

    asyncio.run(story())
