"""This broker tells the controller in which directory each of its replicas is, and which it cannot use.

So others lead what is on a failed disk, while the broker goes on with its other disks. A replica that comes back to a
directory that the metadata does not know is not told of: it has to be in sync first. Start at `ReplicaPlaces`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from moldau.broker.cluster.controller_channel import ControllerChannel, ControllerUnavailableError
from moldau.controller.decisions.partition_changes import LOST, is_reserved
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.partition import Partition

__all__ = ["ReplicaPlaces"]

log = logging.getLogger(__name__)

ROUND_S: Final = 1.0
TIMEOUT_S: Final = 5.0


class ReplicaPlaces:
    """Used on the loop. `directories` are the ids of the log directories by path."""

    def __init__(
        self,
        broker: Broker,
        channel: ControllerChannel,
        broker_epoch: Callable[[], int],
        directories: Mapping[str, uuid.UUID],
    ) -> None:
        self._broker = broker
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._directories = {os.path.abspath(path): directory for path, directory in directories.items()}
        self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(ROUND_S)
            news = [(place, one) for one in self._broker.partitions if (place := self._news_of(one)) is not None]
            if news:
                try:
                    await self._tell(news)
                except ControllerUnavailableError as error:
                    log.warning("the places of replicas are told later: %s", error)
                except Exception:
                    log.exception("the places of replicas could not be told, will retry")

    def _news_of(self, partition: Partition) -> uuid.UUID | None:
        """The directory to tell of; `None` if the metadata knows enough."""
        image = self._broker.image.partition(*partition.topic_partition)
        me = self._broker.node_id
        if image is None or me not in image.replicas or len(image.directories) != len(image.replicas):
            return None
        known = image.directories[image.replicas.index(me)]
        if partition.offline_error is not None:
            return None if known == LOST else LOST
        if not is_reserved(known):
            return None
        return self._directories.get(os.path.abspath(os.path.dirname(partition.log.directory)))

    async def _tell(self, news: list[tuple[uuid.UUID, Partition]]) -> None:
        by_directory: dict[uuid.UUID, dict[uuid.UUID, list[int]]] = {}
        for directory, partition in news:
            topics = by_directory.setdefault(directory, {})
            topics.setdefault(partition.topic.topic_id, []).append(partition.index)
            if directory == LOST:
                log.warning("%s: others are to lead it, this broker cannot use it", partition.topic_partition)
        await self._channel.send(
            ApiKey.ASSIGN_REPLICAS_TO_DIRS,
            Message(
                broker_id=self._broker.node_id,
                broker_epoch=self._broker_epoch(),
                directories=[
                    Message(
                        id_=directory,
                        topics=[
                            Message(
                                topic_id=topic_id, partitions=[Message(partition_index=number) for number in numbers]
                            )
                            for topic_id, numbers in topics.items()
                        ],
                    )
                    for directory, topics in by_directory.items()
                ],
            ),
            timeout_s=TIMEOUT_S,
        )
