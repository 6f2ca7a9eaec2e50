"""Each system call of the metadata log fails once: what was answered stays, and memory and disk agree.

A change of metadata is all or nothing: one whose records could not be put on disk is neither in the image nor in the
log, because the next decision would be made on the image and replayed on the log.
"""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.unit.log.faulty_world import one_per_call

from moldau.controller.controller import Controller
from moldau.controller.decisions.brokers import BrokerRegistration, registration, unfencing
from moldau.controller.decisions.topics import NewTopic, TopicRef
from moldau.controller.image import Endpoint, MetadataImage
from moldau.controller.metadata_log import METADATA_PARTITION, MetadataLog
from moldau.controller.quorum.quorum import QuorumOfOne
from moldau.core.clock import SystemClock
from moldau.core.config import BrokerConfig
from moldau.log.config import LogConfig
from moldau.log.errors import FatalDiskError, StorageError
from moldau.log.files import Files
from moldau.log.log_events import LogEvents
from moldau.log.recovery.loading import create_log, open_log
from moldau.testing.failing_files import FailingFiles, Fault, KilledError


def opened(folder: Path, files: Files, events: LogEvents | None = None) -> MetadataLog:
    directory = folder / str(METADATA_PARTITION)
    open_or_create = open_log if directory.exists() else create_log
    config = LogConfig(segment_bytes=500, cleanup_policy=frozenset())
    partition = open_or_create(str(directory), METADATA_PARTITION, config, files=files, events=events)
    assert partition.offline_error is None
    return MetadataLog(partition, SystemClock(), snapshot_after_bytes=600, keep_bytes=0)


@dataclass
class Node:
    """A controller that is started, killed and started again."""

    folder: Path
    files: FailingFiles
    runner: asyncio.Runner
    is_killed_at_failure: bool = False
    topics: set[str] = field(default_factory=set)
    epochs: list[int] = field(default_factory=list)
    jobs: list[Callable[[], None]] = field(default_factory=list)
    _controller: Controller | None = None
    _log: MetadataLog | None = None
    _has_been_killed: bool = False

    @property
    def controller(self) -> Controller:
        while self._controller is None:
            try:
                self._start()
            except (StorageError, FatalDiskError, OSError, KilledError):
                self.kill()  # a start that fails ends the process
        return self._controller

    def _start(self) -> None:
        events = LogEvents(on_roll=lambda log, segment: self.jobs.append(lambda: log.finish_roll(segment)))
        log = self._log = opened(self.folder, self.files, events)
        image = log.load()
        assert self.topics <= {topic.name for topic in image.topics.values()}
        quorum = QuorumOfOne(log, node_id=1)
        quorum.claim()
        me = BrokerRegistration(
            node_id=1, incarnation_id=uuid.uuid4(), endpoints=[Endpoint("PLAINTEXT", "h", 9092)], log_dirs=[]
        )
        epoch = quorum.next_offset
        records = [registration(me, epoch), *unfencing(image, 1, epoch)]
        controller = Controller(quorum, image, BrokerConfig, random=Random(1))
        controller.apply_committed(records, quorum.append_now(records))
        assert quorum.epoch not in self.epochs, "an epoch was used twice"
        self.epochs.append(quorum.epoch)
        self._controller = controller

    def kill(self) -> None:
        if self._log is not None:
            self._log.partition.abandon()
        self._controller = self._log = None
        self.jobs.clear()

    # --- what a node does -------------------------------------------------------------------------------

    def create(self, name: str) -> None:
        def create(controller: Controller) -> Any:
            return controller.create_topics([NewTopic(name=name, partitions=2)])

        self._change(create, lambda names: name in names)
        self.topics.add(name)

    def delete(self, name: str) -> None:
        self.topics.discard(name)
        self._change(
            lambda controller: controller.delete_topics([TopicRef(name=name)]), lambda names: name not in names
        )

    def _change(self, change: Callable[[Controller], Any], is_done: Callable[[set[str]], bool]) -> None:
        for _ in range(4):
            controller = self.controller
            if is_done(names_of(controller.image)):
                return

            async def changed(controller: Controller = controller) -> Any:
                return await change(controller)

            try:
                [result] = self.runner.run(changed())
                assert not result.error, result.message
            except (FatalDiskError, KilledError):
                self.kill()
            except StorageError:
                assert self._log is not None
                assert self._log.partition.offline_error is None
                assert saved_image(self.folder) == controller.image, "memory and disk differ after a refusal"
                if self.is_killed_at_failure and not self._has_been_killed:
                    self._has_been_killed = True
                    self.kill()
        assert is_done(names_of(self.controller.image))

    def maintain(self) -> None:
        """What the maintenance thread does: finish rolls, write a snapshot, remove what it covers."""
        controller, log = self.controller, self._log
        assert log is not None

        def snapshot() -> None:
            log.save_snapshot(controller.image)
            log.trim()

        for job in [*self.jobs, snapshot]:
            try:
                job()
            except (FatalDiskError, KilledError):
                self.kill()
                return
            except (StorageError, OSError):
                pass
        self.jobs.clear()

    def check(self) -> None:
        self.files.stop()
        image = self.controller.image
        assert names_of(image) == self.topics
        assert saved_image(self.folder) == image
        self.kill()
        self.create("last")
        assert saved_image(self.folder) == self.controller.image
        self.kill()


def names_of(image: MetadataImage) -> set[str]:
    return {topic.name for topic in image.topics.values()}


def saved_image(folder: Path) -> MetadataImage:
    """What a start would make of the files as they are."""
    copy = folder.with_suffix(".copy")
    shutil.copytree(folder, copy)
    log = opened(copy, Files())
    image = log.load()
    log.partition.abandon()
    shutil.rmtree(copy)
    return image


def life_of_a_node(node: Node) -> None:
    node.create("a")
    node.create("b")
    node.maintain()
    node.delete("a")
    node.create("c")
    node.kill()
    node.create("d")
    node.maintain()
    node.create("a")
    node.maintain()


@pytest.mark.parametrize("ending", ["goes-on", "killed-after", "killed-within"])
def test_one_failure_leaves_metadata_whole(scratch: Path, ending: str) -> None:
    with asyncio.Runner() as runner:
        problems = problems_of(scratch, runner, ending)
    assert not problems, f"{len(problems)} faults:\n" + "\n".join(problems[:20])


def problems_of(scratch: Path, runner: asyncio.Runner, ending: str) -> list[str]:
    counted = FailingFiles()
    node = Node(scratch / "counting", counted, runner)
    life_of_a_node(node)
    node.check()
    faults: Iterable[Fault] = counted.possible_faults()
    if ending == "killed-after":
        faults = one_per_call(faults)
    elif ending == "killed-within":
        faults = counted.possible_deaths()
    problems = []
    for fault in faults:
        node = Node(scratch / str(fault), FailingFiles(fault), runner, ending == "killed-after")
        try:
            life_of_a_node(node)
            assert node.files.has_failed
            node.check()
        except Exception as error:
            problems.append(f"{fault} ({counted.calls[fault.number - 1]}): {type(error).__name__}: {error}")
        node.kill()
        shutil.rmtree(node.folder, ignore_errors=True)
        shutil.rmtree(node.folder.with_suffix(".copy"), ignore_errors=True)
    return problems
