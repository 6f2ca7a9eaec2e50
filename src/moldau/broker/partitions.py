"""All partitions of this broker, found by the bytes that requests carry.

They follow the cluster metadata: the code that applies a metadata change calls `follow` for each changed topic. Changes
to a log must not overlap an append, so once clients are served these methods are called through `SlowAppends.apply`.
Start at `Partitions.follow`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from moldau.broker.partition import Partition, PartitionEvents, Topic
from moldau.broker.stats import TopicStats
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.errors import StorageError

if TYPE_CHECKING:
    from moldau.controller.image import TopicImage
    from moldau.log.manager import LogManager
    from moldau.log.partition_log import PartitionLog

__all__ = ["Partitions"]

log = logging.getLogger(__name__)


class Partitions:
    """The partitions by topic; used only on the loop."""

    def __init__(self, node_id: int, logs: LogManager, config_of: Callable[[str], LogConfig]) -> None:
        self._node_id = node_id
        self._logs = logs
        self._config_of = config_of
        self.by_name: dict[bytes, Topic] = {}
        self.by_id: dict[bytes, Topic] = {}
        self.deleted_topics = TopicStats()
        """Sum over deleted topics, so that totals over all topics never decrease."""
        self._removed: list[TopicPartition] = []
        self.events = PartitionEvents()
        """Callbacks from all partitions to the broker; `broker.data.data_plane` sets them."""

    def __iter__(self) -> Iterator[Partition]:
        for topic in list(self.by_name.values()):
            yield from list(topic.partitions.values())

    def topics(self) -> Iterator[Topic]:
        return iter(self.by_name.values())

    def topic(self, name: str) -> Topic | None:
        return self.by_name.get(name.encode())

    def get(self, topic_partition: TopicPartition) -> Partition | None:
        topic = self.by_name.get(topic_partition.topic.encode())
        return None if topic is None else topic.partitions.get(topic_partition.partition)

    def follow(self, name: str, image: TopicImage | None) -> None:
        """Bring this broker's partitions of one topic in line with the metadata; `None` for a deleted topic.

        Creates missing logs and deletes those of a dropped topic. Callers that must not block for that long call `drop`
        and create the logs beforehand.
        """
        topic = self.by_name.get(name.encode())
        if topic is not None and (image is None or image.topic_id != topic.topic_id):
            self.delete_logs(self.drop(name))
            topic = None
        if image is None:
            return
        if topic is None:
            topic = Topic(name, image.topic_id, self._config_of(name))
            self.by_name[topic.name_bytes] = topic
            self.by_id[topic.id_bytes] = topic
        topic.partition_count = len(image.partitions)
        for index, assigned in image.partitions.items():
            if self._node_id not in assigned.replicas:
                self._drop_replica(topic, index)
                continue
            partition = topic.partitions.get(index)
            if partition is None:
                partition = topic.partitions[index] = Partition(topic, index, self._log_of(topic, index), self.events)
            partition.lead_or_follow(assigned, self._node_id)

    def _drop_replica(self, topic: Topic, index: int) -> None:
        """Stop serving a replica that was moved to another broker; `take_removed` then has it."""
        partition = topic.partitions.pop(index, None)
        if partition is not None:
            partition.leave()
            self._removed.append(partition.topic_partition)

    def take_removed(self) -> list[TopicPartition]:
        """The replicas dropped since the last call, whose logs can now be deleted."""
        removed, self._removed = self._removed, []
        return removed

    def configure(self, name: str) -> None:
        """Apply a changed topic configuration, or a changed broker-wide default that the topic inherits."""
        topic = self.by_name.get(name.encode())
        if topic is not None:
            topic.configure(self._config_of(name))

    def configure_all(self) -> None:
        for topic in self.by_name.values():
            topic.configure(self._config_of(topic.name))

    def _log_of(self, topic: Topic, index: int) -> PartitionLog:
        """The partition's log, or an offline placeholder that `broker.metadata.offline_partitions` tries to replace."""
        topic_partition = TopicPartition(topic.name, index)
        existing = self._logs.get(topic_partition)
        if existing is not None:
            return existing
        try:
            return self._logs.create(topic_partition, topic.topic_id)
        except StorageError as error:
            return self._logs.stand_in(topic_partition, str(error))

    def restore(self, reopened: PartitionLog) -> None:
        """Put a log that could not be opened before into its partition, which then serves requests again."""
        partition = self.get(reopened.topic_partition)
        assert partition is not None  # only `follow` removes partitions, and not during a retry
        self._logs.restore(reopened)
        partition.take_log(reopened)

    def offline(self) -> list[Partition]:
        """Partitions whose log cannot be used."""
        return [partition for partition in self if partition.offline_error is not None]

    def lost_replicas(self, topic: str, index: int) -> tuple[int, ...]:
        """The replicas of a partition that are known to be offline although their broker is alive."""
        partition = self.get(TopicPartition(topic, index))
        return () if partition is None or partition.offline_error is None else (self._node_id,)

    def lost_partitions(self, name: str) -> tuple[int, ...]:
        """The partitions of a topic whose log here cannot be used; as `lost_replicas`, for a whole topic at once."""
        topic = self.by_name.get(name.encode())
        if topic is None:
            return ()
        return tuple([n for n, partition in topic.partitions.items() if partition.log.offline_error is not None])

    def drop(self, name: str) -> list[TopicPartition]:
        """Stop serving a topic; return its partitions, whose logs can now be deleted."""
        topic = self.by_name.pop(name.encode(), None)
        if topic is None:
            return []
        del self.by_id[topic.id_bytes]
        self.deleted_topics.add(topic.stats)
        for partition in topic.partitions.values():
            partition.leave()
        return [partition.topic_partition for partition in topic.partitions.values()]

    def delete_logs(self, dropped: Sequence[TopicPartition]) -> None:
        """Delete the logs of dropped partitions; may run in any thread."""
        for topic_partition in dropped:
            try:
                self._logs.delete(topic_partition)
            except StorageError as error:
                # Delete the others all the same: a new topic with this name must not find them.
                log.error("%s is deleted, but its folder stays until the next start: %s", topic_partition, error)
