"""What hangs is told once when it begins, now and then while it lasts, and once when it is over."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path

import pytest

from moldau.broker.health.watchdog import Place, StallReport, Watchdog
from moldau.core.activity import Activity
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.files import Files
from moldau.log.manager import LogManager
from moldau.protocol.record_batch import HEADER
from moldau.protocol.records import Record, encode_batch


def at_the_disk() -> Place:
    return Place("in write on t-0", is_log=True)


def test_what_does_not_take_long_is_not_told() -> None:
    report = StallReport("an append", "appends wait", 0.5)
    for tenth in range(100):
        assert report.look(tenth / 10 if tenth % 3 else None, tenth / 10 + 0.05, at_the_disk) == []
    assert (report.count, report.current(10)) == (0, None)


def test_a_long_hang_gives_a_first_line_few_reminders_and_a_last_one() -> None:
    report = StallReport("an append", "appends wait", 0.5)
    lines = [line for fifth in range(1500) for line in report.look(0.0, fifth / 5, at_the_disk)]
    lines += report.look(None, 300.0, at_the_disk)
    assert lines == [
        "an append has hung for 0.6 s in write on t-0: appends wait",
        "an append still hangs after 10 s in write on t-0",
        "an append still hangs after 20 s in write on t-0",
        "an append still hangs after 40 s in write on t-0",
        "an append still hangs after 80 s in write on t-0",
        "an append still hangs after 160 s in write on t-0",
        "an append goes on after 300.0 s in write on t-0",
    ]
    assert (report.count, report.finished_s, report.hangs_in_log) == (1, 300.0, False)


def test_the_next_hang_is_told_anew_even_without_a_pause() -> None:
    report = StallReport("an append", "appends wait", 0.5)
    report.look(0.0, 1.0, at_the_disk)
    lines = report.look(1.5, 2.5, at_the_disk)
    assert [line.split(" s ")[0] for line in lines] == ["an append goes on after 2.5", "an append has hung for 1.0"]
    assert report.count == 2


class GatedFiles(Files):
    def __init__(self) -> None:
        self.gate = threading.Event()

    def write(self, fd: int, data: bytes) -> int:  # type: ignore[override]
        self.gate.wait(20)
        return Files.write(fd, data)


def test_a_loop_that_hangs_in_a_write_is_told_with_partition_and_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files, slow = GatedFiles(), []
    manager = LogManager([str(tmp_path)], files, config_of=lambda topic: LogConfig())
    manager.open()
    partition_log = manager.create(TopicPartition("t", 3))
    batch = bytearray(encode_batch([Record(0, 0, None, b"x")], base_timestamp=0))

    def open_the_gate_when_told() -> None:
        deadline = time.monotonic() + 20
        while "event loop has hung" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)
        files.gate.set()

    async def story() -> None:
        watchdog = Watchdog(asyncio.get_running_loop(), [], on_loop_stall=slow.append)
        threading.Thread(target=open_the_gate_when_told).start()
        partition_log.append(memoryview(batch), HEADER.unpack_from(batch), 0, 0)
        while "goes on after" not in caplog.text:
            await asyncio.sleep(0.01)
        assert watchdog.stalls() == []
        assert not watchdog.is_loop_stuck
        await asyncio.get_running_loop().run_in_executor(None, watchdog.stop)

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(story(), 30))
    first, last = (record.getMessage() for record in caplog.records if record.name == Watchdog.__module__)
    assert first.startswith("the event loop has hung for ")
    assert f"PartitionLog.append on t-3 ({tmp_path}/t-3/00000000000000000000.log): no client" in first
    assert last.startswith("the event loop goes on after ")
    assert len(slow) == 1
    manager.close()


def test_a_thread_that_hangs_does_not_count_as_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    activity, gate = Activity("a metadata write", patience_s=0.1), threading.Event()

    def work() -> None:
        with activity:
            gate.wait(20)

    async def story() -> None:
        watchdog = Watchdog(
            asyncio.get_running_loop(), [(activity, "changes wait")], on_loop_stall=lambda seconds: None
        )
        working = asyncio.get_running_loop().run_in_executor(None, work)
        while not watchdog.stalls():
            await asyncio.sleep(0.01)
        assert [one.name for one in watchdog.stalls()] == ["a metadata write"]
        assert not watchdog.is_loop_stuck
        gate.set()
        await working
        while watchdog.stalls():
            await asyncio.sleep(0.01)
        await asyncio.get_running_loop().run_in_executor(None, watchdog.stop)

    asyncio.run(asyncio.wait_for(story(), 30))
    assert "a metadata write has hung for" in caplog.text
    assert "a metadata write goes on after" in caplog.text
