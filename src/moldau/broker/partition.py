"""A partition on this broker: its log, its leadership and the requests that wait for it.

The log stores the bytes; this module adds replication state and waiting clients. Every append, from any source, has
three steps:

1. `Partition.append` writes the batch: on the loop, or on the thread for slow appends (`broker.data.slow_appends`);
2. `Partition.publish` counts it, moves the high watermark and wakes readers: on the loop;
3. `Partition.when_committed` calls back when the batch is committed; only then may the producer be answered.

Topics are keyed by the bytes by which requests name them, so that the hot paths never decode a name. Start at
`Partition`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from moldau.broker.data.batch_rules import BatchRules
from moldau.broker.data.schema_rules import SchemaRules
from moldau.broker.stats import TopicStats
from moldau.controller.image import INTERNAL_TOPICS
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.protocol.produce import OnePartitionReply

if TYPE_CHECKING:
    from moldau.broker.data.parked_fetches import Waiter
    from moldau.broker.replication.leading import Leading
    from moldau.controller.image import PartitionImage
    from moldau.log.errors import StorageError
    from moldau.log.partition_log import PartitionLog

__all__ = ["NotLeaderError", "Partition", "PartitionEvents", "Topic", "when_all_committed", "when_all_flushed"]

log = logging.getLogger(__name__)


NEVER: Final = float("inf")


class NotLeaderError(MoldauError):
    """This broker does not lead the partition, so it may not append to it."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Timer(Protocol):
    def cancel(self) -> None: ...


class _NoTimer:
    def cancel(self) -> None:
        """No timer was started."""


def _flush_now(logs: Iterable[PartitionLog], then: Callable[[], None]) -> None:
    for each in logs:
        each.flush()
    then()


@dataclass(slots=True)
class PartitionEvents:
    """Callbacks from partitions to the broker, set by `broker.data.data_plane`; tests and tools use the defaults."""

    wake_readers: Callable[[Partition], None] = lambda partition: None
    """Make fetches that wait for this partition check again: for new records, a new leader, or deletion."""
    flush_then: Callable[[Iterable[PartitionLog], Callable[[], None]], None] = _flush_now
    """Call back on the loop once everything appended to these logs is on disk."""
    call_at: Callable[[float, Callable[[], None]], Timer] = lambda deadline, action: _NoTimer()
    """Call back on the loop at this loop time."""
    may_join: Callable[[Partition], None] = lambda partition: None
    """A follower that is not in sync has fetched: it may be by now."""
    is_eligible: Callable[[int, int], bool] = lambda node_id, broker_epoch: True
    """Whether a broker is active, and registered with this broker epoch."""
    lag_ms: int = 30_000
    """How long a follower may be behind and still count as in sync: `replica.lag.time.max.ms`."""


class Topic:
    """A topic with partitions on this broker."""

    __slots__ = (
        "config",
        "id_bytes",
        "is_internal",
        "name",
        "name_bytes",
        "partition_count",
        "partitions",
        "replies",
        "rules",
        "schema_rules",
        "stats",
        "topic_id",
    )

    def __init__(self, name: str, topic_id: uuid.UUID, config: LogConfig) -> None:
        self.name = name
        self.name_bytes = name.encode()
        self.topic_id = topic_id
        self.id_bytes = topic_id.bytes
        self.is_internal = name in INTERNAL_TOPICS
        self.partitions: dict[int, Partition] = {}
        """Those with a replica on this broker."""
        self.partition_count = 0
        """How many there are in the cluster."""
        self.stats = TopicStats()
        self.config = config
        self.rules = BatchRules.of(config)
        self.schema_rules = SchemaRules.of(name, config)
        self.replies: dict[int, OnePartitionReply] = {}
        """The prepared produce reply for each version used so far."""

    def configure(self, config: LogConfig) -> None:
        """Apply a new configuration to all partitions."""
        self.config = config
        self.rules = BatchRules.of(config)
        self.schema_rules = SchemaRules.of(self.name, config)
        for partition in self.partitions.values():
            partition.log.config = config
            partition.settle()

    def reply(self, version: int) -> OnePartitionReply:
        """The prepared produce reply of `version`, for versions 5 and later."""
        prepared = self.replies.get(version)
        if prepared is None:
            prepared = OnePartitionReply(version, self.id_bytes if version >= 13 else self.name_bytes)
            self.replies[version] = prepared
        return prepared


