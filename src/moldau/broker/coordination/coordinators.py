"""The coordinators of this broker: one shard for each partition of an internal topic that it leads.

Finds the shard of a key, loads shards from their logs, and turns waiting requests into awaitables. The decisions are
made in `moldau.coordinator`. Start at `Coordinator.ask`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from moldau.broker.coordination.coordinator_log import PartitionAppender, replay_log
from moldau.broker.coordination.coordinator_timers import CoordinatorTimers
from moldau.broker.coordination.internal_topics import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    InternalTopic,
    create_internal_topic,
)
from moldau.coordinator.runtime.outcome import Outcome
from moldau.coordinator.runtime.shard import CoordinatorCore, Decide, Shard
from moldau.core.config.sections import CoordinatorSettings
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.java_hash import partition_for
from moldau.log.checked_read import LogExtent, extent_of
from moldau.log.errors import DamagedLogError, StorageError

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.coordination.transaction_checks import TransactionChecks
    from moldau.broker.coordination.transactions import Transactions
    from moldau.broker.partition import Partition
    from moldau.controller.replay import ImageDelta
    from moldau.coordinator.group.group_core import GroupCore
    from moldau.coordinator.transaction.core import TransactionCore
    from moldau.core.ids import TopicPartition
    from moldau.log.partition_log import PartitionLog
    from moldau.protocol.messages import Message

__all__ = ["Coordinator", "Coordinators", "render_reply"]

log = logging.getLogger(__name__)

LOAD_RETRY_S = 1.0
"""After how long a log that could not be read is replayed again."""

Core = TypeVar("Core", bound=CoordinatorCore)


class Coordinator(Generic[Core]):
    """All shards of one kind. Used on the loop."""

    def __init__(
        self, broker: Broker, topic: InternalTopic, make_core: Callable[[], Core], coordinators: Coordinators
    ) -> None:
        self.topic = topic
        self.shards: dict[int, Shard[Core]] = {}
        self._broker = broker
        self._make_core = make_core
        self._coordinators = coordinators
        self._partitions: dict[int, Partition] = {}
        self._epochs: dict[int, int] = {}
        """The leader epoch of each shard: another broker may have led between two of ours."""
        self._obstacle: str | None = None
        """Why the topic could not be created at the last attempt."""
        self._unloaded: set[TopicPartition] = set()
        """Partitions whose log could not be read at the last attempt."""

    def partition_of(self, key: str) -> int | None:
        """The partition that `key` belongs to; `None` while the topic does not exist."""
        topic = self._broker.image.topics.get(self.topic.name)
        return None if topic is None else partition_for(key, len(topic.partitions))

    async def ensure_topic(self) -> bool:
        """Create the topic if it does not exist; return whether it exists afterwards."""
        if self.topic.name not in self._broker.image.topics:
            obstacle = await create_internal_topic(self._broker, self.topic)
            if obstacle not in (None, self._obstacle):
                # Clients retry; the failure is logged only once.
                log.error("%s could not be created: %s", self.topic.name, obstacle)
            self._obstacle = obstacle
        return self.topic.name in self._broker.image.topics

    def shard_of(self, key: str) -> Shard[Core] | ErrorCode:
        number = self.partition_of(key)
        if number is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return self.shards.get(number) or ErrorCode.NOT_COORDINATOR

    def ask(self, key: str, decide: Decide[Core]) -> Any | asyncio.Future[Any]:
        """The reply to a request about `key`, an `ErrorCode` where there can be none, or a future of either."""
        shard = self.shard_of(key)
        return shard if isinstance(shard, ErrorCode) else self.ask_shard(shard, decide)

    def ask_shard(self, shard: Shard[Core], decide: Decide[Core]) -> Any | asyncio.Future[Any]:
        given: list[Any] = []
        future: asyncio.Future[Any] | None = None

        def answer(reply: Any) -> None:
            if future is None:
                given.append(reply)
            elif not future.done():
                future.set_result(reply)

        ticket = shard.ask(decide, answer, self._coordinators.now_ms())
        if given:
            return given[0]
        future = self._coordinators.loop.create_future()
        future.add_done_callback(lambda done: shard.forget(ticket) if done.cancelled() else None)
        return future

    def act(self, decide: Callable[[Core], Outcome]) -> None:
        """Have every shard make a decision that no request waits for."""
        for shard in self.shards.values():
            shard.act(lambda core, now_ms: decide(core))

    def follow(self) -> None:
        """Keep a shard for exactly the partitions that this broker leads."""
        topic = self._broker.partitions.topic(self.topic.name)
        # A log that cannot be opened gets no shard: an empty shard would reset the groups in it.
        usable = [] if topic is None else [one for one in topic.partitions.values() if one.offline_error is None]
        led = {one.index: one for one in usable if one.is_leader}
        for number in [n for n, partition in self._partitions.items() if not self._is_same(led.get(n), n, partition)]:
            shard = self.shards.pop(number, None)
            if shard is not None:
                shard.close()
            del self._partitions[number]
        begun = [self._begin(number, led[number]) for number in sorted(led.keys() - self._partitions.keys())]
        now_ms = self._coordinators.now_ms()
        to_load = []
        for shard, partition in begun:
            if partition.log.log_start_offset < partition.log.log_end_offset:
                to_load.append((shard, partition.log))
            else:
                shard.activate(now_ms)
        if to_load:
            self._between_appends(partial(self._begin_loading, to_load))

    def _is_same(self, led: Partition | None, number: int, partition: Partition) -> bool:
        return led is partition and partition.leader_epoch == self._epochs[number]

    def _begin(self, number: int, partition: Partition) -> tuple[Shard[Core], Partition]:
        shard: Shard[Core] = Shard(
            self._make_core(),
            PartitionAppender(self._broker, partition, self.topic.codec(self._broker.config)),
            on_deadline=lambda deadline_ms: self._coordinators.timers.wake(shard, deadline_ms),
            clock=self._coordinators.now_ms,
        )
        self.shards[number] = shard
        self._partitions[number] = partition
        self._epochs[number] = partition.leader_epoch
        return shard, partition

    def _between_appends(self, action: Callable[[], None]) -> None:
        """Run `action` while nothing appends, as reading a log's extent requires."""
        self._broker.data_plane.slow_appends.between(action)

    def _begin_loading(self, shards: list[tuple[Shard[Core], PartitionLog]]) -> None:
        to_load = [(shard, partition_log, extent_of(partition_log)) for shard, partition_log in shards]
        self._coordinators.loop.run_in_executor(None, self._load, to_load)

    def _load(self, shards: list[tuple[Shard[Core], PartitionLog, LogExtent]]) -> None:
        """In a thread: replay one log after the other; each shard answers as soon as it is complete."""
        for shard, partition_log, extent in shards:
            problem: Exception | None = None
            try:
                self._replay(shard, partition_log, extent)
            except Exception as error:
                problem = error
            if self._coordinators.is_closed:
                return
            finish = partial(self._finish_load, shard, partition_log, extent, problem)
            self._coordinators.loop.call_soon_threadsafe(self._between_appends, finish)

    def _replay(
        self, shard: Shard[Core], partition_log: PartitionLog, extent: LogExtent, after: LogExtent | None = None
    ) -> None:
        def is_wanted() -> bool:
            return shard.is_loading and not self._coordinators.is_closed

        read_bytes = self._broker.config.section(CoordinatorSettings).load_buffer_size
        replay_log(partition_log, shard.core, extent, is_wanted, after=after, read_bytes=read_bytes)

    def _finish_load(
        self, shard: Shard[Core], partition_log: PartitionLog, loaded: LogExtent, problem: Exception | None
    ) -> None:
        if not shard.is_loading or self._coordinators.is_closed:
            return
        if problem is None:
            try:
                # A few transaction markers may have been appended meanwhile.
                self._replay(shard, partition_log, extent_of(partition_log), loaded)
            except Exception as error:
                problem = error
        if problem is None:
            self._unloaded.discard(partition_log.topic_partition)
            self._activate_when_committed(shard, partition_log)
        elif isinstance(problem, OSError | StorageError) and not isinstance(problem, DamagedLogError):
            self._load_again(shard, partition_log, problem)
        else:
            self._give_up(shard, partition_log, problem)

    def _activate_when_committed(self, shard: Shard[Core], partition_log: PartitionLog) -> None:
        """A new leader may have records that are not committed yet; nobody may be told of them before they are."""
        number = next((n for n, one in self.shards.items() if one is shard), None)
        if number is None:
            return

        def on_committed(code: ErrorCode) -> None:
            # Otherwise another broker leads by now, and the shard is closed.
            if code is ErrorCode.NONE and shard.is_loading and not self._coordinators.is_closed:
                shard.activate(self._coordinators.now_ms())

        end_offset = partition_log.log_end_offset
        self._partitions[number].when_committed(end_offset, None, on_committed, is_patient=True)

    def _load_again(self, shard: Shard[Core], partition_log: PartitionLog, error: Exception) -> None:
        """Reload into an empty core after a delay: a disk error left the core with only a part of its log."""
        if partition_log.topic_partition not in self._unloaded:
            # Logged once, not with every attempt.
            self._unloaded.add(partition_log.topic_partition)
            log.error("%s cannot be loaded, the broker keeps trying: %s", partition_log.topic_partition, error)

        def begin_anew() -> None:
            number = next((n for n, one in self.shards.items() if one is shard), None)
            if number is not None and shard.is_loading and not self._coordinators.is_closed:
                self.shards.pop(number).close()
                del self._partitions[number]
                self.follow()

        self._coordinators.loop.call_later(LOAD_RETRY_S, begin_anew)

    def _give_up(self, shard: Shard[Core], partition_log: PartitionLog, problem: Exception) -> None:
        """A partition that cannot be loaded has no coordinator: a partly loaded one would lose or invent commits."""
        self._drop(shard)
        if isinstance(problem, DamagedLogError) and partition_log.offline_error is None:
            partition_log.take_offline(str(problem), is_damaged=True)
        elif partition_log.offline_error is None:
            log.error(
                "%s could not be loaded, its keys have no coordinator until the next start: %s",
                partition_log.topic_partition,
                problem,
                exc_info=None if isinstance(problem, MoldauError) else problem,
            )

    def _drop(self, shard: Shard[Core]) -> None:
        for number in [number for number, known in self.shards.items() if known is shard]:
            del self.shards[number]
        shard.close()

    def is_offline(self, key: str) -> bool:
        """Whether this broker leads the partition of `key` but cannot read its log."""
        number = self.partition_of(key)
        return number in self._partitions and number not in self.shards

    def close(self) -> None:
        for shard in self.shards.values():
            shard.close()


