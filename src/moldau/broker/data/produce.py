"""Produce, the general path: any number of partitions, any kind of topic, and every reason to reject a batch.

A request becomes items, one for each partition. Items are checked, opened if the topic requires it
(`broker.data.batch_bodies`), appended in order, and answered once they are as durable as `acks` requires. The fast path
that most requests take is `broker.handlers.api_00_produce`. Start at `CarefulProduce.handle`.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from moldau.broker.context import Broker
from moldau.broker.data.batch_bodies import BodyOpening, Refusals
from moldau.broker.data.batch_rules import RefusedBatchError, checked_header, stamp_append_time
from moldau.broker.data.slow_appends import SlowAppends, failure_of, sleeps
from moldau.broker.leaders import leader_endpoints, missing_error
from moldau.broker.partition import NotLeaderError, Partition, Topic, when_all_committed, when_all_flushed
from moldau.core.errors import ErrorCode, MoldauError
from moldau.net.replies import CloseConnectionError, Handled, ReplySlot
from moldau.protocol.produce import (
    FIRST_WITH_TOPIC_IDS,
    ProducedPartition,
    ProduceRequest,
    encode_produce_response,
)
from moldau.protocol.record_batch import TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from moldau.broker.data.schema_rules import SchemaClaims
    from moldau.net.connection import Connection

__all__ = ["CarefulProduce", "LateProduce", "ProduceItem"]

log = logging.getLogger(__name__)

ADMIN_CLIENT_ID = b"__admin_client"
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_client_id_length = struct.Struct(">h").unpack_from


class ProduceItem:
    """One partition's part of a produce request, from its bytes to its outcome."""

    __slots__ = (
        "batch",
        "claims",
        "end_offset",
        "error",
        "header",
        "index",
        "is_appended",
        "is_body_wanted",
        "outcome",
        "partition",
        "topic",
        "topic_key",
    )

    def __init__(self, topic_key: bytes, topic: Topic | None, index: int) -> None:
        self.topic_key = topic_key
        self.topic = topic
        self.index = index
        self.partition: Partition | None = None
        self.batch: memoryview | bytearray = bytearray()
        self.header: tuple[int, ...] = ()
        self.is_body_wanted = False
        self.claims: Sequence[SchemaClaims] = ()
        """Schema ids that have to be looked up in the registry."""
        self.is_appended = False
        self.end_offset = 0
        """One past the batch's last offset, whether it was appended now or is a duplicate."""
        self.error: MoldauError | None = None
        """Why the append failed."""
        self.outcome: ProducedPartition | None = None

    def refuse(self, error: MoldauError) -> None:
        if isinstance(error, RefusedBatchError):
            self.outcome = ProducedPartition(
                self.index, error.error_code, record_errors=error.record_errors, error_message=str(error)
            )
        else:
            self.outcome = ProducedPartition(self.index, error.code, error_message=str(error))


@dataclass(slots=True)
class _Call:
    """A request being answered."""

    version: int
    correlation_id: int
    acks: int
    listener_name: str
    is_admin: bool
    now_ms: int
    transactional_id: bytes | None
    timeout_ms: int = 30_000
    """How long acks=all waits for other replicas."""
    items: list[ProduceItem] = field(default_factory=list)

    def pending(self) -> list[ProduceItem]:
        return [item for item in self.items if item.outcome is None]


class LateProduce:
    """A request with one batch that turned out not to be plain when the thread for slow appends processed it."""

    def __init__(
        self,
        partition: Partition,
        topic_key: bytes,
        batch: bytearray,
        header: tuple[int, ...],
        *,
        version: int,
        correlation_id: int,
        acks: int,
        now_ms: int,
    ) -> None:
        self.call = _Call(version, correlation_id, acks, "", False, now_ms, None)
        self._item = ProduceItem(topic_key, partition.topic, partition.index)
        self._item.partition, self._item.batch, self._item.header = partition, batch, header
        self.call.items.append(self._item)

    def append(self) -> None:
        """Append the batch; runs in the thread for slow appends."""
        _append_or_note_error(self._item, self.call)


