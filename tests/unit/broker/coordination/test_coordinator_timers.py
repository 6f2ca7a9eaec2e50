"""Shards are woken when they asked to be, whatever another one does."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from moldau.broker.coordination.coordinator_timers import CoordinatorTimers
from moldau.coordinator.runtime.shard import Shard


class Woken:
    def __init__(self, name: str, log: list[tuple[str, int]], *, is_broken: bool = False) -> None:
        self._name, self._log, self._is_broken = name, log, is_broken

    def on_time(self, now_ms: int) -> None:
        self._log.append((self._name, now_ms))
        if self._is_broken:
            raise RuntimeError("broken")


def run_with(*wishes: tuple[str, int, bool], until: int) -> list[tuple[str, int]]:
    """Ask for each wish `(shard, deadline_ms, is_broken)`; the clock jumps to wherever the timers look next."""
    log: list[tuple[str, int]] = []
    now = [0]

    async def story() -> None:
        timers = CoordinatorTimers(asyncio.get_running_loop(), lambda: now[0])
        shards: dict[str, Any] = {}
        for name, deadline_ms, is_broken in wishes:
            shard = shards.setdefault(name, Woken(name, log, is_broken=is_broken))
            timers.wake(cast("Shard[Any]", shard), deadline_ms)
        for now[0] in range(until + 1):
            timers._run()
        timers.close()

    asyncio.run(story())
    return log


def test_each_shard_is_woken_once_at_the_earliest_time_it_asked_for() -> None:
    assert run_with(("a", 30, False), ("b", 10, False), ("a", 20, False), until=50) == [("b", 10), ("a", 20)]


def test_a_shard_that_fails_does_not_keep_the_others_asleep() -> None:
    assert run_with(("a", 5, True), ("b", 5, False), ("c", 9, False), until=10) == [("a", 5), ("b", 5), ("c", 9)]


def test_the_loops_timer_runs_them() -> None:
    log: list[tuple[str, int]] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        timers = CoordinatorTimers(loop, lambda: int((loop.time() - began) * 1000))
        timers.wake(cast("Shard[Any]", Woken("late", log)), 60_000)
        timers.wake(cast("Shard[Any]", Woken("soon", log)), 5)
        while not log:
            await asyncio.sleep(0.001)
        timers.close()

    asyncio.run(story())
    assert [name for name, _ in log] == ["soon"]
