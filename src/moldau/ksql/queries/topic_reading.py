"""Records of topics as they arrive, for queries that the server answers itself. Start at `read_topics`."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from moldau.client.waiting import SerialCalls
from moldau.core.ids import TopicPartition
from moldau.ksql.cluster import KafkaCluster, arrived, assign
from moldau.pipeline.cores.records import Headers

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

__all__ = ["TopicReading", "TopicRecord", "in_time_order", "read_topics"]

READ_AT_ONCE = 1000
POLL_S = 0.1


class TopicRecord(NamedTuple):
    """A record as it was read."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    offset: int
    headers: Headers = ()


def in_time_order(records: Sequence[TopicRecord]) -> list[TopicRecord]:
    """Records of several partitions as a task of Kafka Streams takes them: always the oldest of the first ones."""
    partitions: dict[tuple[str, int], deque[TopicRecord]] = {}
    for record in records:
        partitions.setdefault((record.topic, record.partition), deque()).append(record)
    if len(partitions) < 2:
        return list(records)
    heads = [(queue[0].timestamp, place, queue) for place, queue in enumerate(partitions.values())]
    heapq.heapify(heads)
    ordered = []
    while heads:
        _, place, queue = heapq.heappop(heads)
        ordered.append(queue.popleft())
        if queue:
            heapq.heappush(heads, (queue[0].timestamp, place, queue))
    return ordered


def read_topics(
    cluster: KafkaCluster,
    topics: Sequence[str],
    *,
    from_end: bool,
    until: asyncio.Event,
    stops_at_end: bool = False,
    skips_null_keys: bool = False,
) -> TopicReading:
    """Reads topics from their start or end, until an event, or until where they end now."""
    return TopicReading(
        cluster,
        list(dict.fromkeys(topics)),
        from_end=from_end,
        until=until,
        stops_at_end=stops_at_end,
        skips_null_keys=skips_null_keys,
    )


class TopicReading:
    def __init__(
        self,
        cluster: KafkaCluster,
        topics: list[str],
        *,
        from_end: bool,
        until: asyncio.Event,
        stops_at_end: bool,
        skips_null_keys: bool,
    ) -> None:
        self._cluster = cluster
        self._topics = topics
        self._from_end = from_end
        self._until = until
        self._stops_at_end = stops_at_end
        self._skips_null_keys = skips_null_keys
        self._unread: set[tuple[str, int]] = set()
        self._consumer: Consumer | None = None
        self._calls = SerialCalls("ksql-query")

    async def start(self) -> None:
        """Fix where reading starts: a record that is written after this returns is read."""
        self._consumer = await self._calls.make(self._open)

    def _open(self) -> Consumer:
        ends = self._cluster.end_offsets(self._topics)
        places = [(topic, int(number), end) for topic, ends in ends.items() for number, end in ends.items()]
        consumer = self._cluster.new_consumer("ksql-query")
        assign(consumer, {TopicPartition(topic, number): end if self._from_end else 0 for topic, number, end in places})
        self._unread = {(topic, number) for topic, number, end in places if end > 0}
        return consumer

    async def batches(self) -> AsyncGenerator[list[TopicRecord], None]:
        """Records in the order in which they arrive."""
        consumer = self._consumer
        assert consumer is not None
        try:
            while not self._until.is_set() and not (self._stops_at_end and not self._unread):
                messages = await self._calls.make(lambda: arrived(consumer, READ_AT_ONCE, POLL_S))
                records = [self._record(message) for message in messages if not self._is_left_out(message)]
                if records:
                    yield in_time_order(records)
        finally:
            await self._calls.make(consumer.close)

    def _is_left_out(self, message: Message) -> bool:
        if message.error() is None:
            return self._skips_null_keys and message.key() is None
        topic, partition = message.topic(), message.partition()
        if topic is not None and partition is not None:
            self._unread.discard((topic, partition))
        return True

    @staticmethod
    def _record(message: Message) -> TopicRecord:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        headers: Headers = tuple(message.headers() or ())  # type: ignore[arg-type]
        return TopicRecord(topic, partition, message.key(), message.value(), message.timestamp()[1], offset, headers)
