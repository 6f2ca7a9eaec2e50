"""Produce (0): batches are checked by their headers, given an offset and written unchanged.

    versions 3 to 13; 0 to 2 are announced but close the connection, because only magic 2 is accepted

Nearly every request takes the fast path, `_append_plain`: one batch for a topic without special settings; where there
are other replicas, `_append_shared` waits for them. While a
thread appends instead of the loop (`broker.data.slow_appends`), that becomes `_append_plain_later`. The general path,
`broker.data.produce`, does the same for any number of partitions and for topics that need bodies opened or the broker's
time in the batch. All of them append, publish and wait for the commit as `broker.partition` describes; the checks are
in `broker.data.batch_rules`.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from moldau.broker.context import Broker
from moldau.broker.data.batch_rules import BatchRules, checked_header
from moldau.broker.data.produce import CarefulProduce, LateProduce
from moldau.broker.data.slow_appends import LARGE_BYTES, SlowAppends, sleeps
from moldau.broker.partition import Partition, when_all_flushed
from moldau.core.errors import MoldauError
from moldau.log.errors import StorageError
from moldau.net.replies import Handled, ReplySlot
from moldau.protocol.produce import (
    FIRST_WITH_TOPIC_IDS,
    OneBatch,
    decode_one_batch,
    decode_produce_request,
    timeout_of,
)
from moldau.protocol.record_batch import TRANSACTIONAL_BIT

if TYPE_CHECKING:
    import asyncio

    from moldau.net.connection import Connection

__all__ = ["ProduceHandler"]

FIRST_WITH_PREPARED_REPLY = 5
_NO_OFFSET = bytes(8)
SPECIAL: Final = b""
"""No answer: the general path has to look at the request."""


class ProduceHandler:
    """Handles Produce frames for the router; one per broker."""

    def __init__(
        self,
        broker: Broker,
        slow_appends: SlowAppends,
        careful: CarefulProduce,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._partitions = broker.partitions
        self._now_ms = broker.clock.now_ms
        self._time_s = loop.time
        self._careful = careful
        self._slow_appends = slow_appends
        slow_appends.on_switch = self._switch
        self._switch(slow_appends.is_on)

    def _switch(self, is_slow: bool) -> None:
        """Disable the fast path while a thread appends: with empty tables it finds no topic."""
        self._by_name = {} if is_slow else self._partitions.by_name
        self._by_id = {} if is_slow else self._partitions.by_id

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
        one = decode_one_batch(view, body, end, version)
        if one is not None and version >= FIRST_WITH_PREPARED_REPLY:
            acks, name, index, first, last = one
            topic = (self._by_id if version >= FIRST_WITH_TOPIC_IDS else self._by_name).get(name)
            if topic is not None:
                partition = topic.partitions.get(index)
                if partition is not None and partition.is_plain:
                    base_offset = self._append_plain(topic.rules, partition, view, first, last, version, acks)
                    if base_offset >= 0:
                        if not acks:
                            return None
                        prepared = topic.replies.get(version) or topic.reply(version)
                        log = partition.log
                        reply = prepared.pack(
                            prepared.size,
                            correlation_id,
                            prepared.prefix,
                            index,
                            0,
                            base_offset,
                            -1,
                            log.log_start_offset,
                            prepared.suffix,
                        )
                        if partition.is_committed_at_once:
                            return reply
                        slot = ReplySlot(connection, holds_back=False)
                        when_all_flushed([(partition, log.log_end_offset)], lambda: slot.complete(reply))
                        return slot
                elif partition is not None and partition.is_plain_shared:
                    timeout_ms = timeout_of(view, body, version)
                    answer = self._append_shared(connection, partition, view, one, version, correlation_id, timeout_ms)
                    if answer is not SPECIAL:
                        return answer
            elif self._slow_appends.is_on:
                later = self._append_plain_later(connection, view, one, version, correlation_id)
                if later is not None:
                    return later
        request = decode_produce_request(view, body, end, version)
        return self._careful.handle(connection, view, start, request, version, correlation_id)

    def _append_shared(  # noqa: PLR0917
        self,
        connection: Connection,
        partition: Partition,
        view: memoryview,
        one: OneBatch,
        version: int,
        correlation_id: int,
        timeout_ms: int,
    ) -> Handled:
        """The short way on a partition with other replicas; `SPECIAL` sends the request to the general path."""
        acks, _, index, first, last = one
        if acks == -1 and not partition.has_enough_replicas:
            return SPECIAL
        topic = partition.topic
        base_offset = self._append_plain(topic.rules, partition, view, first, last, version, acks)
        if base_offset < 0:
            return SPECIAL
        if not acks:
            return None
        prepared = topic.replies.get(version) or topic.reply(version)
        log = partition.log
        slot = ReplySlot(connection, holds_back=False)

        def answer(code: int = 0) -> None:
            slot.complete(
                prepared.pack(
                    prepared.size,
                    correlation_id,
                    prepared.prefix,
                    index,
                    code,
                    base_offset,
                    -1,
                    log.log_start_offset,
                    prepared.suffix,
                )
            )

        if acks == -1:
            partition.when_committed(log.log_end_offset, self._time_s() + timeout_ms / 1000, answer)
        else:
            when_all_flushed([(partition, log.log_end_offset)], answer)
        return slot

    def _append_plain(  # noqa: PLR0917
        self, rules: BatchRules, partition: Partition, view: memoryview, first: int, last: int, version: int, acks: int
    ) -> int:
        """Append and publish one batch if nothing about it is special; -1 sends it to the general path."""
        now_ms = self._now_ms()
        try:
            header = checked_header(view, first, last, version, rules)
            if (
                header[8] > now_ms + rules.timestamp_after_max_ms
                or header[5] & TRANSACTIONAL_BIT
                or not -1 <= acks <= 1
            ):
                return -1
            log = partition.log
            if header[9] >= 0 and log.producers.check(header) is not None:
                return -1
            # `Partition.append`, inlined: a plain partition is led by this broker.
            if last - first < LARGE_BYTES:
                base_offset = log.append(view[first:last], header, partition.leader_epoch, now_ms)
            else:
                sleeps_before, began = sleeps(), perf_counter()
                base_offset = log.append(view[first:last], header, partition.leader_epoch, now_ms)
                self._slow_appends.note(perf_counter() - began, sleeps_before)
        except StorageError:
            # The offset was written into the batch before the disk failed; restore the batch for the general path.
            view[first : first + 8] = _NO_OFFSET
            return -1
        except MoldauError:
            return -1
        if not partition.is_alone:
            partition.publish(header[12], last - first)
            return base_offset
        # `Partition.publish`, inlined: there are no replicas to wait for. Calling both methods would add two per cent
        # to a small request; a test checks that all paths leave the same result.
        log.high_watermark = log.log_end_offset
        if partition.waiting:
            partition.events.wake_readers(partition)
        stats = partition.topic.stats
        stats.produce_requests += 1
        stats.messages_in += header[12]
        stats.bytes_in += last - first
        return base_offset

    def _append_plain_later(
        self,
        connection: Connection,
        view: memoryview,
        one: tuple[int, bytes, int, int, int],
        version: int,
        correlation_id: int,
    ) -> ReplySlot | None:
        """Like `_append_plain`, in the thread for slow appends; `None` sends the request to the general path."""
        acks, name, index, first, last = one
        topic = (self._partitions.by_id if version >= FIRST_WITH_TOPIC_IDS else self._partitions.by_name).get(name)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None or not partition.is_plain or acks not in (-1, 1):
            return None
        now_ms = self._now_ms()
        try:
            header = checked_header(view, first, last, version, topic.rules)
        except MoldauError:
            return None
        if header[8] > now_ms + topic.rules.timestamp_after_max_ms or header[5] & TRANSACTIONAL_BIT:
            return None
        batch = bytearray(view[first:last])  # the frame is only valid during this call
        slot = ReplySlot(connection, holds_back=self._slow_appends.is_full)
        base_offset = -1
        refused: LateProduce | None = None

        def append() -> None:
            nonlocal base_offset, refused
            try:
                if partition.is_plain and (header[9] < 0 or partition.log.producers.check(header) is None):
                    base_offset = partition.append(batch, header, now_ms)
                    return
            except StorageError:
                batch[:8] = _NO_OFFSET
            except MoldauError:
                pass
            # Something is special after all; handle it in this thread, so that the order is kept.
            refused = LateProduce(
                partition, name, batch, header, version=version, correlation_id=correlation_id, acks=acks, now_ms=now_ms
            )
            refused.append()

        def answer() -> None:
            if base_offset < 0:
                self._careful.answer_late(slot, refused)
                return
            log = partition.log
            partition.publish(header[12], len(batch))
            prepared = topic.replies.get(version) or topic.reply(version)
            reply = prepared.pack(
                prepared.size,
                correlation_id,
                prepared.prefix,
                index,
                0,
                base_offset,
                -1,
                log.log_start_offset,
                prepared.suffix,
            )
            when_all_flushed([(partition, base_offset + header[6] + 1)], lambda: slot.complete(reply))

        self._slow_appends.submit(append, answer, len(batch))
        return slot