Committed: TypeAlias = "Callable[[ErrorCode], None]"


class _CommitWait:
    """A callback that waits for the high watermark to reach `end_offset`."""

    __slots__ = ("deadline", "end_offset", "is_patient", "then")

    def __init__(self, end_offset: int, deadline: float, then: Committed, *, is_patient: bool) -> None:
        self.end_offset = end_offset
        self.deadline = deadline
        self.is_patient = is_patient
        self.then = then

    def end(self, code: ErrorCode) -> None:
        try:
            self.then(code)
        except Exception:
            # The other waiting callbacks must be called all the same.
            log.exception("an acknowledgement failed")


class Partition:
    """One partition; used only on the loop, except for `append`."""

    __slots__ = (
        "_commit_waits",
        "_looks_at",
        "_timer",
        "events",
        "index",
        "is_alone",
        "is_committed_at_once",
        "is_leader",
        "is_plain",
        "is_plain_shared",
        "isr",
        "leader_epoch",
        "leader_id",
        "leading",
        "log",
        "markers",
        "partition_epoch",
        "replicas",
        "topic",
        "waiting",
    )

    def __init__(self, topic: Topic, index: int, log: PartitionLog, events: PartitionEvents | None = None) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.events = events or PartitionEvents()
        self.leader_id = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.is_leader = False
        self.is_alone = False
        """Whether this is the only replica, so that a record is committed once it is here."""
        self.is_plain = False
        """Whether an append needs only a header check: no special topic, no replica to wait for."""
        self.is_plain_shared = False
        """The same, but other replicas have to be waited for."""
        self.is_committed_at_once = False
        """Whether records are committed as soon as they are published: no replica and no sync to wait for."""
        self.leading: Leading | None = None
        """What this leader knows of the other replicas, if there are any."""
        self.markers = 0
        """How many transaction markers were appended: what was verified before one may not be true after it."""
        self.waiting: set[Waiter] = set()
        """Fetches, and sessions of readers, that wait for news of this partition."""
        self._commit_waits: list[_CommitWait] = []
        self._looks_at = NEVER
        """When overdue waits are looked for."""
        self._timer: Timer = _NoTimer()

    def __repr__(self) -> str:
        return f"<Partition {self.topic_partition} led by {self.leader_id} in epoch {self.leader_epoch}>"

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.index)

    # --- leading ----------------------------------------------------------------------------------------

    def lead_or_follow(self, image: PartitionImage, node_id: int) -> None:
        """Apply the partition's state in the cluster metadata."""
        if image.partition_epoch < self.partition_epoch:
            return
        begins_to_lead = image.leader == node_id and image.leader_epoch > self.leader_epoch
        self.leader_id, self.leader_epoch = image.leader, image.leader_epoch
        self.partition_epoch, self.replicas, self.isr = image.partition_epoch, image.replicas, image.isr
        was_leader, self.is_leader = self.is_leader, image.leader == node_id
        if was_leader and not self.is_leader and self.log.offline_error is None:
            self.log.end_leader_epoch()
        self._lead(begins=begins_to_lead)
        self._follow_replicas(node_id, begins=begins_to_lead)

    def take_log(self, log: PartitionLog) -> None:
        """Replace the placeholder log by the real log, which can now be opened."""
        self.log = log
        log.config = self.topic.config
        self._lead(begins=self.is_leader)

    def _lead(self, *, begins: bool) -> None:
        if begins:
            self.log.begin_leader_epoch(self.leader_epoch)
        self.settle()
        if self.is_alone:
            self.log.high_watermark = self.log.log_end_offset
        self.on_watermark()

    def _follow_replicas(self, node_id: int, *, begins: bool) -> None:
        """Keep what is known of other replicas as long as this broker leads in one epoch."""
        if not self.is_leader or len(self.replicas) == 1:
            self.leading = None
            return
        now_ms = self.log.clock.monotonic_ms()
        if self.leading is None or begins:
            # Imported here: a broker without replicas starts without this code.
            from moldau.broker.replication.leading import Leading

            self.leading = Leading(node_id, self.replicas, self.isr, self.log.log_end_offset, now_ms)
        self.leading.follow_metadata(self.replicas, self.isr, self.partition_epoch, now_ms)
        self.advance()

    def advance(self) -> None:
        """Move the high watermark as far as the replicas allow, and wake those who wait for that."""
        leading = self.leading
        if leading is None or not self.is_leader or not self.has_enough_replicas:
            return
        partition_log = self.log
        reached = leading.high_watermark(
            partition_log.log_end_offset,
            partition_log.clock.monotonic_ms(),
            self.events.lag_ms,
            self.events.is_eligible,
        )
        if reached > partition_log.high_watermark:
            partition_log.high_watermark = reached
            self.on_watermark()

    def leave(self) -> None:
        """Stop appends because this broker has no replica any more, and wake all waiting requests."""
        self.is_leader, self.leader_id = False, -1
        self.replicas = ()
        self.leading = None
        self.settle()
        self.on_watermark()

    @property
    def offline_error(self) -> StorageError | None:
        """Why this replica cannot be written or read; `None` if it can."""
        return self.log.offline_error

    def settle(self) -> None:
        """Recompute what an append needs, after a change of leader, replicas or configuration."""
        topic = self.topic
        needs_no_replica = self.is_alone = self.is_leader and len(self.replicas) == 1
        is_plain = self.is_leader and not topic.is_internal and topic.rules.is_header_enough
        self.is_plain = is_plain and needs_no_replica
        self.is_plain_shared = is_plain and not needs_no_replica
        self.is_committed_at_once = needs_no_replica and not topic.rules.may_flush

    @property
    def has_enough_replicas(self) -> bool:
        """Whether the in-sync replicas reach `min.insync.replicas`, which is capped at the number of replicas."""
        return len(self.isr) >= min(self.topic.config.min_insync_replicas, len(self.replicas))

    def fetchable_end(self, isolation_level: int, replica_id: int) -> int:
        """Where a reader must stop: the log end for followers, the high watermark or below for consumers."""
        if replica_id >= 0:
            return self.log.log_end_offset
        return self.log.last_stable_offset if isolation_level else self.log.high_watermark

    # --- appending --------------------------------------------------------------------------------------

    def append(self, batch: memoryview | bytearray, header: tuple[int, ...], now_ms: int) -> int:
        """Write one batch that is already checked, and return its base offset; call `publish` on the loop afterwards.

        Runs on the loop or on the thread for slow appends, as `broker.data.slow_appends` explains. If this raises
        `NotLeaderError` or an error of the log, nothing was written.
        """
        if not self.is_leader:
            raise NotLeaderError(f"{self.topic_partition} is not led by this broker")
        return self.log.append(batch, header, self.leader_epoch, now_ms)

    def publish(self, messages: int, size: int) -> None:
        """Count the append, move the high watermark as far as possible, and wake readers.

        Every append counts as a produce, whatever its source, as in Apache Kafka.
        """
        stats = self.topic.stats
        stats.produce_requests += 1
        stats.messages_in += messages
        stats.bytes_in += size
        if self.is_alone:
            partition_log = self.log
            partition_log.high_watermark = partition_log.log_end_offset
        elif self.leading is not None:
            self.leading.on_append()
            if len(self.isr) == 1:
                self.advance()
        if self.waiting:
            self.events.wake_readers(self)
        if self._commit_waits:
            self._end_commit_waits()

    def on_watermark(self) -> None:
        """Wake everything that waits for this partition: the high watermark or the leader may have changed."""
        self.events.wake_readers(self)
        self._end_commit_waits()

    # --- committing -------------------------------------------------------------------------------------

    def is_flushed(self, end_offset: int) -> bool:
        """Whether everything below `end_offset` is on disk, or need not be for an acknowledgement."""
        config, partition_log = self.topic.config, self.log
        has_to_flush = config.moldau_flush_on_ack or partition_log.unflushed_messages >= config.flush_messages
        return not has_to_flush or partition_log.recovery_point >= end_offset

    def when_committed(
        self, end_offset: int, deadline: float | None, then: Committed, *, is_patient: bool = False
    ) -> None:
        """Call `then` once everything below `end_offset` is committed, or cannot be; possibly before this returns.

        Committed means: below the high watermark and, if the topic requires it for an acknowledgement, on this broker's
        disk. `deadline`, a loop time, ends the wait for other replicas with REQUEST_TIMED_OUT; the wait for a sync has
        no limit, as in Apache Kafka. A wait that `is_patient` outlasts a lack of replicas.
        """
        if self.topic.rules.may_flush:
            when_all_committed([(self, end_offset)], deadline, lambda codes: then(codes[0]), is_patient=is_patient)
        else:
            self._when_replicated(end_offset, deadline, then, is_patient=is_patient)

    def _when_replicated(self, end_offset: int, deadline: float | None, then: Committed, *, is_patient: bool) -> None:
        code = self._commit_code(end_offset, is_patient=is_patient)
        if code is not None:
            then(code)
            return
        self._commit_waits.append(
            _CommitWait(end_offset, NEVER if deadline is None else deadline, then, is_patient=is_patient)
        )
        if deadline is not None and deadline < self._looks_at:
            self._look_at(deadline)

    def _look_at(self, deadline: float) -> None:
        """Have overdue waits ended then: one timer for all, because nearly every wait ends long before."""
        self._looks_at = deadline
        self._timer.cancel()
        self._timer = self.events.call_at(deadline, self._time_out)

    def _end_commit_waits(self) -> None:
        """End the waits that are over."""
        waits = self._commit_waits
        if self.is_leader and self.has_enough_replicas:
            high_watermark = self.log.high_watermark
            ended = [wait for wait in waits if wait.end_offset <= high_watermark]
            if ended:
                self._commit_waits = [wait for wait in waits if wait.end_offset > high_watermark]
                for wait in ended:
                    wait.end(ErrorCode.NONE)
            return
        self._commit_waits = []
        for wait in waits:
            code = self._commit_code(wait.end_offset, is_patient=wait.is_patient)
            if code is None:
                self._commit_waits.append(wait)
            else:
                wait.end(code)

    def _time_out(self) -> None:
        now, self._looks_at = self._looks_at, NEVER
        overdue = [wait for wait in self._commit_waits if wait.deadline <= now]
        self._commit_waits = [wait for wait in self._commit_waits if wait.deadline > now]
        next_deadline = min((wait.deadline for wait in self._commit_waits), default=NEVER)
        if next_deadline < NEVER:
            self._look_at(next_deadline)
        for wait in overdue:
            wait.end(ErrorCode.REQUEST_TIMED_OUT)

    def _commit_code(self, end_offset: int, *, is_patient: bool) -> ErrorCode | None:
        """The result of the wait for the high watermark, or `None` while the wait continues.

        With too few replicas in sync the high watermark does not move: a producer is told at once, while coordinators
        wait until there are enough again.
        """
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.has_enough_replicas:
            return ErrorCode.NONE if self.log.high_watermark >= end_offset else None
        if not is_patient:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE if self.log.high_watermark >= end_offset else None


