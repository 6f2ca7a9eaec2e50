"""Partitions whose log could not be made or opened: they are tried again until it works, without a restart.

A full disk, or no file descriptor left, is no reason to lose a topic that was acknowledged. Until its log is there a
partition is offline: clients are told so at once, operators by the log, by metrics and by /healthz. Attempts and
changes of the metadata take turns (`exclusive`), so no topic is deleted or made while its folder is being worked on.
Start at `OfflinePartitions.watch`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from moldau.core.ids import TopicPartition
from moldau.log.errors import StorageError

if TYPE_CHECKING:
    from moldau.broker.partitions import Partitions
    from moldau.log.manager import LogManager
    from moldau.log.partition_log import PartitionLog

__all__ = ["OfflinePartitions", "Reports"]

log = logging.getLogger(__name__)

RETRY_S = 1.0
REMIND_S = 300.0
NAMED = 5
"""How many partitions a log line names; the others are counted."""


class Reports:
    """What operators are told, and when: once at the beginning, now and then while it lasts, once at the end."""

    def __init__(self) -> None:
        self._known: set[TopicPartition] = set()
        self._next_reminder_s = 0.0

    def about(self, offline: Sequence[TopicPartition], reason: str, now_s: float) -> str | None:
        """The line to log about what is offline now, if one is due."""
        new = [one for one in offline if one not in self._known]
        self._known.update(new)
        if new:
            self._next_reminder_s = now_s + REMIND_S
            return f"{_names_of(new)} cannot be used yet: {reason}; the broker tries again every {RETRY_S:g} s"
        if offline and now_s >= self._next_reminder_s:
            self._next_reminder_s = now_s + REMIND_S
            names = _names_of(offline)
            return f"{names} still cannot be used: {reason}; free disk space or raise the limit that is hit"
        return None

    def forget(self, topic_partition: TopicPartition) -> None:
        """It is back, or deleted: should it fail again, that is news."""
        self._known.discard(topic_partition)

    def forget_all_but(self, offline: Sequence[TopicPartition]) -> None:
        self._known.intersection_update(offline)


def _names_of(partitions: Sequence[TopicPartition]) -> str:
    names = ", ".join(str(one) for one in partitions[:NAMED])
    return names if len(partitions) <= NAMED else f"{names} and {len(partitions) - NAMED} other partitions"


class OfflinePartitions:
    """Used on the loop; the attempts run in a thread, since opening a log may mean to recover it."""

    def __init__(
        self,
        partitions: Partitions,
        logs: LogManager,
        on_restored: Callable[[str], None],
        between_appends: Callable[[Callable[[], None]], Awaitable[None]],
    ) -> None:
        self.exclusive = asyncio.Lock()
        """Held by whoever makes, opens or deletes logs."""
        self._partitions = partitions
        self._logs = logs
        self._on_restored = on_restored
        """Told the topic of a partition that serves again."""
        self._between_appends = between_appends
        self._reports = Reports()
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    def watch(self) -> None:
        """Look for partitions that could not be opened, and try again until none is left."""
        self._report()
        if self._logs.unopened and self._task is None and not self._stopping.is_set():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Make no further attempt; one under way is waited for."""
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while self._logs.unopened and not await self._is_stopping_within(RETRY_S):
                async with self.exclusive:
                    await self._try_all()
                self._report()
        except Exception:
            log.exception("offline partitions are not tried again before the next change of the metadata")
        finally:
            self._task = None

    async def _is_stopping_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _try_all(self) -> None:
        """Until one fails: what stops one partition mostly stops them all. It is the last to be tried next time."""
        restored = []
        for topic_partition in self._logs.unopened:
            partition = self._partitions.get(topic_partition)
            if partition is None or self._stopping.is_set():
                continue
            topic_id = partition.topic.topic_id
            try:
                reopened = await asyncio.get_running_loop().run_in_executor(
                    None, self._logs.reopen, topic_partition, topic_id
                )
            except StorageError as error:
                self._logs.postpone(topic_partition, error)
                break
            await self._between_appends(partial(self._take, reopened))
            if reopened.offline_error is None:
                restored.append(topic_partition)
        if restored:
            log.info("%s can be used again", _names_of(restored))

    def _take(self, reopened: PartitionLog) -> None:
        self._reports.forget(reopened.topic_partition)
        self._partitions.restore(reopened)
        self._on_restored(reopened.topic_partition.topic)

    def _report(self) -> None:
        unopened = self._logs.unopened
        self._reports.forget_all_but(unopened)
        stand_in = self._logs.get(unopened[-1]) if unopened else None
        if stand_in is not None:
            line = self._reports.about(unopened, str(stand_in.offline_error), asyncio.get_running_loop().time())
            if line is not None:
                log.error("%s", line)
