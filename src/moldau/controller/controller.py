"""The controller: makes decisions, commits them, applies them to the image and notifies subscribers.

Decisions are pure functions of the image (`controller.decisions.topics`, `controller.decisions.configs`,
`controller.decisions.brokers`); they return records and results. Here the records are committed through the quorum
one decision at a time, replayed into the next image, and passed to subscribers before the result is
returned, so that the caller finds the change done. Start at `Controller.create_topics`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar

from moldau.controller.decisions.brokers import unregistration
from moldau.controller.decisions.configs import ConfigResult, ResourceChange, decide_config_changes
from moldau.controller.decisions.eligible_leaders import MIN_ISR
from moldau.controller.decisions.feature_updates import FeatureUpdate, Updater, decide_feature_updates
from moldau.controller.decisions.reassignment import Reassignment, ReassignmentResult, decide_reassignments
from moldau.controller.decisions.topics import (
    MorePartitions,
    NewTopic,
    TopicRef,
    TopicResult,
    decide_partition_creation,
    decide_topic_creation,
    decide_topic_deletion,
)
from moldau.controller.errors import RefusedError
from moldau.controller.image import MetadataImage
from moldau.controller.quorum.quorum import Committed, Quorum
from moldau.controller.replay import ImageDelta, replay_records
from moldau.core.config import BrokerConfig
from moldau.core.errors import ErrorCode
from moldau.protocol.metadata_records import MetadataRecord, ProducerIdsRecord

__all__ = ["PRODUCER_ID_BLOCK", "Controller"]

log = logging.getLogger(__name__)

PRODUCER_ID_BLOCK = 1000

Answer = TypeVar("Answer")
Subscriber = Callable[[ImageDelta], Awaitable[None]]


class Controller:
    """Decides and commits metadata changes. Use on the event loop only; `config` has the current topic defaults."""

    def __init__(
        self,
        quorum: Quorum,
        image: MetadataImage,
        config: Callable[[], BrokerConfig],
        *,
        random: Random | None = None,
    ) -> None:
        self.quorum = quorum
        self.image = image
        self.is_active = True
        self._config = config
        self._random = random or Random()
        self._lock = asyncio.Lock()
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with every committed change, in order, before the response to its request."""
        self._subscribers.append(subscriber)

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[TopicResult]:
        return await self._change(
            lambda image: decide_topic_creation(image, topics, self._config(), random=self._random), validate_only
        )

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[TopicResult]:
        return await self._change(
            lambda image: decide_partition_creation(image, topics, random=self._random), validate_only
        )

    async def delete_topics(self, topics: Sequence[TopicRef]) -> list[TopicResult]:
        return await self._change(lambda image: decide_topic_deletion(image, topics))

    async def alter_configs(
        self, changes: Callable[[MetadataImage], Sequence[ResourceChange]], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """Alter settings. `changes` is called with the image the decision uses: replacing needs current settings."""
        return await self._change(
            lambda image: decide_config_changes(image, changes(image), self._config()), validate_only
        )

    async def reassign(
        self, wanted: Sequence[Reassignment], *, may_change_factor: bool = True
    ) -> list[ReassignmentResult]:
        """Begin to move partitions to other brokers, or cancel that."""
        return await self._change(
            lambda image: decide_reassignments(
                image,
                wanted,
                may_change_factor=may_change_factor,
                may_lose_data=lambda topic: self._may_lose_data(image, topic),
            )
        )

    def _may_lose_data(self, image: MetadataImage, topic: str) -> bool:
        """Whether a replica that is not in sync may lead a partition of this topic, if no other can."""
        for settings in (image.topic_config(topic), image.cluster_config):
            value = settings.get("unclean.leader.election.enable")
            if value is not None:
                return value.strip().lower() == "true"
        return bool(self._config().value("unclean.leader.election.enable"))

    async def unregister(self, node_id: int) -> None:
        """Forget a broker that is gone; raises `RefusedError`."""
        await self._change(lambda image: (self._unregistration(image, node_id), None))

    def _unregistration(self, image: MetadataImage, node_id: int) -> list[MetadataRecord]:
        if image.is_alive(node_id):
            raise RefusedError(ErrorCode.INVALID_REQUEST, f"broker {node_id} is running; stop it first")
        return [unregistration(image, node_id)]

    async def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
        """Change feature levels, all of them or none; raises `RefusedError`."""

        def decide(image: MetadataImage) -> tuple[list[MetadataRecord], None]:
            config = self._config()
            updater = Updater(config.node_id, self._kraft_version(), int(config.value(MIN_ISR)))
            return decide_feature_updates(image, updates, updater), None

        await self._change(decide, validate_only)

    def _kraft_version(self) -> int:
        """The level of the quorum's own feature; a node alone has the one voter it is."""
        return 0

    async def allocate_producer_ids(self, node_id: int, broker_epoch: int = -1) -> range:
        """Reserve a block of producer ids for one broker; ids of lost blocks are never reused."""

        def decide(image: MetadataImage) -> tuple[list[MetadataRecord], range]:
            block = range(image.next_producer_id, image.next_producer_id + PRODUCER_ID_BLOCK)
            record = ProducerIdsRecord(broker_id=node_id, broker_epoch=broker_epoch, next_producer_id=block.stop)
            return [record], block

        return await self._change(decide)

    async def _change(
        self,
        decide: Callable[[MetadataImage], tuple[list[MetadataRecord], Answer]],
        validate_only: bool = False,
    ) -> Answer:
        """Decide and commit; once started, a change is completed even if its client disconnects."""
        change = asyncio.ensure_future(self._decide_and_commit(decide, validate_only))
        # Nobody is left to hear of a failure if the client has disconnected.
        change.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return await asyncio.shield(change)

    async def _decide_and_commit(
        self, decide: Callable[[MetadataImage], tuple[list[MetadataRecord], Answer]], validate_only: bool
    ) -> Answer:
        """Make and commit one decision at a time: the next one uses the image that results from this one."""
        async with self._lock:
            records, answer = decide(self.image)
            if records and not validate_only:
                await self._commit(records)
            return answer

    async def _commit(self, records: Sequence[MetadataRecord]) -> None:
        committed = await self.quorum.append(records)
        await self.publish(self.apply_committed(records, committed))

    def apply_committed(self, records: Sequence[MetadataRecord], committed: Committed) -> ImageDelta:
        """Apply committed records to the image."""
        delta = replay_records(self.image, records, offset=committed.offset, epoch=committed.epoch)
        self.image = delta.image
        return delta

    async def publish(self, delta: ImageDelta) -> None:
        for subscriber in self._subscribers:
            try:
                await subscriber(delta)
            except Exception:
                log.exception("a committed change of metadata (offset %d) could not be applied", delta.image.offset)
