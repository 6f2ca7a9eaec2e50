"""A broker whose disk has no room stands aside: it asks to be fenced, so that others lead, until there is room again.

Leading on it would refuse every record although its followers could take them; Apache Kafka's broker ends in that case.
It stays as long as it holds the only replica in sync of something it leads: reads go on, and nobody else could lead.
Start at `DiskRoom.stands_aside`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from moldau.broker.partition import Partition
    from moldau.controller.image import MetadataImage

__all__ = ["DiskRoom", "free_bytes"]

log = logging.getLogger(__name__)

TOO_LITTLE: Final = 1 << 20
ENOUGH: Final = 16 << 20
"""More than `TOO_LITTLE`, so that a broker does not come and go."""


def free_bytes(folder: str) -> int:
    """The room on the disk of a folder; plenty, if that cannot be told."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return ENOUGH
    return found.f_bavail * found.f_frsize


class DiskRoom:
    def __init__(self, node_id: int, free_bytes: Callable[[str], int] = free_bytes) -> None:
        self._node_id = node_id
        self._free_bytes = free_bytes
        self._is_aside = False

    def stands_aside(self, partitions: Iterable[Partition], image: MetadataImage) -> bool:
        """Whether this broker should lead nothing now; asked before each heartbeat."""
        led = [one for one in partitions if one.is_leader or self._is_aside]
        folders = {os.path.dirname(one.log.directory) for one in led}
        room = min((self._free_bytes(folder) for folder in folders), default=ENOUGH)
        if self._is_aside:
            self._is_aside = room < ENOUGH
            if not self._is_aside:
                log.info("there is room on the disk again: this broker may lead again")
        elif room < TOO_LITTLE and self._others_can_lead(led, image):
            self._is_aside = True
            log.error("the disk is nearly full (%d bytes are free): other brokers lead until there is room", room)
        return self._is_aside

    def _others_can_lead(self, led: Iterable[Partition], image: MetadataImage) -> bool:
        def is_ready(node_id: int) -> bool:
            broker = image.brokers.get(node_id)
            return node_id != self._node_id and broker is not None and broker.is_active

        return all(any(map(is_ready, one.isr)) for one in led)
