"""Sharing out file descriptors: the log, connections and a reserve, whatever the limit is and however it changes."""

from __future__ import annotations

import asyncio
import resource

import pytest

from moldau.log.open_files import OpenFiles
from moldau.server.process.descriptors import DescriptorBudget, DescriptorWatch, raise_limit


def test_shares_fit_into_the_limit_and_leave_a_reserve() -> None:
    for limit in (*range(8, 3000), 4096, 20_000, 65_536, 1 << 20, 1 << 30, -1):
        budget = DescriptorBudget.of(limit)
        assert budget.connections > 0
        assert budget.log_files > 0
        reserve = budget.limit - budget.connections - budget.log_files
        assert min(budget.limit // 2, 64) <= reserve <= max(budget.limit // 2, 512)


def test_usual_limits() -> None:
    assert DescriptorBudget.of(256) == (256, 88, 88)
    assert DescriptorBudget.of(1024) == (1024, 448, 448)
    assert DescriptorBudget.of(resource.RLIM_INFINITY).limit == 1 << 30


def test_the_limit_is_raised_and_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    limits = [(256, 65_536)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.append(wanted))
    caplog.set_level("INFO")
    raise_limit()
    assert limits[-1] == (65_536, 65_536)
    assert "at most 65536 open files, raised from 256" in caplog.text


def test_a_low_limit_is_a_warning_with_advice(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(kind: int, wanted: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_limit()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "ulimit -n" in caplog.text


def test_too_many_log_files_are_released_soon_and_a_lower_limit_is_noticed() -> None:
    async def story() -> None:
        files = OpenFiles()
        asked: list[int] = []
        limit = 10

        def release(keep: int) -> None:
            asked.append(keep)
            for fd in range(keep, len(files)):
                files.note_closing(fd)

        watch = DescriptorWatch(asyncio.get_running_loop(), release, lambda: DescriptorBudget(0, 0, limit), files)
        try:
            for fd in range(10):
                files.note_opened(fd)
            await asyncio.sleep(0)
            assert asked == []
            for fd in range(10, 15):
                files.note_opened(fd)
            while not asked:
                await asyncio.sleep(0)
            assert asked == [9]
            assert len(files) == 9
            limit = 2
        finally:
            watch.close()
        assert len(files) == 2

    asyncio.run(story())
