"""Opening batches: checks that need the records themselves, and recompression with the topic's codec.

For compacted topics, recompression, schema ids, lowered bounds on timestamps and `moldau.validate.records`; all other
batches are appended unopened. `open_batch` opens one batch; it is pure but slow, so `BodyOpening` opens small batches
inline and others in a thread. Schema registry requests, which may be slow or fail, have their own thread, so that
batches that need none never wait for the registry. Start at `BodyOpening.open`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from moldau.broker.data.batch_rules import BatchRules, RefusedBatchError, record_errors
from moldau.broker.data.schema_rules import SchemaClaims, SchemaIds, SchemaRules, claims_of, look_up, settle, verdict
from moldau.core.errors import ErrorCode, MoldauError
from moldau.protocol.record_batch import CODEC_MASK, HEADER, BatchHeader

if TYPE_CHECKING:
    from moldau.broker.data.produce import ProduceItem
    from moldau.protocol.records import Record

__all__ = ["BodyOpening", "OpenedBatch", "Refusals", "open_batch"]

INLINE_BODY_BYTES = 8 * 1024
"""Uncompressed bodies up to this size are opened inline: a thread would cost more."""

BODY_THREADS = 2

Refusals: TypeAlias = "list[tuple[ProduceItem, MoldauError]]"


class BodyOpening:
    """Opens the batches of produce requests; one per broker, called on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, schema_ids: SchemaIds) -> None:
        self._loop = loop
        self._schema_ids = schema_ids
        self._body_threads: ThreadPoolExecutor | None = None
        self._question_thread: ThreadPoolExecutor | None = None
        self._under_way: set[asyncio.Task[Refusals]] = set()

    def open(
        self, items: Sequence[ProduceItem], now_ms: int, later: Callable[[asyncio.Task[Refusals]], None]
    ) -> Refusals | None:
        """Open the batches that need it, and return the refused items; `None` if `later` will be called with them.

        Waiting items get a copy of their bytes, since the frame is only valid during this call.
        """
        if any(_wants_thread(item) for item in items):
            self._begin(self._open_in_thread(_own_batches(items), now_ms), later)
            return None
        refused = _open_all(items, now_ms, self._schema_ids)
        if any(item.claims for item in items):
            self._begin(self._check_schema_ids(_own_batches(items), refused), later)
            return None
        return refused

    def _begin(self, opening: Coroutine[Any, Any, Refusals], later: Callable[[asyncio.Task[Refusals]], None]) -> None:
        task = self._loop.create_task(opening)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        task.add_done_callback(later)

    async def _open_in_thread(self, items: Sequence[ProduceItem], now_ms: int) -> Refusals:
        if self._body_threads is None:
            self._body_threads = ThreadPoolExecutor(BODY_THREADS, "moldau-batch-bodies")
        refused = await self._loop.run_in_executor(self._body_threads, _open_all, items, now_ms, self._schema_ids)
        return await self._check_schema_ids(items, refused)

    async def _check_schema_ids(self, items: Sequence[ProduceItem], refused: Refusals) -> Refusals:
        asking = [item for item in items if item.claims]
        if not asking:
            return refused
        if self._question_thread is None:
            self._question_thread = ThreadPoolExecutor(1, "moldau-schema-ids")
        return refused + await self._loop.run_in_executor(self._question_thread, _settle_all, asking, self._schema_ids)

    def close(self) -> None:
        for threads in (self._body_threads, self._question_thread):
            if threads is not None:
                threads.shutdown(wait=True)


def _wants_thread(item: ProduceItem) -> bool:
    if not item.is_body_wanted or item.topic is None:
        return False
    is_compressed = item.header[5] & CODEC_MASK or item.topic.rules.codec
    return bool(is_compressed) or len(item.batch) > INLINE_BODY_BYTES


def _own_batches(items: Sequence[ProduceItem]) -> Sequence[ProduceItem]:
    """Copy the bytes of items that have to wait: a frame is only valid during one call."""
    for item in items:
        if isinstance(item.batch, memoryview):
            item.batch = bytearray(item.batch)
    return items


