"""Reading topics without a group: every partition is assigned explicitly, and new ones are picked up.

A group costs a coordinator and a rebalance, which reading a topic once does not need.
Start at `Follower.refresh`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.client.errors import ClientError, UnreachableError, client_error, error_name
from moldau.client.waiting import interruptible, never
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Consumer

__all__ = ["BEGINNING", "END", "Follower", "start_offsets_at"]

BEGINNING, END = -2, -1
"""librdkafka's logical offsets, equal to Kafka's timestamps for earliest and latest."""

METADATA_TIMEOUT_S = 8.0


class Follower:
    """The partitions of some topics, by name or by pattern, assigned to one consumer.

    `start` is an offset, `BEGINNING`, `END`, or a mapping with an offset for each partition known at the
    start. Partitions that appear later are read from their beginning: all they hold is new.
    A metadata request for one topic creates it where the broker allows that; `may_create=False` requests all topics
    instead.
    Once `is_over()` is true, a request that waits for its response is given up.
    """

    def __init__(
        self,
        consumer: Consumer,
        topics: Sequence[str] | re.Pattern[str],
        *,
        start: int | Mapping[TopicPartition, int] = END,
        only_partition: int | None = None,
        refresh_ms: int = 10_000,
        skipped: frozenset[str] = frozenset(),
        may_create: bool = True,
        is_over: Callable[[], bool] = never,
    ) -> None:
        self._consumer = consumer
        self._topics = topics
        self._start = start
        self._only_partition = only_partition
        self._refresh_s = refresh_ms / 1000
        self._skipped = skipped
        self._may_create = may_create
        self._is_over = is_over
        self._next_refresh = 0.0
        self._has_looked = False
        # Nothing is read during a metadata request: start with a short timeout, and extend it for slow clusters.
        self._patience_s = 1.0
        self.assigned: set[TopicPartition] = set()

    def refresh_if_due(self) -> dict[str, str]:
        return self.refresh() if time.monotonic() >= self._next_refresh else {}

    def refresh(self) -> dict[str, str]:
        """Look for partitions that are not read yet, and start reading them.

        Returns Kafka's error name by topic for topics that do not exist (yet); those are looked up
        again within a second. An unreachable cluster is an entry under the empty name.
        """
        try:
            found, missing = self.partitions()
        except UnreachableError as error:
            self._patience_s = min(2 * self._patience_s, METADATA_TIMEOUT_S)
            self._next_refresh = time.monotonic() + 0.5
            return {"": str(error)}
        fresh = sorted(found - self.assigned)
        if fresh:
            self._begin(fresh)
        self._has_looked = True
        self._next_refresh = time.monotonic() + (self._refresh_s if self.assigned and not missing else 1.0)
        return missing

    def partitions(self) -> tuple[set[TopicPartition], dict[str, str]]:
        """The existing partitions of the requested topics, and the errors of the missing topics."""
        found: set[TopicPartition] = set()
        missing: dict[str, str] = {}
        for name, topic in self._metadata().items():
            if topic is None:
                missing[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name
                continue
            if topic.error is not None:
                missing[name] = error_name(topic.error)
                continue
            found.update(TopicPartition(name, number) for number in topic.partitions)
        if self._only_partition is not None:
            found = {partition for partition in found if partition.partition == self._only_partition}
        return found, missing

    def _metadata(self) -> dict[str, Any]:
        from confluent_kafka import KafkaException

        try:
            if isinstance(self._topics, re.Pattern):
                everything = self._list_topics()
                return {name: topic for name, topic in everything.items() if self._accepts(name)}
            known: dict[str, Any] = {}
            for name in self._topics if self._may_create else ():
                known |= self._list_topics(name)
            if not self._may_create:
                everything = self._list_topics()
                known = {name: everything.get(name) for name in self._topics}
        except KafkaException as error:
            raise client_error(error.args[0]) from None
        return known

    def _list_topics(self, name: str | None = None) -> dict[str, Any]:
        ask = partial(self._consumer.list_topics, name, timeout=self._patience_s)
        found: dict[str, Any] = interruptible(ask, is_over=self._is_over).topics
        return found

    def _accepts(self, name: str) -> bool:
        return (
            isinstance(self._topics, re.Pattern)
            and self._topics.fullmatch(name) is not None
            and name not in self._skipped
        )

    def _begin(self, fresh: Sequence[TopicPartition]) -> None:
        from confluent_kafka import TopicPartition as Position

        positions = [Position(p.topic, p.partition, self._first_offset(p)) for p in fresh]
        self._consumer.incremental_assign(positions)
        self.assigned.update(fresh)

    def _first_offset(self, partition: TopicPartition) -> int:
        if isinstance(self._start, Mapping):
            return self._start.get(partition, BEGINNING)
        return BEGINNING if self._has_looked and self._start == END else self._start


def start_offsets_at(
    consumer: Consumer, partitions: Sequence[TopicPartition], timestamp: int
) -> dict[TopicPartition, int]:
    """The first offset at or after a time, for each partition; `END` where no record is that new."""
    from confluent_kafka import KafkaException
    from confluent_kafka import TopicPartition as Position

    try:
        wanted = [Position(p.topic, p.partition, timestamp) for p in partitions]
        found = interruptible(partial(consumer.offsets_for_times, wanted, timeout=METADATA_TIMEOUT_S))
    except KafkaException as error:
        raise client_error(error.args[0]) from None
    failed = next((position.error for position in found if position.error is not None), None)
    if failed is not None:
        raise ClientError(failed.str())
    return {TopicPartition(p.topic, p.partition): p.offset if p.offset >= 0 else END for p in found}