Wait: TypeAlias = "tuple[Partition, int]"
"""A partition, and the offset up to which to wait."""


def when_all_flushed(waits: Sequence[Wait], then: Callable[[], None]) -> None:
    """Call `then` once every partition `is_flushed`; all logs that need a sync are synced together."""
    unflushed = [partition for partition, end_offset in waits if not partition.is_flushed(end_offset)]
    if unflushed:
        unflushed[0].events.flush_then([partition.log for partition in unflushed], then)
    else:
        then()


def when_all_committed(
    waits: Sequence[Wait],
    deadline: float | None,
    then: Callable[[Sequence[ErrorCode]], None],
    *,
    is_patient: bool = False,
) -> None:
    """`Partition.when_committed` for several partitions: `then` is called once, with a code for each."""
    codes = dict.fromkeys(range(len(waits)), ErrorCode.NONE)
    waited_for = set(codes)

    def end(place: int, code: ErrorCode) -> None:
        codes[place] = code
        waited_for.discard(place)
        if not waited_for:
            then(list(codes.values()))

    def replicate() -> None:
        for place, (partition, end_offset) in enumerate(waits):
            partition._when_replicated(
                end_offset,
                deadline,
                lambda code, place=place: end(place, code),  # type: ignore[misc]
                is_patient=is_patient,
            )

    when_all_flushed(waits, replicate)
