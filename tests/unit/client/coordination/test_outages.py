from __future__ import annotations

import asyncio
import threading

import pytest

from moldau.client.coordination.outages import Outage
from moldau.client.waiting import in_daemon_thread, join_thread


def test_a_trouble_that_lasts_is_one_line_with_reminders_and_one_at_its_end() -> None:
    outage = Outage("the group g")
    lines = [outage.failure_line("refused", now) for now in range(0, 70)]
    assert [(now, line) for now, line in enumerate(lines) if line] == [
        (0, "the group g cannot be reached: refused. Trying until it can"),
        (30, "the group g still cannot be reached after 30 s: refused"),
        (60, "the group g still cannot be reached after 60 s: refused"),
    ]
    assert outage.recovery_line(71) == "the group g is reached again after 71 s"
    assert outage.recovery_line(72) is None
    assert outage.failure_line("refused", 73) is not None


def test_a_blocking_call_gives_its_result_or_its_error_and_holds_nobody_who_is_cancelled() -> None:
    async def run() -> None:
        assert await in_daemon_thread(lambda: 5, name="t") == 5
        with pytest.raises(KeyError):
            await in_daemon_thread(lambda: {}["a"], name="t")
        never = threading.Event()
        waiting = asyncio.ensure_future(in_daemon_thread(never.wait, name="t"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        thread = threading.Thread(target=never.wait, daemon=True)
        thread.start()
        assert not await join_thread(thread, 0.01)
        never.set()
        assert await join_thread(thread, 30)

    asyncio.run(run())
