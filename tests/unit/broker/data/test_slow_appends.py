"""Changes to logs keep their order, whichever thread makes them, and the loop waits for none of them."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable

import pytest

from moldau.broker.data.slow_appends import SlowAppends
from moldau.log.errors import StorageError, UnexpectedAppendError


def run(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 30))  # type: ignore[arg-type]


def test_while_the_disk_keeps_up_the_loop_makes_changes_on_the_spot() -> None:
    async def story() -> None:
        appends = SlowAppends(asyncio.get_running_loop())
        said: list[str] = []
        appends.run(lambda: said.append(threading.current_thread().name), lambda error: said.append("then"), 1)
        appends.between(lambda: said.append("between"))
        assert said == [threading.current_thread().name, "then", "between"]
        assert await appends.apply(lambda: 7) == 7

    run(story)


def test_a_stalled_change_holds_up_the_line_and_not_the_loop() -> None:
    async def story() -> None:
        appends, said, gate = SlowAppends(asyncio.get_running_loop(), is_always_on=True), [], threading.Event()

        def stalled() -> None:
            gate.wait(20)
            said.append("stalled")

        appends.run(stalled, lambda error: said.append("told"), 1)
        appends.between(lambda: said.append("between"))
        appends.run(lambda: said.append("next"), lambda error: said.append("next told"), 1)
        applied = asyncio.ensure_future(appends.apply(lambda: said.append("applied")))
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert said == []
        assert appends.pending == 2
        assert appends.activity.since_s is not None
        gate.set()
        await applied
        assert said == ["stalled", "told", "between", "next", "next told", "applied"]
        await appends.finish()
        assert (appends.pending, appends.activity.since_s) == (0, None)
        appends.close()

    run(story)


def test_an_action_between_appends_sees_the_thread_at_rest() -> None:
    """Any mix of changes and actions, from any callback: all in the order they were handed in, never two at once."""

    async def story(seed: int) -> None:
        dice = random.Random(seed)
        appends = SlowAppends(asyncio.get_running_loop(), is_always_on=True)
        handed_in: list[int] = []
        made: list[int] = []
        busy = threading.Lock()

        def change(number: int) -> None:
            assert busy.acquire(blocking=False)
            made.append(number)
            busy.release()

        def hand_in(depth: int) -> None:
            number = len(handed_in)
            handed_in.append(number)
            more = (lambda _: hand_in(depth - 1)) if depth and dice.random() < 0.5 else (lambda _: None)
            if dice.random() < 0.6:
                appends.run(lambda: change(number), more, 1)
            else:
                appends.between(lambda: change(number))

        for _ in range(200):
            hand_in(3)
            if dice.random() < 0.1:
                await asyncio.sleep(0)
        await appends.finish()
        appends.close()
        assert made == handed_in

    for seed in range(10):
        run(lambda seed=seed: story(seed))  # type: ignore[misc]


@pytest.mark.parametrize("in_thread", [False, True])
def test_whoever_makes_a_change_hears_why_it_failed(in_thread: bool) -> None:
    async def story() -> None:
        appends, failures = SlowAppends(asyncio.get_running_loop(), is_always_on=in_thread), []
        full = StorageError("the disk is full")

        def refused() -> None:
            raise full

        appends.run(refused, failures.append, 1)
        appends.run(lambda: None, failures.append, 1)
        await appends.finish()
        assert failures == [full, None]
        appends.close()

    run(story)


def test_a_change_that_fails_unforeseen_does_not_stop_the_line(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        appends, said = SlowAppends(asyncio.get_running_loop(), is_always_on=True), []
        appends.run(lambda: 1 // 0, lambda error: said.append(type(error)), 1)  # type: ignore[arg-type,return-value]
        appends.between(lambda: 1 // 0)  # type: ignore[arg-type,return-value]
        appends.run(lambda: said.append("next"), lambda _: None, 1)
        with pytest.raises(ZeroDivisionError):
            await appends.apply(lambda: 1 // 0)
        await appends.finish()
        assert said == [UnexpectedAppendError, "next"]
        appends.close()

    run(story)
    assert caplog.text.count("unhandled exception") == 2


def test_work_for_the_thread_brings_everything_else_there_until_it_is_done() -> None:
    async def story() -> None:
        appends, said, switched = SlowAppends(asyncio.get_running_loop()), [], []
        appends.on_switch = switched.append
        appends.submit(lambda: said.append("roll"))
        assert appends.is_on
        appends.run(lambda: said.append("append"), lambda _: None, 1)
        assert said == []
        await appends.finish()
        assert said == ["roll", "append"]
        assert not appends.is_on
        assert switched == [True, False]
        appends.close()

    run(story)


def test_many_small_appends_fill_the_line_too() -> None:
    async def story() -> None:
        appends, gate = SlowAppends(asyncio.get_running_loop(), is_always_on=True), threading.Event()
        appends.run(lambda: gate.wait(20) and None, lambda _: None, 1)  # type: ignore[arg-type,return-value,func-returns-value]
        for _ in range(40_000):
            appends.run(lambda: None, lambda _: None, 70)
        assert appends.is_full
        gate.set()
        await appends.finish()
        assert not appends.is_full
        appends.close()

    run(story)


@pytest.mark.parametrize(("stall_s", "calm_s"), [(0.03, 1.0), (0.5, 5.0), (15.0, 150.0), (600.0, 300.0)])
def test_the_longer_a_write_has_hung_the_longer_the_thread_appends(stall_s: float, calm_s: float) -> None:
    async def story() -> None:
        now_s = 0.0
        appends = SlowAppends(asyncio.get_running_loop(), clock=lambda: now_s)
        appends.note_slow(stall_s)
        for now_s, is_on in ((calm_s - 0.5, True), (calm_s + 0.5, False)):  # noqa: B007
            appends.run(lambda: None, lambda _: None, 1)
            await appends.finish()
            assert appends.is_on is is_on
        appends.close()

    run(story)
