"""All partitions of this broker, found by the bytes that requests carry.

They follow the cluster's metadata: whoever applies a change to it calls `follow` for each topic it touched.
What changes a log here must not overlap an append, so it is called through
`SlowAppends.apply` once clients are served. Start at `Partitions.follow`.
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
    """Owned by the loop."""

    def __init__(self, node_id: int, logs: LogManager, config_of: Callable[[str], LogConfig]) -> None:
        self._node_id = node_id
        self._logs = logs
        self._config_of = config_of
        self.by_name: dict[bytes, Topic] = {}
        self.by_id: dict[bytes, Topic] = {}
        self.deleted_topics = TopicStats()
        """Sum over topics that are gone, so that totals over all topics never fall."""
        self.events = PartitionEvents()
        """What all partitions here ask of the broker; `broker.data.data_plane` fills it in."""

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
        """Make this broker's share of one topic what the metadata says; `None` for a deleted topic.

        Logs that are missing are created here, and those of a dropped topic deleted; whoever minds that it takes a
        while calls `drop` and creates them before.
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
        for index, assigned in image.partitions.items():
            if self._node_id not in assigned.replicas:
                continue
            partition = topic.partitions.get(index)
            if partition is None:
                partition = topic.partitions[index] = Partition(topic, index, self._log_of(topic, index), self.events)
            partition.lead_or_follow(assigned, self._node_id)

    def configure(self, name: str) -> None:
        """A topic's configuration changed, or a broker-wide default it inherits."""
        topic = self.by_name.get(name.encode())
        if topic is not None:
            topic.configure(self._config_of(name))

    def configure_all(self) -> None:
        for topic in self.by_name.values():
            topic.configure(self._config_of(topic.name))

    def _log_of(self, topic: Topic, index: int) -> PartitionLog:
        """A log that cannot be made leaves its partition offline; `broker.metadata.offline_partitions` tries again."""
        topic_partition = TopicPartition(topic.name, index)
        existing = self._logs.get(topic_partition)
        if existing is not None:
            return existing
        try:
            return self._logs.create(topic_partition, topic.topic_id)
        except StorageError as error:
            return self._logs.stand_in(topic_partition, str(error))

    def restore(self, reopened: PartitionLog) -> None:
        """A log that could not be opened before is there: its partition serves again."""
        partition = self.get(reopened.topic_partition)
        assert partition is not None  # only `follow` takes partitions away, and not during an attempt
        self._logs.restore(reopened)
        partition.take_log(reopened)

    def offline(self) -> list[Partition]:
        """Partitions here whose log cannot be used."""
        return [partition for partition in self if partition.offline_error is not None]

    def lost_replicas(self, topic: str, index: int) -> tuple[int, ...]:
        """The replicas of a partition that are known to be offline although their broker is alive."""
        partition = self.get(TopicPartition(topic, index))
        return () if partition is None or partition.offline_error is None else (self._node_id,)

    def drop(self, name: str) -> list[TopicPartition]:
        """Serve a topic no more; return its partitions, whose logs are now nobody's and can be deleted."""
        topic = self.by_name.pop(name.encode(), None)
        if topic is None:
            return []
        del self.by_id[topic.id_bytes]
        self.deleted_topics.add(topic.stats)
        for partition in topic.partitions.values():
            partition.leave()
        return [partition.topic_partition for partition in topic.partitions.values()]

    def delete_logs(self, dropped: Sequence[TopicPartition]) -> None:
        """Delete the logs of a topic that was dropped; in any thread."""
        for topic_partition in dropped:
            try:
                self._logs.delete(topic_partition)
            except StorageError as error:
                # The others have to go all the same: a topic made again under this name must not find them.
                log.error("%s is deleted, but its folder stays until the next start: %s", topic_partition, error)
