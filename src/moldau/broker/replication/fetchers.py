"""Followers: one task for each broker that leads partitions of which this broker has a replica.

A task asks for all of them in one Fetch, appends what comes with the leader's offsets and epochs, and asks again; the
next fetch is the acknowledgement. Where the logs differ it truncates first (`replication.following`). Leaders wait for
data on their side, so an idle cluster costs two small requests a second and broker pair. Start at `Fetchers.follow`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from moldau.broker.replication.following import cut_for_divergence, restart_for_range
from moldau.broker.replication.throttle import ReplicationThrottle
from moldau.core.config.sections import ReplicationSettings
from moldau.core.errors import ErrorCode, MoldauError
from moldau.net.broker_client import BrokerClient, ReconnectBackoff
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.record_batch import BatchHeader
from moldau.protocol.records import crc_of, split_batches

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.partition import Partition
    from moldau.controller.image import MetadataImage

__all__ = ["Fetchers"]

log = logging.getLogger(__name__)

LATEST, EARLIEST = -1, -2
RESPONSE_OVERHEAD: Final = 8 * 1024 * 1024
RESTART_S: Final = 0.2
NO_EPOCH: Final = -1
QUIET: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID)
"""Errors that only say that one of the two brokers has newer metadata than the other."""

Address = tuple[str, int]


class CorruptBatchError(MoldauError):
    """A batch that arrived damaged; it is fetched again."""

    code = ErrorCode.CORRUPT_MESSAGE


class Fetchers:
    """All fetching tasks of this broker; used on the loop. `broker_epoch` gives the epoch of its registration."""

    def __init__(self, broker: Broker, listener_name: str, broker_epoch: Callable[[], int]) -> None:
        self._broker = broker
        self._listener_name = listener_name
        self._broker_epoch = broker_epoch
        self._by_leader: dict[int, LeaderFetcher] = {}
        self._throttle = ReplicationThrottle(broker, "follower")
        self._is_closed = False

    def follow(self, image: MetadataImage) -> None:
        """Fetch exactly the partitions that this broker follows, each from its leader."""
        if self._is_closed:
            return
        wanted: dict[int, dict[tuple[bytes, int], Partition]] = {}
        for partition in self._broker.partitions:
            leader = partition.leader_id
            if not partition.is_leader and leader >= 0 and partition.offline_error is None:
                key = (partition.topic.id_bytes, partition.index)
                wanted.setdefault(leader, {})[key] = partition
        for leader in list(self._by_leader.keys() - wanted.keys()):
            self._by_leader.pop(leader).close()
        for leader, partitions in wanted.items():
            self._follow_leader(image, leader, partitions)

    def _follow_leader(
        self, image: MetadataImage, leader: int, partitions: Mapping[tuple[bytes, int], Partition]
    ) -> None:
        registered = image.brokers.get(leader)
        endpoint = None if registered is None else registered.endpoints.get(self._listener_name)
        fetcher = self._by_leader.get(leader)
        if endpoint is None:
            if fetcher is not None:
                self._by_leader.pop(leader).close()
            return
        address = (endpoint.host, endpoint.port)
        if fetcher is not None and fetcher.address != address:
            self._by_leader.pop(leader).close()
            fetcher = None
        if fetcher is None:
            fetcher = self._by_leader[leader] = LeaderFetcher(
                self._broker, leader, address, self._broker_epoch, self._throttle
            )
        fetcher.follow(partitions)

    def lag(self) -> Iterable[tuple[Partition, int]]:
        """How many records each followed partition was behind its leader at the last fetch, for metrics."""
        for fetcher in self._by_leader.values():
            yield from fetcher.lag.items()

    def close(self) -> None:
        self._is_closed = True
        for fetcher in self._by_leader.values():
            fetcher.close()


class LeaderFetcher:
    """Fetches from one leader."""

    def __init__(
        self,
        broker: Broker,
        leader: int,
        address: Address,
        broker_epoch: Callable[[], int],
        throttle: ReplicationThrottle,
    ) -> None:
        self._throttle = throttle
        self.address = address
        self.lag: dict[Partition, int] = {}
        self._broker = broker
        self._leader = leader
        self._broker_epoch = broker_epoch
        settings = self._settings
        self._client = BrokerClient(
            *address,
            client_id=f"broker-{broker.node_id}-fetcher",
            request_timeout_s=settings.socket_timeout_ms / 1000,
            connect_timeout_s=2.0,
            response_limit_bytes=settings.response_max_bytes + RESPONSE_OVERHEAD + 100 * 1024 * 1024,
            backoff=ReconnectBackoff(0.02, settings.backoff_ms / 1000),
        )
        self._partitions: dict[tuple[bytes, int], Partition] = {}
        self._not_before: dict[Partition, float] = {}
        self._removed: dict[Partition, int] = {}
        """Partitions that the leader knows newer metadata of, with the epoch in which that was so."""
        self._changed = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    @property
    def _settings(self) -> ReplicationSettings:
        return self._broker.config.section(ReplicationSettings)

    def follow(self, partitions: Mapping[tuple[bytes, int], Partition]) -> None:
        self._partitions = dict(partitions)
        known = set(partitions.values())
        for table in (self._not_before, self._removed, self.lag):
            for gone in [one for one in table if one not in known]:
                del table[gone]
        self._changed.set()

    def close(self) -> None:
        self._task.cancel()
        self._client.close()

    # --- the loop ---------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            try:
                await self._round()
            except (OSError, MoldauError) as error:
                log.debug("fetching from broker %d at %s failed: %s", self._leader, self._client.address, error)
                await asyncio.sleep(RESTART_S)
            except Exception:
                log.exception("fetching from broker %d failed, will retry", self._leader)
                await asyncio.sleep(self._settings.backoff_ms / 1000)

    async def _round(self) -> None:
        now = asyncio.get_running_loop().time()
        is_throttled = self._throttle.is_on
        ready: dict[tuple[bytes, int], tuple[Partition, int]] = {}
        for key, partition in self._partitions.items():
            if self._removed.get(partition, NO_EPOCH) >= partition.leader_epoch:
                continue
            if is_throttled and self._is_held_back(partition):
                continue
            if self._not_before.get(partition, 0.0) <= now:
                ready[key] = (partition, partition.leader_epoch)
        if not ready:
            self._changed.clear()
            try:
                async with asyncio.timeout(RESTART_S):
                    await self._changed.wait()
            except TimeoutError:
                pass
            return
        response = await self._client.send(ApiKey.FETCH, self._request(ready))
        if response.error_code:
            raise CorruptBatchError(f"the fetch was refused with {response.error_code}")
        for topic in response.responses:
            for one in topic.partitions:
                found = ready.get((topic.topic_id.bytes, one.partition_index))
                if found is not None:
                    await self._take(*found, one)

    def _is_held_back(self, partition: Partition) -> bool:
        """Whether a replica that is behind has to wait, because its share is used up."""
        return bool(self.lag.get(partition, 1)) and self._throttle.holds_back(partition)

    def _request(self, ready: Mapping[tuple[bytes, int], tuple[Partition, int]]) -> Message:
        settings = self._settings
        topics: dict[bytes, list[Message]] = {}
        ids = {}
        for (topic_id, number), (partition, leader_epoch) in ready.items():
            ids[topic_id] = partition.topic.topic_id
            topics.setdefault(topic_id, []).append(
                Message(
                    partition=number,
                    current_leader_epoch=leader_epoch,
                    fetch_offset=partition.log.log_end_offset,
                    last_fetched_epoch=partition.log.last_record_epoch,
                    log_start_offset=partition.log.log_start_offset,
                    partition_max_bytes=settings.fetch_max_bytes,
                )
            )
        return Message(
            replica_state=Message(replica_id=self._broker.node_id, replica_epoch=self._broker_epoch()),
            max_wait_ms=settings.wait_max_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            topics=[Message(topic_id=ids[key], partitions=partitions) for key, partitions in topics.items()],
        )

    # --- what came --------------------------------------------------------------------------------------

    async def _take(self, partition: Partition, leader_epoch: int, one: Message) -> None:
        error = ErrorCode(one.error_code)
        try:
            if error is ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._restart(partition, leader_epoch)
            elif error is ErrorCode.FENCED_LEADER_EPOCH:
                self._removed[partition] = leader_epoch
            elif error is not ErrorCode.NONE:
                if error not in QUIET:
                    log.warning("%s: broker %d answers %s", partition.topic_partition, self._leader, error.name)
                self._back_off(partition, 0.1 if error in QUIET else None)
            elif one.diverging_epoch.epoch >= 0 or one.diverging_epoch.end_offset >= 0:
                await self._cut(partition, leader_epoch, one.diverging_epoch.epoch, one.diverging_epoch.end_offset)
            else:
                await self._append(partition, leader_epoch, one)
        except MoldauError as failure:
            log.error("%s cannot be replicated for now: %s", partition.topic_partition, failure)
            self._back_off(partition)

    def _back_off(self, partition: Partition, pause_s: float | None = None) -> None:
        pause_s = self._settings.backoff_ms / 1000 if pause_s is None else pause_s
        self._not_before[partition] = asyncio.get_running_loop().time() + pause_s

    async def _append(self, partition: Partition, leader_epoch: int, one: Message) -> None:
        data = bytearray(one.records or b"")
        end_offset = partition.log.log_end_offset
        batches: list[tuple[BatchHeader, memoryview]] = []
        for header, batch in split_batches(data):
            if header.last_offset < end_offset:
                continue
            if crc_of(batch) != header.crc:
                raise CorruptBatchError(f"the batch of offset {header.base_offset} arrived damaged")
            batches.append((header, batch))
        now_ms = self._broker.clock.now_ms()
        high_watermark, log_start = one.high_watermark, one.log_start_offset

        def append() -> None:
            if not _follows(partition, leader_epoch):
                return
            for header, batch in batches:
                partition.log.append_as_follower(batch, header, now_ms)

        if batches:
            await self._change(append, len(data))
        if not _follows(partition, leader_epoch):
            return
        if batches:
            stats = partition.topic.stats
            stats.replication_bytes_in += len(data)
            if self._broker.node_id not in partition.isr:
                self._throttle.note(partition, len(data))
        partition_log = partition.log
        self.lag[partition] = max(0, high_watermark - partition_log.log_end_offset)
        reached = min(high_watermark, partition_log.log_end_offset)
        if reached > partition_log.high_watermark:
            partition_log.high_watermark = reached
            partition.on_watermark()
        if partition_log.log_start_offset < log_start <= partition_log.high_watermark:
            await self._change(lambda: partition_log.advance_log_start(log_start), 0)

    async def _cut(self, partition: Partition, leader_epoch: int, epoch: int, end_offset: int) -> None:
        """Remove what the leader does not have."""
        offset = cut_for_divergence(partition.log, epoch, end_offset)
        if offset >= partition.log.log_end_offset:
            # Nothing to remove, although the leader knows none of our epochs: compare the ends.
            await self._restart(partition, leader_epoch)
            return
        log.info(
            "%s: truncating from %d to %d, where the log of broker %d differs",
            partition.topic_partition,
            partition.log.log_end_offset,
            offset,
            self._leader,
        )
        await self._truncate(partition, leader_epoch, lambda: partition.log.truncate_to(offset))

    async def _restart(self, partition: Partition, leader_epoch: int) -> None:
        """Find a common offset with a leader that has none of ours, or has lost some."""
        leader_end = await self._ask_offset(partition, leader_epoch, LATEST)
        leader_start = await self._ask_offset(partition, leader_epoch, EARLIEST)
        place = restart_for_range(partition.log.log_end_offset, leader_start=leader_start, leader_end=leader_end)
        if place.is_whole:
            log.warning(
                "%s: starting anew at %d, where the log of broker %d begins",
                partition.topic_partition,
                place.offset,
                self._leader,
            )
            change = lambda: partition.log.truncate_fully_and_start_at(place.offset)  # noqa: E731
        else:
            change = lambda: partition.log.truncate_to(place.offset)  # noqa: E731
        if place.is_whole or place.offset < partition.log.log_end_offset:
            await self._truncate(partition, leader_epoch, change)
        else:
            self._back_off(partition)

    async def _truncate(self, partition: Partition, leader_epoch: int, change: Callable[[], None]) -> None:
        def truncate() -> None:
            if _follows(partition, leader_epoch):
                change()

        await self._change(truncate, 0)

    async def _ask_offset(self, partition: Partition, leader_epoch: int, which: int) -> int:
        asked = Message(partition_index=partition.index, current_leader_epoch=leader_epoch, timestamp=which)
        request = Message(
            replica_id=self._broker.node_id,
            isolation_level=0,
            topics=[Message(name=partition.topic.name, partitions=[asked])],
            timeout_ms=30_000,
        )
        response = await self._client.send(ApiKey.LIST_OFFSETS, request)
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise CorruptBatchError(f"broker {self._leader} does not tell its offsets: {answer.error_code}")
        offset: int = answer.offset
        return offset

    async def _change(self, change: Callable[[], None], size: int) -> None:
        """Change a log as every append does: on the loop, or in the thread while the disk is slow."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish(error: MoldauError | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        self._broker.data_plane.slow_appends.run(change, finish, size)
        await done


def _follows(partition: Partition, leader_epoch: int) -> bool:
    """Whether this broker still has a replica, and follows in the epoch in which it asked."""
    is_follower = bool(partition.replicas) and not partition.is_leader
    return is_follower and partition.leader_epoch == leader_epoch and partition.offline_error is None
