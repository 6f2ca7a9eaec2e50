"""Opening a batch: what only its records can tell, and packing them anew in the topic's codec.

For compacted topics, recompression, schema ids, lowered bounds on timestamps and `moldau.validate.records`; all other
batches are appended unopened. Pure but slow, so `broker.body_opening` runs it on a thread. Start at `opened`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from moldau.broker.batch_rules import BatchRules, RefusedBatchError, record_errors
from moldau.broker.schema_rules import SchemaClaims, SchemaRules, claims_of
from moldau.core.errors import ErrorCode
from moldau.protocol.record_batch import BatchHeader
from moldau.protocol.records import InvalidRecordError, Record, encode_batch, validated_records

__all__ = ["OpenedBatch", "opened"]


class OpenedBatch(NamedTuple):
    batch: bytearray
    """What to append: the same bytes, or new ones in the topic's codec."""
    claims: Sequence[SchemaClaims] = ()
    """The schema ids in it, where the topic has them checked; that is still to be done."""


def opened(
    batch: bytearray,
    fields: tuple[int, ...],
    rules: BatchRules,
    now_ms: int,
    schema_rules: SchemaRules | None = None,
) -> OpenedBatch:
    """Check the records of one batch; raises `RefusedBatchError`."""
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
    return OpenedBatch(_recompressed(records, header, rules), claims)


def _check_timestamps(records: Sequence[Record], header: BatchHeader, rules: BatchRules, now_ms: int) -> None:
    oldest = now_ms - rules.timestamp_before_max_ms - header.base_timestamp
    newest = now_ms + rules.timestamp_after_max_ms - header.base_timestamp
    no_timestamp = -1 - header.base_timestamp

    def is_outside(record: Record) -> bool:
        delta = record.timestamp_delta
        return not oldest <= delta <= newest and delta != no_timestamp

    _refuse(records, is_outside, ErrorCode.INVALID_TIMESTAMP, "a timestamp outside of what the topic allows")
    if header.max_timestamp > now_ms + rules.timestamp_after_max_ms:
        raise RefusedBatchError(
            ErrorCode.INVALID_TIMESTAMP, f"the newest timestamp, {header.max_timestamp}, is too far ahead of {now_ms}"
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


def _recompressed(records: Sequence[Record], header: BatchHeader, rules: BatchRules) -> bytearray:
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
            f"the batch has {len(batch)} bytes in the topic's codec, max.message.bytes is {rules.max_message_bytes}",
        )
    return bytearray(batch)