def _open_all(items: Sequence[ProduceItem], now_ms: int, schema_ids: SchemaIds) -> Refusals:
    """Open each body that needs it, replace recompressed batches, and return the refused items."""
    refused: Refusals = []
    for item in items:
        if not item.is_body_wanted or item.topic is None:
            continue
        try:
            batch = bytearray(item.batch)
            item.batch, claims = open_batch(batch, item.header, item.topic.rules, now_ms, item.topic.schema_rules)
            if item.batch is not batch:
                item.header = HEADER.unpack_from(item.batch)
                item.topic.stats.produce_conversions += 1
            if claims:
                _judge(item, claims, schema_ids)
        except RefusedBatchError as error:
            refused.append((item, error))
    return refused


def _judge(item: ProduceItem, claims: Sequence[SchemaClaims], schema_ids: SchemaIds) -> None:
    """Check schema ids if cached answers are sufficient; otherwise the item keeps its claims."""
    known, questions = look_up(claims, schema_ids)
    if questions:
        item.claims = claims
    else:
        verdict(claims, item.header[12], known)


def _settle_all(items: Sequence[ProduceItem], schema_ids: SchemaIds) -> Refusals:
    refused: Refusals = []
    for item in items:
        try:
            settle(item.claims, item.header[12], schema_ids)
        except MoldauError as error:
            refused.append((item, error))
        item.claims = ()
    return refused


# --- one batch ----------------------------------------------------------------------------------------------


class OpenedBatch(NamedTuple):
    batch: bytearray
    """The batch to append: the same bytes, or new ones in the topic's codec."""
    claims: Sequence[SchemaClaims] = ()
    """The schema ids in the batch that are still to be checked, if the topic requires that."""


def open_batch(
    batch: bytearray,
    fields: tuple[int, ...],
    rules: BatchRules,
    now_ms: int,
    schema_rules: SchemaRules | None = None,
) -> OpenedBatch:
    """Check the records of one batch; raises `RefusedBatchError`."""
    # Imported here: codecs import their libraries, which most brokers never need.
    from moldau.protocol.records import InvalidRecordError, validated_records

    header = BatchHeader._make(fields)
    try:
        records = validated_records(batch, header)
    except InvalidRecordError as error:
        raise RefusedBatchError(ErrorCode.INVALID_RECORD, str(error)) from None
    if rules.requires_keys:
        _refuse(
            records,
            lambda record: record.key is None,
            ErrorCode.INVALID_RECORD,
            "no key, which a compacted topic needs",
            counter="no_key_compacted_records",
        )
    if not rules.uses_append_time:
        _check_timestamps(records, header, rules, now_ms)
    claims = () if schema_rules is None else claims_of(records, schema_rules)
    if rules.codec is None or rules.codec == header.codec:
        return OpenedBatch(batch, claims)
    return OpenedBatch(_recompress(records, header, rules), claims)


def _check_timestamps(records: Sequence[Record], header: BatchHeader, rules: BatchRules, now_ms: int) -> None:
    oldest = now_ms - rules.timestamp_before_max_ms - header.base_timestamp
    newest = now_ms + rules.timestamp_after_max_ms - header.base_timestamp
    no_timestamp = -1 - header.base_timestamp

    def is_outside(record: Record) -> bool:
        delta = record.timestamp_delta
        return not oldest <= delta <= newest and delta != no_timestamp

    _refuse(
        records, is_outside, ErrorCode.INVALID_TIMESTAMP, "the timestamp is outside of the range that the topic allows"
    )
    if header.max_timestamp > now_ms + rules.timestamp_after_max_ms:
        raise RefusedBatchError(
            ErrorCode.INVALID_TIMESTAMP,
            f"the newest timestamp, {header.max_timestamp}, is too far ahead of the broker's clock, {now_ms}",
        )


def _refuse(
    records: Sequence[Record],
    is_wrong: Callable[[Record], bool],
    code: ErrorCode,
    why: str,
    *,
    counter: str | None = None,
) -> None:
    wrong = [index for index, record in enumerate(records) if is_wrong(record)]
    if wrong:
        errors = record_errors(dict.fromkeys(wrong, why))
        message = f"{len(wrong)} of {len(records)} records refused: {why}"
        raise RefusedBatchError(code, message, errors, counter=counter)


def _recompress(records: Sequence[Record], header: BatchHeader, rules: BatchRules) -> bytearray:
    from moldau.protocol.records import encode_batch

    batch = encode_batch(
        records,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        codec=rules.codec or 0,
        level=rules.level,
        attributes=header.attributes,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    if len(batch) > rules.max_message_bytes:
        raise RefusedBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"recompressed for the topic, the batch has {len(batch)} bytes, more than "
            f"max.message.bytes={rules.max_message_bytes}",
        )
    return bytearray(batch)
