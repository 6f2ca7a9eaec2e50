"""The components of the data path, created together: parked fetches, syncs, cold reads, and the router.

It only creates and closes them; it has no logic of its own. Start at `DataPlane`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from moldau.broker.context import Broker
from moldau.broker.coordination.producer_ids import ProducerIds
from moldau.broker.data.cold_reads import ColdReads
from moldau.broker.data.fetch_session import FetchSessions
from moldau.broker.data.group_commit import GroupCommit
from moldau.broker.data.parked_fetches import ParkedFetches
from moldau.broker.data.produce import CarefulProduce
from moldau.broker.data.slow_appends import SlowAppends
from moldau.broker.handlers.api_00_produce import ProduceHandler
from moldau.broker.handlers.api_01_fetch import FetchHandler
from moldau.broker.router import Router
from moldau.core.config.sections import FetchSettings, StorageSettings

__all__ = ["DataPlane"]


class DataPlane:
    """The data path of a broker, created on its loop. `router.handle` is passed to a `net.server.Server`."""

    def __init__(
        self, broker: Broker, loop: asyncio.AbstractEventLoop, on_fatal: Callable[[BaseException], None]
    ) -> None:
        self.parked = ParkedFetches(loop)
        self.group_commit = GroupCommit(loop, on_fatal)
        self.cold_reads = ColdReads(loop)
        self.sessions = FetchSessions(broker.config.section(FetchSettings).session_cache_slots)
        storage = broker.config.section(StorageSettings)
        self.slow_appends = SlowAppends(loop, is_always_on=storage.is_append_thread_always_on)
        self.produce = CarefulProduce(broker, loop, self.slow_appends)
        self.router = Router(
            broker,
            produce=ProduceHandler(broker, self.slow_appends, self.produce, loop),
            fetch=FetchHandler(broker, self.parked, self.cold_reads, self.sessions),
        )
        broker.data_plane = self
        broker.producer_ids = ProducerIds(broker.controller, broker.node_id)
        events = broker.partitions.events
        events.wake_readers, events.flush_then = self.parked.mark, self.group_commit.flush_then
        events.call_at = loop.call_at

    async def close(self) -> None:
        """Finish the work queued in threads, then end the threads."""
        self.parked.close()
        await self.slow_appends.finish()
        await asyncio.get_running_loop().run_in_executor(None, self._end_threads)

    def _end_threads(self) -> None:
        self.produce.close()
        self.slow_appends.close()
        self.group_commit.close()
        self.cold_reads.close()