class CarefulProduce:
    """The general produce path; one per broker."""

    def __init__(
        self,
        broker: Broker,
        loop: asyncio.AbstractEventLoop,
        slow_appends: SlowAppends,
    ) -> None:
        self._broker = broker
        self._loop = loop
        self._slow_appends = slow_appends
        self._bodies = BodyOpening(loop, broker.schema_ids)

    def handle(  # noqa: PLR0917
        self,
        connection: Connection,
        view: memoryview,
        start: int,
        request: ProduceRequest,
        version: int,
        correlation_id: int,
    ) -> Handled:
        transactional_id, acks, timeout_ms, topics = request
        is_admin = _client_id(view, start) == ADMIN_CLIENT_ID
        now_ms = self._broker.clock.now_ms()
        call = _Call(version, correlation_id, acks, connection.listener_name, is_admin, now_ms, transactional_id)
        call.timeout_ms = timeout_ms
        partitions = self._broker.partitions
        by_key = partitions.by_id if version >= FIRST_WITH_TOPIC_IDS else partitions.by_name
        for topic_key, batches in topics:
            topic = by_key.get(topic_key)
            for index, first, last in batches:
                item = ProduceItem(topic_key, topic, index)
                call.items.append(item)
                try:
                    _check(call, item, view, first, last)
                except RefusedBatchError as error:
                    self._refuse(item, error, last - first)
        _refuse_strange_transactions(call)
        return self._open_and_append(connection, call)

    def _open_and_append(self, connection: Connection, call: _Call) -> Handled:
        opening = call.pending()
        if not any(item.is_body_wanted for item in opening):
            return self._append_and_answer(connection, call)
        slot: ReplySlot | None = None

        def later(done: asyncio.Task[Refusals]) -> None:
            assert slot is not None
            self._bodies_opened(done, slot, call)

        refused = self._bodies.open(opening, call.now_ms, later)
        if refused is None:
            # Later requests on this connection wait, so that the order is kept.
            slot = ReplySlot(connection, holds_back=True)
            return slot
        self._refuse_all(refused)
        return self._append_and_answer(connection, call)

    def _bodies_opened(self, done: asyncio.Task[Refusals], slot: ReplySlot, call: _Call) -> None:
        if done.cancelled():
            return

        def answer() -> Handled:
            self._refuse_all(done.result())
            return self._append_and_answer(slot.connection, call, slot)

        _complete(slot, answer)

    def _refuse_all(self, refused: Refusals) -> None:
        for item, error in refused:
            self._refuse(item, error, len(item.batch))

    # Appending and answering

    def _append_and_answer(self, connection: Connection, call: _Call, slot: ReplySlot | None = None) -> Handled:
        """Append what was not refused; answers at once unless it has to wait for a disk.

        Whether a batch belongs to a transaction is checked last, so that it is still true when the batch is appended.
        """
        transactional = {item.partition: item for item in call.items if _is_transactional(item)}
        if not transactional or call.transactional_id is None:
            return self._append_all(connection, call, slot)
        waiting: ReplySlot | None = None

        def on_checked() -> None:
            assert waiting is not None
            _complete(waiting, lambda: self._append_all(connection, call, waiting))

        is_checked = self._broker.coordinators.transaction_checks.check_then(
            call.version,
            call.transactional_id.decode(errors="replace"),
            {partition: item.header for partition, item in transactional.items() if partition is not None},
            lambda partition, error: self._refuse(transactional[partition], error, 0),
            on_checked,
        )
        if is_checked:
            return self._append_all(connection, call, slot)
        for item in call.pending():
            item.batch = bytearray(item.batch)  # the frame is only valid during this call
        waiting = slot or ReplySlot(connection, holds_back=True)
        return waiting

    def _append_all(self, connection: Connection, call: _Call, slot: ReplySlot | None) -> Handled:
        items = call.pending()
        if self._slow_appends.is_on and items:
            return self._append_in_thread(connection, call, items, slot)
        sleeps_before, began = sleeps(), perf_counter()
        for item in items:
            _append_or_note_error(item, call)
        self._slow_appends.note(perf_counter() - began, sleeps_before)
        return self._answer(connection, call, items, slot)

    def _append_in_thread(
        self, connection: Connection, call: _Call, items: list[ProduceItem], slot: ReplySlot | None
    ) -> ReplySlot:
        """Append in the thread while the kernel blocks writers; later requests queue after this one."""
        waiting = slot or ReplySlot(connection, holds_back=self._slow_appends.is_full)
        for item in items:
            if isinstance(item.batch, memoryview):
                # The frame is only valid during this call.
                item.batch = bytearray(item.batch)

        def append() -> None:
            for item in items:
                _append_or_note_error(item, call)

        def answer() -> None:
            _complete(waiting, lambda: self._answer(connection, call, items, waiting))

        self._slow_appends.submit(append, answer, sum(len(item.batch) for item in items))
        return waiting

    def _answer(self, connection: Connection, call: _Call, items: list[ProduceItem], slot: ReplySlot | None) -> Handled:
        """Publish what was appended to readers, and answer once it is as durable as `acks` requires."""
        for item in items:
            if item.error is not None:
                self._refuse(item, item.error, 0)
            elif item.partition is not None and item.is_appended:
                item.partition.publish(item.header[12], len(item.batch))
        if call.acks == 0:
            _close_on_failure(call)
            return None
        uncommitted = [
            (item, item.partition, item.end_offset)
            for item in items
            if item.error is None and item.partition is not None and not item.partition.is_committed_at_once
        ]
        if not uncommitted:
            return self._reply(call)
        waiting = slot or ReplySlot(connection, holds_back=False)

        def answer(codes: Sequence[ErrorCode] = ()) -> None:
            for (item, _, _), code in zip(uncommitted, codes, strict=False):
                assert item.outcome is not None
                item.outcome = item.outcome._replace(error_code=code)
            _complete(waiting, lambda: self._reply(call))

        waits = [(partition, end_offset) for _, partition, end_offset in uncommitted]
        if call.acks == -1:
            when_all_committed(waits, self._loop.time() + call.timeout_ms / 1000, answer)
        else:
            when_all_flushed(waits, answer)
        return waiting

    def answer_late(self, slot: ReplySlot, late: LateProduce | None) -> None:
        """Answer a request that the thread for slow appends has processed."""
        if late is None:
            slot.abandon()
            return
        call = late.call
        call.listener_name = slot.connection.listener_name
        _complete(slot, lambda: self._answer(slot.connection, call, call.items, slot))

    def _refuse(self, item: ProduceItem, error: MoldauError, size: int) -> None:
        item.refuse(error)
        stats = self._broker.stats
        if isinstance(error, RefusedBatchError) and error.counter is not None:
            setattr(stats, error.counter, getattr(stats, error.counter) + 1)
        if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            stats.invalid_offset_or_sequence_records += 1
        if item.topic is not None:
            item.topic.stats.produce_requests += 1
            item.topic.stats.failed_produce_requests += 1
            if item.outcome is not None and item.outcome.error_code in _TOO_LARGE:
                item.topic.stats.bytes_rejected += size

    def _reply(self, call: _Call) -> bytes:
        topics: dict[bytes, list[ProducedPartition]] = {}
        moved: set[int] = set()
        for item in call.items:
            outcome = item.outcome
            assert outcome is not None
            if outcome.error_code:
                self._broker.stats.of(0).errors[outcome.error_code] += 1
            if outcome.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and item.partition is not None:
                moved.add(item.partition.leader_id)
                outcome = outcome._replace(current_leader=(item.partition.leader_id, item.partition.leader_epoch))
            topics.setdefault(item.topic_key, []).append(outcome)
        endpoints = leader_endpoints(self._broker.image, moved, call.listener_name) if moved else ()
        return encode_produce_response(
            call.version, call.correlation_id, list(topics.items()), node_endpoints=endpoints
        )

    def close(self) -> None:
        self._bodies.close()


