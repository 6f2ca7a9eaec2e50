"""Followers: one task for each broker that leads partitions of which this broker has a replica.

A task asks for all of them in one Fetch, appends what comes with the leader's offsets and epochs, and asks again; the
next fetch is the acknowledgement. Where the logs differ it truncates first (`replication.following`). Requests name
only what changed (`replication.follower_session`), and leaders wait for data on their side, so an idle cluster costs
two small requests a second and broker pair. Start at `Fetchers.follow`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from moldau.broker.replication.follower_session import FollowerSession
from moldau.broker.replication.following import cut_for_divergence, restart_for_range
from moldau.broker.replication.throttle import ReplicationThrottle
from moldau.core.config.sections import ReplicationSettings
from moldau.core.errors import ErrorCode, MoldauError
from moldau.net.broker_client import BrokerClient, ReconnectBackoff
from moldau.protocol.api import ApiKey
from moldau.protocol.fetch import FetchPartition, FetchRequest
from moldau.protocol.follower_fetch import (
    FollowerFetchResponse,
    LeaderAnswer,
    decode_follower_fetch,
    encode_follower_fetch,
)
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
SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)

Address = tuple[str, int]
Key = tuple[bytes, int]
"""Topic id and partition number."""


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
        wanted: dict[int, dict[Key, Partition]] = {}
        for partition in self._broker.partitions:
            leader = partition.leader_id
            if not partition.is_leader and leader >= 0 and partition.offline_error is None:
                key = (partition.topic.id_bytes, partition.index)
                wanted.setdefault(leader, {})[key] = partition
        for leader in list(self._by_leader.keys() - wanted.keys()):
            self._by_leader.pop(leader).close()
        for leader, partitions in wanted.items():
            self._follow_leader(image, leader, partitions)

    def _follow_leader(self, image: MetadataImage, leader: int, partitions: Mapping[Key, Partition]) -> None:
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
        self._partitions: dict[Key, Partition] = {}
        self._asked_in: dict[Key, int] = {}
        """The leader epoch in which each partition was last asked for."""
        self._not_before: dict[Key, float] = {}
        self._removed: dict[Key, int] = {}
        """Partitions that the leader knows newer metadata of, with the epoch in which that was so."""
        self._session = FollowerSession()
        self._session_epoch = NO_EPOCH
        """The broker epoch under which the session was begun."""
        self._changed = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    @property
    def _settings(self) -> ReplicationSettings:
        return self._broker.config.section(ReplicationSettings)

    def follow(self, partitions: Mapping[Key, Partition]) -> None:
        """Follow exactly these, in the leader epochs that they have now."""
        before, self._partitions = self._partitions, dict(partitions)
        gone = before.keys() - partitions.keys()
        for table in (self._not_before, self._removed, self._asked_in):
            for key in gone & table.keys():
                del table[key]
        for key in gone:
            self.lag.pop(before[key], None)
        self._session.touch(gone)
        self._session.touch(
            key
            for key, partition in partitions.items()
            if before.get(key) is not partition or self._asked_in.get(key) != partition.leader_epoch
        )
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
        self._end_pauses()
        if self._session_epoch != self._broker_epoch():
            self._session_epoch = self._broker_epoch()
            self._session.start_over(self._partitions)
        request = self._next_request()
        if request is None:
            self._changed.clear()
            try:
                async with asyncio.timeout(RESTART_S):
                    await self._changed.wait()
            except TimeoutError:
                pass
            return
        asked = self._partitions
        try:
            response = await self._send(request)
        except BaseException:
            # Whether the leader has read the request is not known.
            self._session.start_over(self._partitions)
            raise
        for answer in response.answers:
            key = (answer.topic_id, answer.partition)
            partition = asked.get(key)
            if partition is not None and self._partitions.get(key) is partition:
                await self._take(key, partition, self._asked_in.get(key, NO_EPOCH), answer)

    def _end_pauses(self) -> None:
        now = asyncio.get_running_loop().time()
        over = [key for key, until in self._not_before.items() if until <= now]
        for key in over:
            del self._not_before[key]
        self._session.touch(over)

    def _next_request(self) -> FetchRequest | None:
        settings = self._settings
        fetch_max_bytes = settings.fetch_max_bytes
        news = self._session.next_request(lambda key: self._position(key, fetch_max_bytes))
        if news is None:
            return None
        return FetchRequest(
            replica_id=self._broker.node_id,
            max_wait_ms=settings.wait_max_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            session_id=news.session_id,
            session_epoch=news.session_epoch,
            topics=news.topics,
            forgotten=news.forgotten,
            replica_epoch=self._session_epoch,
        )

    def _position(self, key: Key, max_bytes: int) -> FetchPartition | None:
        """Where to go on in a partition; `None` if it is not to be fetched now."""
        partition = self._partitions.get(key)
        if partition is None or key in self._not_before:
            return None
        leader_epoch = self._asked_in[key] = partition.leader_epoch
        if self._removed.get(key, NO_EPOCH) >= leader_epoch:
            return None
        partition_log = partition.log
        return FetchPartition(
            partition.index,
            leader_epoch,
            partition_log.log_end_offset,
            partition_log.last_record_epoch,
            partition_log.log_start_offset,
            max_bytes,
        )

    async def _send(self, request: FetchRequest) -> FollowerFetchResponse:
        response = await self._client.exchange(
            ApiKey.FETCH,
            lambda version: encode_follower_fetch(version, request),
            lambda answer: decode_follower_fetch(answer.body),
        )
        code = response.error_code
        if code in SESSION_ERRORS:
            # The leader has restarted or needed the room: a full fetch begins a new one.
            self._session.start_over(self._partitions)
        elif code:
            raise CorruptBatchError(f"the fetch was refused with {code}")
        else:
            self._session.on_response(response.session_id, ((one.topic_id, one.partition) for one in response.answers))
        return response

    # --- what came --------------------------------------------------------------------------------------

    async def _take(self, key: Key, partition: Partition, leader_epoch: int, one: LeaderAnswer) -> None:
        error = ErrorCode(one.error_code)
        try:
            if error is ErrorCode.OFFSET_OUT_OF_RANGE:
                await self._restart(key, partition, leader_epoch)
            elif error is ErrorCode.FENCED_LEADER_EPOCH:
                self._removed[key] = leader_epoch
            elif error is not ErrorCode.NONE:
                if error not in QUIET:
                    log.warning("%s: broker %d answers %s", partition.topic_partition, self._leader, error.name)
                self._back_off(key, 0.1 if error in QUIET else None)
            elif one.diverging_epoch is not None and max(one.diverging_epoch) >= 0:
                await self._cut(key, partition, leader_epoch, *one.diverging_epoch)
            else:
                await self._append(partition, leader_epoch, one)
                self._slow_down(key, partition, len(one.records))
        except MoldauError as failure:
            log.error("%s cannot be replicated for now: %s", partition.topic_partition, failure)
            self._back_off(key)

    def _slow_down(self, key: Key, partition: Partition, size: int) -> None:
        """Wait before asking for more, if this replica is not in sync and its share of the network is used up."""
        if size and self._throttle.is_on and self._broker.node_id not in partition.isr:
            self._throttle.note(partition, size)
            pause_ms = self._throttle.pause_ms(partition)
            if pause_ms:
                self._back_off(key, pause_ms / 1000)

    def _back_off(self, key: Key, pause_s: float | None = None) -> None:
        pause_s = self._settings.backoff_ms / 1000 if pause_s is None else pause_s
        self._not_before[key] = asyncio.get_running_loop().time() + pause_s

    async def _append(self, partition: Partition, leader_epoch: int, one: LeaderAnswer) -> None:
        data = one.records
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
        partition_log = partition.log
        self.lag[partition] = max(0, high_watermark - partition_log.log_end_offset)
        reached = min(high_watermark, partition_log.log_end_offset)
        if reached > partition_log.high_watermark:
            partition_log.high_watermark = reached
            partition.on_watermark()
        if partition_log.log_start_offset < log_start <= partition_log.high_watermark:
            await self._change(lambda: partition_log.advance_log_start(log_start), 0)

    async def _cut(self, key: Key, partition: Partition, leader_epoch: int, epoch: int, end_offset: int) -> None:
        """Remove what the leader does not have."""
        offset = cut_for_divergence(partition.log, epoch, end_offset)
        if offset >= partition.log.log_end_offset:
            # Nothing to remove, although the leader knows none of our epochs: compare the ends.
            await self._restart(key, partition, leader_epoch)
            return
        log.info(
            "%s: truncating from %d to %d, where the log of broker %d differs",
            partition.topic_partition,
            partition.log.log_end_offset,
            offset,
            self._leader,
        )
        await self._truncate(partition, leader_epoch, lambda: partition.log.truncate_to(offset))

    async def _restart(self, key: Key, partition: Partition, leader_epoch: int) -> None:
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
            self._back_off(key)

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
            raise CorruptBatchError(f"broker {self._leader} refused to list its offsets: error {answer.error_code}")
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