class Coordinators:
    """Both coordinators, the clock they share and the timers that wake them."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_closed = False
        self._broker = broker
        # Sessions must not expire because the wall clock is set: time advances with the monotonic clock.
        self._ahead_ms = broker.clock.now_ms() - broker.clock.monotonic_ms()
        self.timers = CoordinatorTimers(loop, self.now_ms)
        self.groups: Coordinator[GroupCore] = Coordinator(broker, CONSUMER_OFFSETS, self._group_core, self)
        self.transaction_shards: Coordinator[TransactionCore] = Coordinator(
            broker, TRANSACTION_STATE, self._transaction_core, self
        )
        self.by_key_type: dict[int, Coordinator[Any]] = {0: self.groups, 1: self.transaction_shards}
        """As FindCoordinator numbers them."""
        broker.coordinators = self

    def now_ms(self) -> int:
        return self._broker.clock.monotonic_ms() + self._ahead_ms

    def start(self) -> None:
        """Load the shards that the broker already leads."""
        for coordinator in self.by_key_type.values():
            coordinator.follow()

    def on_restored(self, topic: str) -> None:
        """Called when a partition is usable again."""
        if self.is_closed:
            return
        for coordinator in self.by_key_type.values():
            if coordinator.topic.name == topic:
                coordinator.follow()

    async def on_metadata(self, delta: ImageDelta) -> None:
        """Called for every metadata change, after the broker's partitions were updated."""
        changed = {one.topic for one in delta.partitions} | {topic.name for topic in delta.deleted_topics}
        for coordinator in self.by_key_type.values():
            if coordinator.topic.name in changed:
                coordinator.follow()
        deleted = {topic.name for topic in delta.deleted_topics} - delta.image.topics.keys()
        if deleted:
            self.groups.act(lambda core: core.forget_topics(deleted))

    def close(self) -> None:
        """Answer all waiting requests with an error that makes clients look for another coordinator."""
        self.is_closed = True
        self.timers.close()
        for coordinator in self.by_key_type.values():
            coordinator.close()

    def _group_core(self) -> GroupCore:
        # Imported here: a broker without groups starts without their code.
        from moldau.broker.coordination.consumer_groups import consumer_facts
        from moldau.coordinator.group.group_core import GroupCore
        from moldau.coordinator.group.settings import GroupSettings

        settings = self._broker.config.section(GroupSettings)
        return GroupCore(lambda: settings, lambda: str(uuid4()), consumer_facts(self._broker))

    @cached_property
    def transactions(self) -> Transactions:
        # Imported here: a broker without transactions starts without their code.
        from moldau.broker.coordination.transactions import Transactions

        return Transactions(self._broker, self)

    @cached_property
    def transaction_checks(self) -> TransactionChecks:
        from moldau.broker.coordination.transaction_checks import TransactionChecks

        return TransactionChecks(self._broker, self)

    def _transaction_core(self) -> TransactionCore:
        return self.transactions.new_core()


def render_reply(reply: Any, render: Callable[[Any], Message]) -> Message | Awaitable[Message]:
    """Render a reply now, or when its future completes."""
    if isinstance(reply, asyncio.Future):
        return _render_later(reply, render)
    return render(reply)


async def _render_later(reply: asyncio.Future[Any], render: Callable[[Any], Message]) -> Message:
    return render(await reply)