def _check(call: _Call, item: ProduceItem, view: memoryview, first: int, last: int) -> None:
    """Run every check that is possible before appending, without opening the batch."""
    if not -1 <= call.acks <= 1:
        raise RefusedBatchError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks {call.acks} is invalid: use -1 (all), 0 or 1")
    if item.topic is None:
        by_id = call.version >= FIRST_WITH_TOPIC_IDS
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise RefusedBatchError(code, "this broker has no such topic")
    topic = item.topic
    partition = item.partition = topic.partitions.get(item.index)
    if partition is None:
        raise RefusedBatchError(missing_error(topic, item.index), f"{topic.name} has no partition {item.index} here")
    if topic.is_internal and not call.is_admin:
        raise RefusedBatchError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is an internal topic, which only brokers write to"
        )
    if partition.offline_error is not None:
        # Checked before the producer state is used, which an unopened log does not have.
        raise RefusedBatchError(ErrorCode.KAFKA_STORAGE_ERROR, str(partition.offline_error))
    if not partition.is_leader:
        raise RefusedBatchError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"{partition.topic_partition} has another leader; refresh the metadata and retry",
        )
    if call.acks == -1 and not partition.has_enough_replicas:
        raise RefusedBatchError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{partition.topic_partition} has {len(partition.isr)} replicas in sync, "
            f"min.insync.replicas is {topic.config.min_insync_replicas}",
        )
    rules = topic.rules
    item.header = checked_header(view, first, last, call.version, rules)
    item.batch = view[first:last]
    # A timestamp too far in the future is refused record by record, so the body has to be opened.
    item.is_body_wanted = rules.opens_bodies or item.header[8] > call.now_ms + rules.timestamp_after_max_ms


