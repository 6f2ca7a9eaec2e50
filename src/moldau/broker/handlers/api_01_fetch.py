"""Fetch (1): batches are sent from the page cache to the socket unchanged.

    versions 4 to 18; sessions from 7, topic ids from 13

A fetch is answered at once if it has enough bytes or something to report, and parked otherwise. Reads that would have
to wait for the disk run in a thread; meanwhile only this connection waits. `broker.data.fetch` reads,
`broker.data.fetch_session` decides what a session leaves out of the reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from moldau.broker.context import Broker
from moldau.broker.data.cold_reads import ColdReads, is_resident, read_now, touch
from moldau.broker.data.fetch import Fetched, Reader, ReadResult, note_follower
from moldau.broker.data.fetch_session import FetchContext, FetchSessions, SessionError
from moldau.broker.data.parked_fetches import ParkedFetch, ParkedFetches
from moldau.broker.leaders import leader_endpoints
from moldau.broker.partition import Partition
from moldau.broker.replication.closest import RACK_AWARE, ReplicaSelector
from moldau.broker.replication.throttle import ReplicationThrottle
from moldau.core.config.sections import FetchSettings
from moldau.net.replies import FileReply, Handled, ReplySlot
from moldau.protocol.fetch import FIRST_WITH_TOPIC_IDS, FetchRequest, decode_fetch_request, encode_fetch_response

if TYPE_CHECKING:
    from moldau.log.partition_log import LogSlice
    from moldau.net.connection import Connection

__all__ = ["FetchHandler"]

log = logging.getLogger(__name__)

INLINE_BYTES = 16 * 1024
"""Slices up to this size are copied into the reply: one `send` is cheaper than three system calls for a `sendfile`."""


class _Call:
    """A fetch being answered."""

    __slots__ = (
        "connection",
        "context",
        "correlation_id",
        "is_cold",
        "min_bytes",
        "reader",
        "request",
        "slot",
        "started",
        "version",
    )

    def __init__(
        self, connection: Connection, version: int, correlation_id: int, request: FetchRequest, context: FetchContext
    ) -> None:
        self.connection = connection
        self.version = version
        self.correlation_id = correlation_id
        self.request = request
        self.min_bytes = request.min_bytes
        self.context = context
        self.reader: Reader
        self.slot: ReplySlot | None = None
        """The reserved place in the order of replies, if the request could not be answered at once."""
        self.is_cold = False
        """Whether its records had to be read from disk."""
        self.started = perf_counter()

    def wait(self) -> ReplySlot:
        if self.slot is None:
            self.slot = ReplySlot(self.connection, holds_back=True)
        return self.slot


class FetchHandler:
    """Handles Fetch frames for the router; one per broker."""

    def __init__(self, broker: Broker, parked: ParkedFetches, cold_reads: ColdReads, sessions: FetchSessions) -> None:
        self._broker = broker
        self._parked = parked
        self._cold_reads = cold_reads
        self._sessions = sessions
        self._stats = broker.stats.of(1)
        self._throttle = ReplicationThrottle(broker, "leader")

    def __call__(  # noqa: PLR0917  (positional, because it is called for every frame)
        self,
        connection: Connection,
        view: memoryview,
        start: int,
        body: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> Handled:
        request = decode_fetch_request(view, body, end, version)
        context = self._sessions.begin(request, version, self._broker.clock.monotonic_ms())
        if isinstance(context, SessionError):
            self._stats.errors[context.code] += 1
            refused: list[tuple[bytes, list[Fetched]]] = []
            parts, size = encode_fetch_response(version, correlation_id, refused, error_code=context.code)
            return _reply_of(parts, size)
        call = _Call(connection, version, correlation_id, request, context)
        topics = self._broker.partitions
        max_bytes = min(request.max_bytes, self._broker.config.section(FetchSettings).max_bytes)
        # A fetch cannot wait for more than may be sent.
        call.min_bytes = min(request.min_bytes, max(max_bytes, 0))
        by_key = topics.by_id if version >= FIRST_WITH_TOPIC_IDS else topics.by_name
        if request.replica_id >= 0:
            note_follower(self._broker, request, by_key)
        settings = self._broker.config.section(FetchSettings)
        selector = None
        if request.rack_id and settings.replica_selector in RACK_AWARE and request.replica_id < 0:
            selector = ReplicaSelector(self._broker, request.rack_id)
        throttle = self._throttle if request.replica_id >= 0 and self._throttle.is_on else None
        call.reader = Reader(request, version, context.wanted, by_key, max_bytes, selector=selector, throttle=throttle)
        if not call.reader.is_lookup_cheap():
            return self._read_in_thread(call)
        return self._answer_or_wait(call, call.reader.read())

    # Waiting

    def _answer_or_wait(self, call: _Call, result: ReadResult) -> Handled:
        """Answer if there is enough data or something to report, else wait for more."""
        request = call.request
        is_waiting = bool(result.fetched) or call.context.session is not None
        if result.size >= call.min_bytes or result.has_to_answer or request.max_wait_ms <= 0 or not is_waiting:
            return self._answer(call, result)
        return self._park(call, result)

    def _park(self, call: _Call, result: ReadResult) -> ReplySlot:
        latest = result

        def retry(changed: Collection[Partition] | None) -> bool:
            """Read again: the changed partitions, or all of them when the time is up."""
            nonlocal latest
            try:
                fetch.wait_at(call.reader.extend(call.context.newly_ready()))
                latest = call.reader.read() if changed is None else call.reader.read(latest, changed)
                if changed is not None and latest.size < call.min_bytes and not latest.has_to_answer:
                    return False
                self._complete(slot, self._answer(call, latest))
            except Exception:
                log.exception("a parked fetch failed")
                slot.abandon()
            return True

        slot = call.wait()
        fetch = ParkedFetch(call.reader.partitions, retry, call.context.session)
        slot.on_close = lambda: self._parked.leave(fetch)
        self._parked.park(fetch, call.request.max_wait_ms)
        return slot

    @staticmethod
    def _complete(slot: ReplySlot, answer: Handled) -> None:
        """Complete the slot, unless the answer is itself waiting in the same slot."""
        if not isinstance(answer, ReplySlot):
            slot.complete(answer)

    # Cold reads

    def _read_in_thread(self, call: _Call) -> ReplySlot:
        """Read everything into the page cache in a thread, then continue on the loop."""

        def read() -> ReadResult:
            result = call.reader.read()
            _touch_all(result.fetched)
            return result

        return self._continue_after(call, read, lambda result: self._answer_or_wait(call, result))

    def _warm_then_answer(self, call: _Call, result: ReadResult) -> ReplySlot:
        def read() -> ReadResult:
            _touch_all(result.fetched)
            return result

        return self._continue_after(call, read, lambda result: self._encode_reply(call, result))

    def _continue_after(
        self, call: _Call, read: Callable[[], ReadResult], then: Callable[[ReadResult], Handled]
    ) -> ReplySlot:
        slot = call.wait()
        call.is_cold = True

        def on_read(future: asyncio.Future[ReadResult]) -> None:
            if future.cancelled() or slot.connection.is_closed:
                return
            try:
                self._complete(slot, then(future.result()))
            except Exception:
                log.exception("a cold read failed")
                slot.abandon()

        self._cold_reads.run(read).add_done_callback(on_read)
        return slot

    # Answering

    def _answer(self, call: _Call, result: ReadResult) -> Handled:
        if _load_resident(result.fetched):
            return self._encode_reply(call, result)
        return self._warm_then_answer(call, result)

    def _encode_reply(self, call: _Call, result: ReadResult) -> bytes | FileReply:
        wanted = call.reader.wanted
        answered = call.context.answer(
            [(topic_key, fetched) for (topic_key, _), fetched in zip(wanted, result.fetched, strict=True)]
        )
        if call.context.session is not None:
            call.reader.watch_quiet(call.context.session, result)
        self._count(call, result)
        moved = {fetched.current_leader[0] for _, fetched in answered if fetched.current_leader is not None}
        endpoints = leader_endpoints(self._broker.image, moved, call.connection.listener_name) if moved else ()
        parts, size = encode_fetch_response(
            call.version,
            call.correlation_id,
            _by_topic(answered),
            session_id=call.context.session_id,
            node_endpoints=endpoints,
        )
        return _reply_of(parts, size, is_cold=call.is_cold)

    def _count(self, call: _Call, result: ReadResult) -> None:
        topics = self._broker.partitions
        by_key = topics.by_id if call.version >= FIRST_WITH_TOPIC_IDS else topics.by_name
        is_consumer = call.request.replica_id < 0
        for (topic_key, _), fetched in zip(call.reader.wanted, result.fetched, strict=True):
            if fetched.error_code:
                self._stats.errors[fetched.error_code] += 1
            topic = by_key.get(topic_key)
            if topic is not None:
                topic.stats.fetch_requests += 1
                if fetched.error_code:
                    topic.stats.failed_fetch_requests += 1
                if is_consumer:
                    topic.stats.bytes_out += fetched.records_length
                elif fetched.partition in topic.partitions:
                    self._note_replicated(topic.partitions[fetched.partition], call, fetched.records_length)
        if call.slot is not None:
            self._stats.recent_total_ms.append((perf_counter() - call.started) * 1000)

    def _note_replicated(self, partition: Partition, call: _Call, size: int) -> None:
        if call.request.replica_id not in partition.isr:
            self._throttle.note(partition, size)


def _touch_all(fetched: Iterable[Fetched]) -> None:
    for partition in fetched:
        if not isinstance(partition.records, bytes):
            touch(partition.records)


def _load_resident(fetched: Iterable[Fetched]) -> bool:
    """Copy small slices into memory and probe large ones; return whether none of that needed the disk."""
    for partition in fetched:
        records = partition.records
        if isinstance(records, bytes):
            continue
        if records.length > INLINE_BYTES:
            if not is_resident(records):
                return False
            continue
        copied = read_now(records)
        if copied is None:
            return False
        partition.records = copied
    return True


def _by_topic(answered: Sequence[tuple[bytes, Fetched]]) -> list[tuple[bytes, list[Fetched]]]:
    topics: dict[bytes, list[Fetched]] = {}
    for topic_key, fetched in answered:
        topics.setdefault(topic_key, []).append(fetched)
    return list(topics.items())


def _reply_of(parts: list[bytes | LogSlice], size: int, *, is_cold: bool = False) -> bytes | FileReply:
    """Return the reply as one byte string if everything is in memory already."""
    first = parts[0]
    if len(parts) == 1 and isinstance(first, bytes):
        return first
    return FileReply(list(parts), size, is_cold=is_cold)
