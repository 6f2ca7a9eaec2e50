"""Reading for a fetch: which batches of which partitions, within the limits of reader and broker.

No sockets and no waiting: reads return file ranges and metadata, from any thread. When and how to answer is decided by
`broker.handlers.api_01_fetch`. Start at `Reader.read`.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeAlias

from moldau.broker.data.cold_reads import is_page_resident
from moldau.broker.data.fetch_session import FetchSession, Wanted
from moldau.broker.leaders import leader_error, missing_error
from moldau.broker.partition import Partition, Topic
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.fetch import FIRST_WITH_TOPIC_IDS, FetchedPartition, FetchPartition, FetchRequest

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.replication.closest import ReplicaSelector
    from moldau.broker.replication.throttle import ReplicationThrottle
    from moldau.log.partition_log import LogSlice, PartitionLog

__all__ = ["Fetched", "ReadResult", "Reader", "aborted_within", "note_follower"]

log = logging.getLogger(__name__)

FIRST_WITH_ZSTD = 10
FIRST_WITH_RACKS = 11

Fetched: TypeAlias = "FetchedPartition[LogSlice]"


class ReadResult:
    """The result of one pass over the partitions of a fetch."""

    __slots__ = ("fetched", "has_to_answer", "size")

    def __init__(self) -> None:
        self.fetched: list[Fetched] = []
        """In the order of the request."""
        self.size = 0
        self.has_to_answer = False
        """Whether the result contains something to report at once, such as an error."""


class Reader:
    """Reads the partitions of one request, possibly several times."""

    __slots__ = ("_max_bytes", "_request", "_selector", "_targets", "_throttle", "_topics", "_version", "wanted")

    def __init__(
        self,
        request: FetchRequest,
        version: int,
        wanted: Sequence[Wanted],
        topics: dict[bytes, Topic],
        max_bytes: int,
        *,
        selector: ReplicaSelector | None = None,
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        """`selector` may send a consumer to a closer replica, `throttle` lets a follower that is not in sync wait."""
        self._throttle = throttle
        self._request = request
        self._selector = selector
        self._version = version
        self._max_bytes = max_bytes
        self._topics = topics
        self.wanted = list(wanted)
        self._targets = [(topics.get(topic_key), partition) for topic_key, partition in wanted]

    def extend(self, wanted: Sequence[Wanted]) -> list[Partition]:
        """Read these too from now on; returns those that exist here."""
        known = len(self.wanted)
        self.wanted.extend(wanted)
        self._targets.extend((self._topics.get(topic_key), partition) for topic_key, partition in wanted)
        return self._existing(known)

    @property
    def partitions(self) -> list[Partition]:
        """The requested partitions that exist here."""
        return self._existing(0)

    def _existing(self, first: int) -> list[Partition]:
        targets = self._targets[first:] if first else self._targets
        found = (None if topic is None else topic.partitions.get(wanted.partition) for topic, wanted in targets)
        return [partition for partition in found if partition is not None]

    def watch_quiet(self, session: FetchSession, result: ReadResult) -> None:
        """Have a session watch the partitions that have nothing more to tell than what it was told with this result.

        They are compared with what they are now: they may have changed since they were read.
        """
        request = self._request
        replica_id = request.replica_id
        for (topic_key, _), (topic, wanted), fetched in zip(self.wanted, self._targets, result.fetched, strict=True):
            partition = None if topic is None else topic.partitions.get(wanted.partition)
            if partition is None or fetched.error_code or fetched.records_length or fetched.diverging_epoch is not None:
                continue
            partition_log = partition.log
            is_quiet = (
                fetched.preferred_read_replica < 0
                and partition.fetchable_end(request.isolation_level, replica_id) <= wanted.fetch_offset
                and partition_log.high_watermark == fetched.high_watermark
                and partition_log.last_stable_offset == fetched.last_stable_offset
                and partition_log.log_start_offset == fetched.log_start_offset
                and self._refusal(partition, wanted) is None
            )
            if is_quiet:
                session.watch(topic_key, wanted.partition, partition)
                if replica_id >= 0 and partition.leading is not None:
                    partition.leading.rest(replica_id, session)

    def is_lookup_cheap(self) -> bool:
        """Whether all offsets can probably be found without disk access; an estimate that is itself cheap."""
        try:
            for topic, wanted in self._targets:
                partition = None if topic is None else topic.partitions.get(wanted.partition)
                if partition is not None and not _is_at_hand(partition.log, wanted.fetch_offset):
                    return False
        except OSError:
            return False  # the read itself reports the error
        return True

    def read(self, previous: ReadResult | None = None, changed: Collection[Partition] = ()) -> ReadResult:
        """Read every partition; with a `previous` result only those in `changed`, and copy the rest from it."""
        result = ReadResult()
        left = self._max_bytes
        for place, (topic, wanted) in enumerate(self._targets):
            partition = None if topic is None else topic.partitions.get(wanted.partition)
            if (
                previous is not None
                and partition is not None
                and partition not in changed
                and place < len(previous.fetched)
            ):
                fetched = previous.fetched[place]
            elif partition is None:
                fetched = self._missing_partition(topic, wanted)
            else:
                try:
                    fetched = self._read_partition(partition, wanted, left, is_first=not result.size)
                except OSError as error:
                    # The log's files could not be read, for example because no file can be opened.
                    log.error("%s cannot be read: %s", partition.topic_partition, error)
                    fetched = FetchedPartition(wanted.partition, ErrorCode.KAFKA_STORAGE_ERROR)
            length = fetched.records_length
            left -= length
            result.size += length
            result.fetched.append(fetched)
            if fetched.error_code or fetched.diverging_epoch is not None or fetched.preferred_read_replica >= 0:
                result.has_to_answer = True
        return result

    def _missing_partition(self, topic: Topic | None, wanted: FetchPartition) -> Fetched:
        if topic is None and self._version >= FIRST_WITH_TOPIC_IDS:
            return FetchedPartition(wanted.partition, ErrorCode.UNKNOWN_TOPIC_ID)
        return FetchedPartition(wanted.partition, missing_error(topic, wanted.partition))

    def _read_partition(self, partition: Partition, wanted: FetchPartition, left: int, *, is_first: bool) -> Fetched:
        partition_log = partition.log
        refused = self._refusal(partition, wanted)
        if refused is not None:
            return refused
        request = self._request
        fetched: Fetched = FetchedPartition(
            wanted.partition,
            0,
            partition_log.high_watermark,
            partition_log.last_stable_offset,
            partition_log.log_start_offset,
        )
        if self._selector is not None and partition.is_leader:
            fetched.preferred_read_replica = self._selector.choose(partition, wanted.fetch_offset)
            if fetched.preferred_read_replica >= 0:
                return fetched
        upper_bound = partition.fetchable_end(request.isolation_level, request.replica_id)
        try:
            if wanted.last_fetched_epoch >= 0:
                fetched.diverging_epoch = _diverging_epoch(partition_log, wanted)
                if fetched.diverging_epoch is not None:
                    return fetched
            if self._has_to_wait(partition):
                return fetched
            max_bytes = min(wanted.max_bytes, left)
            if max_bytes > 0 or is_first:
                found = partition_log.read(wanted.fetch_offset, max(max_bytes, 0), upper_bound, is_first)
                if found.length:
                    fetched.records = found
        except MoldauError as error:
            return FetchedPartition(wanted.partition, error.code)
        if request.isolation_level:
            records = fetched.records
            fetched.aborted = () if isinstance(records, bytes) else aborted_within(partition_log, records, upper_bound)
        return fetched

    def _has_to_wait(self, partition: Partition) -> bool:
        """Whether this follower gets nothing for now, because it is not in sync and its share is used up."""
        if self._throttle is None or self._request.replica_id in partition.isr:
            return False
        return self._throttle.pause_ms(partition) > 0

    def _refusal(self, partition: Partition, wanted: FetchPartition) -> Fetched | None:
        """Return an error if this request cannot read this partition, else `None`."""
        replica_id = self._request.replica_id
        # Consumers that know of closer replicas may read from a follower, up to its high watermark.
        is_anyone_asked = replica_id < 0 and self._version >= FIRST_WITH_RACKS
        code = leader_error(partition, wanted.current_leader_epoch, is_follower_enough=is_anyone_asked)
        if code is None and replica_id >= 0 and replica_id not in partition.replicas:
            # Its metadata is ahead of ours: it asks again when ours has arrived.
            code = ErrorCode.UNKNOWN_LEADER_EPOCH
        if code is None and self._version < FIRST_WITH_ZSTD and partition.topic.config.compression_type == "zstd":
            code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if code is None:
            return None
        has_moved = code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
        current_leader = (partition.leader_id, partition.leader_epoch) if has_moved else None
        return FetchedPartition(wanted.partition, code, current_leader=current_leader)


def note_follower(broker: Broker, request: FetchRequest, topics: dict[bytes, Topic]) -> None:
    """Count what a follower has, in each partition that it names, before its fetch is read. On the loop.

    Its offset is an acknowledgement, so it counts only in the leader's epoch, and where both logs agree.
    """
    node_id = request.replica_id
    registered = broker.image.brokers.get(node_id)
    if registered is None or 0 <= request.replica_epoch < registered.epoch:
        return
    now_ms = broker.clock.monotonic_ms()
    for topic, asked in ((topics.get(key), one) for key, partitions in request.topics for one in partitions):
        partition = None if topic is None else topic.partitions.get(asked.partition)
        if partition is None or partition.leading is None or not partition.leading.is_follower(node_id):
            continue
        if leader_error(partition, asked.current_leader_epoch) is not None or asked.current_leader_epoch < 0:
            continue
        partition_log = partition.log
        end_offset = partition_log.log_end_offset
        if not partition_log.log_start_offset <= asked.fetch_offset <= end_offset:
            continue
        if asked.last_fetched_epoch >= 0 and _diverging_epoch(partition_log, asked) is not None:
            continue
        partition.leading.on_fetch(
            node_id, asked.fetch_offset, request.replica_epoch, leader_end=end_offset, now_ms=now_ms
        )
        partition.advance()
        if node_id not in partition.isr:
            partition.events.may_join(partition)


def _diverging_epoch(log: PartitionLog, wanted: FetchPartition) -> tuple[int, int] | None:
    """Where the reader's log diverges from this one, if its last epoch ended earlier than it assumes."""
    epoch, end_offset = log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None


def aborted_within(log: PartitionLog, records: LogSlice, upper_bound: int) -> list[tuple[int, int]]:
    """Return the aborted transactions within a slice, which never extends into the next segment.

    The slice may lie in a later segment than its first offset belongs to, if compaction left no records there.
    """
    segments = log.segments
    following = bisect_right(segments, records.first_offset, key=lambda segment: segment.base_offset)
    while following < len(segments) and segments[following - 1].file is not records.file:
        following += 1
    if following < len(segments):
        upper_bound = min(upper_bound, segments[following].base_offset)
    aborted = log.aborted_transactions(records.first_offset, upper_bound)
    return [(entry.producer_id, entry.first_offset) for entry in aborted]


def _is_at_hand(log: PartitionLog, offset: int) -> bool:
    """Whether finding `offset` needs no disk access: no records there, among the newest batches, or cached."""
    if offset >= log.high_watermark or offset < log.log_start_offset:
        return True
    tail = log.segments[-1].tail
    if (tail and tail[0] >> 32 <= offset) or log.offline_error is not None:
        return True
    segment = log.segment_of(offset)
    place = segment.search_start(offset)
    return place is not None and is_page_resident(segment.file.fd, place)
