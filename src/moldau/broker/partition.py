"""A partition as this broker sees it: its log, who leads it, who waits for it.

The log keeps the bytes; here is what replication and clients add to them. A topic groups its partitions under the
bytes by which requests name it, so that the hot paths never decode a name. Start at `Partition`.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from moldau.broker.batch_rules import BatchRules
from moldau.broker.schema_rules import SchemaRules
from moldau.broker.stats import TopicStats
from moldau.controller.image import INTERNAL_TOPICS
from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.protocol.produce import OnePartitionReply

if TYPE_CHECKING:
    from moldau.broker.parked_fetches import ParkedFetch
    from moldau.controller.image import PartitionImage
    from moldau.log.errors import StorageError
    from moldau.log.partition_log import PartitionLog

__all__ = ["Partition", "Topic"]


class Topic:
    """A topic with partitions on this broker."""

    __slots__ = (
        "config",
        "id_bytes",
        "is_internal",
        "name",
        "name_bytes",
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
        self.stats = TopicStats()
        self.config = config
        self.rules = BatchRules.of(config)
        self.schema_rules = SchemaRules.of(name, config)
        self.replies: dict[int, OnePartitionReply] = {}
        """The prepared produce reply for each version that was asked for."""

    def configure(self, config: LogConfig) -> None:
        """Take a new configuration, for all partitions at once."""
        self.config = config
        self.rules = BatchRules.of(config)
        self.schema_rules = SchemaRules.of(self.name, config)
        for partition in self.partitions.values():
            partition.log.config = config
            partition.settle()

    def reply(self, version: int) -> OnePartitionReply:
        """The prepared produce reply of `version`, from 5 on."""
        prepared = self.replies.get(version)
        if prepared is None:
            prepared = OnePartitionReply(version, self.id_bytes if version >= 13 else self.name_bytes)
            self.replies[version] = prepared
        return prepared


class Partition:
    __slots__ = (
        "index",
        "is_alone",
        "is_leader",
        "is_plain",
        "isr",
        "leader_epoch",
        "leader_id",
        "log",
        "partition_epoch",
        "replicas",
        "topic",
        "waiting",
    )

    def __init__(self, topic: Topic, index: int, log: PartitionLog) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_id = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.is_leader = False
        self.is_alone = False
        """Whether no other replica has to have a record before it counts as committed."""
        self.is_plain = False
        """Whether an append needs nothing but its header checked: no special topic, no replica to wait for."""
        self.waiting: set[ParkedFetch] = set()

    def __repr__(self) -> str:
        return f"<Partition {self.topic_partition} led by {self.leader_id} in epoch {self.leader_epoch}>"

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.index)

    def lead_or_follow(self, image: PartitionImage, node_id: int) -> None:
        """Take up what the cluster's metadata says of this partition."""
        begins_to_lead = image.leader == node_id and image.leader_epoch > self.leader_epoch
        self.leader_id, self.leader_epoch = image.leader, image.leader_epoch
        self.partition_epoch, self.replicas, self.isr = image.partition_epoch, image.replicas, image.isr
        self.is_leader = image.leader == node_id
        self.is_alone = self.is_leader and len(image.isr) == 1
        self._lead(begins=begins_to_lead)

    def take_log(self, log: PartitionLog) -> None:
        """The log could be opened at last: it takes the place of what stood in for it."""
        self.log = log
        log.config = self.topic.config
        self._lead(begins=self.is_leader)

    def _lead(self, *, begins: bool) -> None:
        if begins:
            self.log.begin_leader_epoch(self.leader_epoch)
        if self.is_alone:
            self.log.high_watermark = self.log.log_end_offset
        self.settle()

    @property
    def offline_error(self) -> StorageError | None:
        """Why nothing can be written to or read from this replica, if so."""
        return self.log.offline_error

    def settle(self) -> None:
        """Work out again whether this partition is plain, after a change of leader, replicas or configuration."""
        topic = self.topic
        self.is_plain = (
            self.is_leader
            and self.is_alone
            and not topic.is_internal
            and topic.rules.is_header_enough
            and self.has_enough_replicas
        )

    @property
    def has_enough_replicas(self) -> bool:
        """Whether the in-sync replicas reach `min.insync.replicas`, which never asks for more than there are."""
        return len(self.isr) >= min(self.topic.config.min_insync_replicas, len(self.replicas))

    @property
    def has_to_flush(self) -> bool:
        """Whether what was just appended may be acknowledged only once it is on disk."""
        config = self.topic.config
        return config.moldau_flush_on_ack or self.log.unflushed_messages >= config.flush_messages

    def fetchable_end(self, isolation_level: int, replica_id: int) -> int:
        """Where a reader has to stop: followers at the log's end, consumers at the high watermark or below."""
        if replica_id >= 0:
            return self.log.log_end_offset
        return self.log.last_stable_offset if isolation_level else self.log.high_watermark
