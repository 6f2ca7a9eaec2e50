"""Trying again what could not be opened: what is logged when, and what an end in the middle of an attempt means."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from moldau.broker.metadata.offline_partitions import REMIND_S, OfflinePartitions, Reports
from moldau.broker.partitions import Partitions
from moldau.controller.image import PartitionImage, TopicImage
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.files import Files
from moldau.log.manager import LogManager

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_the_beginning_is_told_once() -> None:
    reports = Reports()
    assert reports.about([A], "the disk is full", 0) == (
        "a-0 cannot be used yet: the disk is full; the broker tries again every 1 s"
    )
    assert reports.about([A], "the disk is full", 1) is None


def test_what_lasts_is_remembered_now_and_then() -> None:
    reports = Reports()
    reports.about([A], "full", 0)
    assert reports.about([A], "full", REMIND_S - 1) is None
    reminder = reports.about([A], "full", REMIND_S)
    assert reminder is not None
    assert reminder.startswith("a-0 still cannot be used: full")
    assert reports.about([A], "full", REMIND_S + 1) is None
    assert reports.about([A], "full", 2 * REMIND_S) is not None


def test_only_what_is_new_is_named() -> None:
    reports = Reports()
    reports.about([A], "full", 0)
    line = reports.about([A, B], "full", 1)
    assert line is not None
    assert line.startswith("b-0 cannot")


def test_what_came_back_and_fails_again_is_news() -> None:
    reports = Reports()
    reports.about([A], "full", 0)
    reports.forget(A)
    assert reports.about([A], "full", 1) is not None
    reports.forget_all_but([])
    assert reports.about([A], "full", 2) is not None


def test_many_are_counted() -> None:
    line = Reports().about([TopicPartition("a", number) for number in range(1000)], "full", 0)
    assert line is not None
    assert line.startswith("a-0, a-1, a-2, a-3, a-4 and 995 other partitions cannot")


class Waiting(Files):
    """Refuses folders first, then lets whoever makes one wait."""

    def __init__(self) -> None:
        self.is_full = True
        self.is_asked = threading.Event()
        self.may_go_on = threading.Event()

    def make_directory(self, path: str) -> None:
        if "/t-" in path:
            if self.is_full:
                raise OSError(28, "No space left on device")
            self.is_asked.set()
            assert self.may_go_on.wait(30)
        super().make_directory(path)


def test_the_end_waits_for_an_attempt_under_way(tmp_path: Path) -> None:
    files, restored = Waiting(), []
    logs = LogManager([str(tmp_path)], files)
    logs.open()
    partitions = Partitions(1, logs, lambda topic: LogConfig())
    partitions.follow("t", TopicImage("t", uuid.uuid4(), {0: PartitionImage((1,), (1,), 1)}))

    async def call(change: Callable[[], None]) -> None:
        change()

    async def run() -> None:
        offline = OfflinePartitions(partitions, logs, restored.append, call)
        offline.watch()
        files.is_full = False
        await asyncio.to_thread(files.is_asked.wait, 30)
        ending = asyncio.ensure_future(offline.close())
        await asyncio.sleep(0)
        assert not ending.done()
        files.may_go_on.set()
        await ending

    asyncio.run(run())
    assert restored == ["t"]
    assert logs.unopened == []
    logs.close()
    assert (tmp_path / "t-0/partition.metadata").exists()
