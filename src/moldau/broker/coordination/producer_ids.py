"""Producer ids, handed out from blocks that the controller sets aside for this broker. Start at `ProducerIds.next`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from moldau.core.ids import ProducerId

if TYPE_CHECKING:
    from moldau.controller.controller import Controller

__all__ = ["ProducerIds"]


class ProducerIds:
    """Used on the loop only. Ids of a block that was not used up before a restart are never given out."""

    def __init__(self, controller: Controller, node_id: int) -> None:
        self._controller = controller
        self._node_id = node_id
        self._block: range = range(0)
        self._refill = asyncio.Lock()

    async def next(self) -> ProducerId:
        """An id nobody else has or had."""
        async with self._refill:
            if not self._block:
                self._block = await self._controller.allocate_producer_ids(self._node_id)
            first, self._block = self._block[0], self._block[1:]
            return ProducerId(first)
