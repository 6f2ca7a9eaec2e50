"""Sharing out file descriptors: the log, connections and a reserve, whatever the limit is and however it changes."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from pathlib import Path

import pytest

from moldau.log.files import SegmentFile
from moldau.log.open_files import OPEN_FILES
from moldau.server.descriptors import DescriptorBudget, DescriptorWatch, raise_limit


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


def test_too_many_log_files_are_released_soon_and_a_lower_limit_is_noticed(tmp_path: Path) -> None:
    gc.collect()  # files of earlier tests would be closed, and counted down, in the middle of this one

    async def story() -> None:
        before = len(OPEN_FILES)
        held: list[SegmentFile] = []
        asked: list[int] = []
        limit = before + 10

        def release(keep: int) -> None:
            asked.append(keep)
            while len(OPEN_FILES) > keep and held:
                held.pop()

        watch = DescriptorWatch(asyncio.get_running_loop(), release, lambda: DescriptorBudget(0, 0, limit))
        try:
            held += [SegmentFile(os.open(tmp_path, os.O_RDONLY)) for _ in range(10)]
            await asyncio.sleep(0)
            assert asked == []
            held += [SegmentFile(os.open(tmp_path, os.O_RDONLY)) for _ in range(5)]
            while not asked:
                await asyncio.sleep(0.001)
            assert asked == [limit - limit // 8]
            assert len(OPEN_FILES) == max(before, limit - limit // 8)
            limit = before + 2
        finally:
            watch.close()
        assert len(OPEN_FILES) <= before + 2
        OPEN_FILES.limit = 1 << 30
        held.clear()

    asyncio.run(story())