def _is_transactional(item: ProduceItem) -> bool:
    return item.outcome is None and bool(item.header[5] & TRANSACTIONAL_BIT)


def _refuse_strange_transactions(call: _Call) -> None:
    """Refuse transactional batches in a request without a transactional id, or from more than one producer."""
    transactional = [item for item in call.items if _is_transactional(item)]
    if transactional and call.transactional_id is None:
        code, why = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactional batches without a transactional id"
    elif len({item.header[9] for item in transactional}) > 1:
        code, why = ErrorCode.INVALID_PRODUCER_ID_MAPPING, "batches of more than one transactional producer"
    else:
        return
    for item in call.items:
        item.refuse(RefusedBatchError(code, why))


def _complete(slot: ReplySlot, answer: Callable[[], Handled]) -> None:
    """Complete the slot with the answer, unless that is itself waiting in the same slot."""
    try:
        answered = answer()
    except CloseConnectionError as error:
        slot.connection.close(str(error))
    except Exception:
        log.exception("a produce failed")
        slot.abandon()
    else:
        if not isinstance(answered, ReplySlot):
            slot.complete(answered)


def _append_or_note_error(item: ProduceItem, call: _Call) -> None:
    """Append one batch to its log, or store the error. Runs on the loop or in the thread for slow appends.

    If one batch fails, the others of the request are still appended, published and answered.
    """
    item.error = failure_of(_append, item, call)


def _append(item: ProduceItem, call: _Call) -> None:
    partition, header, now_ms = item.partition, item.header, call.now_ms
    assert partition is not None
    if not partition.is_leader:
        # Checked before the producer state is used, which only the leader has.
        raise NotLeaderError(f"{partition.topic_partition} moved to another broker")
    partition_log, uses_append_time = partition.log, partition.topic.rules.uses_append_time
    if header[5] & TRANSACTIONAL_BIT:
        # Imported here: a broker without transactions starts without this code.
        from moldau.broker.coordination.transaction_checks import check_first_sequence

        check_first_sequence(partition_log, header, call.version)
    duplicate = partition_log.producers.check(header) if header[9] >= 0 else None
    append_time_ms = -1
    if duplicate is not None:
        base_offset = duplicate.base_offset
        if uses_append_time:
            append_time_ms = duplicate.timestamp
    else:
        batch = memoryview(item.batch)
        if uses_append_time:
            append_time_ms = now_ms
            header = stamp_append_time(batch, header, now_ms)
        base_offset = partition.append(batch, header, now_ms)
        item.is_appended = True
    item.end_offset = base_offset + header[6] + 1
    item.outcome = ProducedPartition(item.index, 0, base_offset, append_time_ms, partition_log.log_start_offset)


def _close_on_failure(call: _Call) -> None:
    """Close the connection after a failure with acks=0, which has no reply, so that the client notices."""
    failed = [item.outcome for item in call.items if item.outcome is not None and item.outcome.error_code]
    if failed:
        raise CloseConnectionError(f"a produce with acks=0 failed: {failed[0].error_message}")


def _client_id(view: memoryview, start: int) -> bytes:
    (length,) = _client_id_length(view, start + 8)
    return bytes(view[start + 10 : start + 10 + max(length, 0)])
