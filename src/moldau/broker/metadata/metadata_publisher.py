"""Applying committed metadata: settings, then partitions, and last the image that clients see.

The controller calls it with every change before it answers the request, so that a created topic can be written to and a
changed setting is in effect when the reply arrives. Start at `MetadataPublisher`.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from moldau.broker.context import Broker
from moldau.broker.metadata.offline_partitions import OfflinePartitions
from moldau.broker.metadata.topic_configs import TopicConfigs
from moldau.controller.image import CLUSTER_DEFAULT, ConfigResource, ConfigResourceType, MetadataImage
from moldau.controller.replay import ImageDelta
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import StorageSettings
from moldau.core.errors import MoldauError
from moldau.core.ids import TopicPartition
from moldau.log.errors import StorageError
from moldau.log.partition_log import PartitionLog

__all__ = ["MetadataPublisher"]

log = logging.getLogger(__name__)

TURN_S = 0.005
"""How long partitions are added or dropped before other work gets a turn on the loop."""

T = TypeVar("T")


class MetadataPublisher:
    def __init__(self, broker: Broker, topic_configs: TopicConfigs, offline: OfflinePartitions) -> None:
        self._broker = broker
        self._topic_configs = topic_configs
        self._offline = offline
        self._on_config: list[Callable[[BrokerConfig], None]] = []

    def on_config(self, callback: Callable[[BrokerConfig], None]) -> None:
        """Call `callback` with the broker's configuration whenever a dynamic setting changes it."""
        self._on_config.append(callback)

    def start(self, image: MetadataImage) -> None:
        """Apply the whole metadata image at startup."""
        self._take_settings(image)
        self._set_strays_aside(image)
        self._take_up_missing(image)
        for name in image.topics:
            self._follow(name, image)
        self._broker.image = image
        self._offline.watch()

    def _set_strays_aside(self, image: MetadataImage) -> None:
        """Move logs that are not in the metadata aside; they are never deleted.

        A topic deleted and recreated just before a crash leaves the old folder under the new topic's name; only the
        topic id distinguishes them, which is read if the last shutdown was not clean.
        """
        logs = self._broker.logs
        may_be_stale = not all(directory.is_clean for directory in logs.directories)
        for partition_log in logs:
            name, number = partition_log.topic_partition
            topic = image.topics.get(name)
            is_known = topic is not None and number in topic.partitions
            is_known = is_known and self._broker.node_id in topic.partitions[number].replicas  # type: ignore[union-attr]
            if topic is not None and is_known and may_be_stale and partition_log.offline_error is None:
                is_known = self._is_of(partition_log, topic.topic_id)
            if not is_known:
                try:
                    logs.set_stray_aside(partition_log.topic_partition)
                except StorageError as error:
                    # No client is served from it; a new topic of that name will find it and retry.
                    log.error(
                        "%s is a stray partition that could not be moved aside: %s",
                        partition_log.topic_partition,
                        error,
                    )

    @staticmethod
    def _is_of(partition_log: PartitionLog, topic_id: uuid.UUID) -> bool:
        """Whether a log belongs to this topic. If a crash left it without an id, it does, and the id is written now."""
        try:
            if partition_log.topic_id is None:
                partition_log.assign_topic_id(topic_id)
        except OSError as error:
            log.warning("%s: cannot read or write the topic id: %s", partition_log.topic_partition, error)
            return True
        return partition_log.topic_id == topic_id

    def _take_up_missing(self, image: MetadataImage) -> None:
        """Add missing logs of this broker's replicas as offline, instead of silently creating empty ones."""
        wanted = []
        for topic_partition, topic_id in self._broker.logs.missing().items():
            topic = image.topics.get(topic_partition.topic)
            if topic is not None and topic.topic_id == topic_id:
                partition = topic.partitions.get(topic_partition.partition)
                if partition is not None and self._broker.node_id in partition.replicas:
                    wanted.append(topic_partition)
        self._broker.logs.take_up_missing(wanted)

    async def __call__(self, delta: ImageDelta) -> None:
        async with self._offline.exclusive:
            await self._publish(delta)
        self._offline.watch()

    async def _publish(self, delta: ImageDelta) -> None:
        image = delta.image
        self._topic_configs.image = image
        if delta.configs & {CLUSTER_DEFAULT, self._own_resource}:
            self._take_settings(image)
            await self._between_appends(self._broker.partitions.configure_all)
        for resource in delta.configs:
            if resource.type == ConfigResourceType.TOPIC:
                await self._between_appends(partial(self._broker.partitions.configure, resource.name))
        await self._follow_changes(delta)
        self._broker.image = image

    async def _between_appends(self, change: Callable[[], T]) -> T:
        """Run `change` between appends: after running appends in the thread, and before later ones."""
        return await self._broker.data_plane.slow_appends.apply(change)

    async def _follow_changes(self, delta: ImageDelta) -> None:
        """Apply topic changes; folders are created and renamed in a thread, because the disk may be slow."""
        await self._delete_logs(delta)
        await self._create_logs(delta)
        turn_ends = time.monotonic() + TURN_S
        for name in sorted({one.topic for one in delta.partitions} & delta.image.topics.keys()):
            await self._between_appends(partial(self._follow, name, delta.image))
            if time.monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + TURN_S
        await self._delete_removed()

    async def _delete_removed(self) -> None:
        """Delete the logs of replicas that were moved to other brokers."""
        removed = self._broker.partitions.take_removed()
        if removed:
            for one in removed:
                log.info("%s: this broker has no replica of it any more, its log is deleted", one)
            await asyncio.get_running_loop().run_in_executor(None, self._broker.partitions.delete_logs, removed)

    async def _delete_logs(self, delta: ImageDelta) -> None:
        """Delete logs, before new ones are created: a new topic may have the name of a deleted one."""
        for topic in delta.deleted_topics:
            dropped = await self._between_appends(partial(self._broker.partitions.drop, topic.name))
            if dropped:
                await asyncio.get_running_loop().run_in_executor(None, self._broker.partitions.delete_logs, dropped)

    async def _create_logs(self, delta: ImageDelta) -> None:
        """Create missing logs. Nothing else creates or deletes logs: the controller commits one change at a time."""
        missing = [
            one
            for one in delta.partitions
            if self._broker.node_id in delta.image.topics[one.topic].partitions[one.partition].replicas
            and self._broker.logs.get(one) is None
        ]
        if missing:
            await asyncio.get_running_loop().run_in_executor(None, self._create_all, missing, delta.image)

    def _create_all(self, missing: Sequence[TopicPartition], image: MetadataImage) -> None:
        for topic_partition in sorted(missing):
            try:
                self._broker.logs.create(topic_partition, image.topics[topic_partition.topic].topic_id)
            except MoldauError:
                return  # `_follow` retries missing logs, and takes them offline if that fails

    def _follow(self, name: str, image: MetadataImage) -> None:
        """Apply one topic; if that fails, the other topics are still served."""
        try:
            self._broker.partitions.follow(name, image.topics.get(name))
        except MoldauError as error:
            log.error("the metadata of topic %s could not be applied: %s", name, error)

    @property
    def _own_resource(self) -> ConfigResource:
        return ConfigResource(ConfigResourceType.BROKER, str(self._broker.node_id))

    def _take_settings(self, image: MetadataImage) -> None:
        broker = self._broker
        broker.config = broker.config.with_dynamic(image.cluster_config, image.broker_config(broker.node_id))
        self._topic_configs.image = image
        self._topic_configs.config = broker.config
        broker.logs.producer_id_expiration_ms = broker.config.section(StorageSettings).producer_id_expiration_ms
        for callback in self._on_config:
            callback(broker.config)
