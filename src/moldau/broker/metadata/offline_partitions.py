"""Partitions whose log could not be created or opened: retried until it works, without a restart.

A full disk or a lack of file descriptors must not lose an acknowledged topic. Until its log is open a partition is
offline: clients get an error at once, and operators see it in the log, in metrics and in /healthz. Retries and metadata
changes exclude each other (`exclusive`), so no topic is deleted or created while its folder is being opened. Start at
`OfflinePartitions.watch`.
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
"""How many partitions a log line names; the others are only counted."""


class Reports:
    """Decides when to log: once for each new offline partition, and reminders while it stays offline."""

    def __init__(self) -> None:
        self._known: set[TopicPartition] = set()
        self._next_reminder_s = 0.0

    def about(self, offline: Sequence[TopicPartition], reason: str, now_s: float) -> str | None:
        """The line to log about the offline partitions, if one is due."""
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
        """Forget a partition that is online again or deleted: a new failure is logged again."""
        self._known.discard(topic_partition)

    def forget_all_but(self, offline: Sequence[TopicPartition]) -> None:
        self._known.intersection_update(offline)


def _names_of(partitions: Sequence[TopicPartition]) -> str:
    names = ", ".join(str(one) for one in partitions[:NAMED])
    return names if len(partitions) <= NAMED else f"{names} and {len(partitions) - NAMED} other partitions"


class OfflinePartitions:
    """Retries offline partitions; used on the loop, opens logs in a thread, since that may run recovery."""

    def __init__(
        self,
        partitions: Partitions,
        logs: LogManager,
        on_restored: Callable[[str], None],
        between_appends: Callable[[Callable[[], None]], Awaitable[None]],
    ) -> None:
        self.exclusive = asyncio.Lock()
        """Held while logs are created, opened or deleted."""
        self._partitions = partitions
        self._logs = logs
        self._on_restored = on_restored
        """Called with the topic of a partition that is online again."""
        self._between_appends = between_appends
        self._reports = Reports()
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    def watch(self) -> None:
        """Report partitions that could not be opened, and retry until none is left."""
        self._report()
        if self._logs.unopened and self._task is None and not self._stopping.is_set():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop retrying; waits for a running attempt."""
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
            log.exception("retrying offline partitions failed; the next metadata change starts it again")
        finally:
            self._task = None

    async def _is_stopping_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _try_all(self) -> None:
        """Retry until one fails: the cause usually affects all partitions. The failed one comes last next time."""
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
