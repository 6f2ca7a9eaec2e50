"""The checks that a batch must pass before it is appended to a topic.

They use only the 61 bytes of the header; `broker.data.batch_bodies` opens the batch if a topic requires more. Pure.
Start at `checked_header`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import INT64_MAX
from moldau.log.config import LogConfig
from moldau.protocol.produce import RecordError
from moldau.protocol.record_batch import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
)

__all__ = ["BatchRules", "RefusedBatchError", "checked_header", "record_errors", "stamp_append_time"]

ZSTD: Final = 4
FIRST_WITH_ZSTD: Final = 7
MAGIC_OFFSET: Final = 16
_ODD_ATTRIBUTES: Final = ~0x17
"""Attribute bits other than codec and the transactional bit need further checks."""

WORDED_ERRORS: Final = 100
"""With more refused records, only their positions are returned, without messages, which would repeat."""

_unpack_header = HEADER.unpack_from


class RefusedBatchError(MoldauError):
    """A batch that is not appended, with the error code and message for its producer."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        record_errors: Sequence[RecordError] = (),
        *,
        counter: str | None = None,
    ) -> None:
        super().__init__(message)
        self.error_code = code
        self.record_errors = record_errors
        self.counter = counter
        """The field of `BrokerStats` that counts refusals of this kind."""


def record_errors(complaints: Mapping[int, str]) -> list[RecordError]:
    """Return an error for every refused record, by position, so that the producer can send the others."""
    return [
        RecordError(place, f"record {place}: {complaints[place]}" if told < WORDED_ERRORS else None)
        for told, place in enumerate(sorted(complaints))
    ]


@dataclass(frozen=True, slots=True)
class BatchRules:
    """A topic's configuration in the form that the checks use."""

    max_message_bytes: int
    segment_bytes: int
    timestamp_after_max_ms: int
    timestamp_before_max_ms: int
    uses_append_time: bool
    requires_keys: bool
    opens_bodies: bool
    codec: int | None
    """The codec to recompress to; `None` keeps the producer's."""
    level: int | None
    may_flush: bool
    """Whether an acknowledgement may have to wait for the disk."""
    is_header_enough: bool
    """Whether a batch is appended unchanged once its header has passed the checks."""

    @classmethod
    def of(cls, config: LogConfig) -> BatchRules:
        codec = _CODECS.get(config.compression_type)
        uses_append_time = config.message_timestamp_type == "LogAppendTime"
        may_flush = config.moldau_flush_on_ack or config.flush_messages < INT64_MAX
        return cls(
            max_message_bytes=config.max_message_bytes,
            segment_bytes=config.segment_bytes,
            timestamp_after_max_ms=INT64_MAX if uses_append_time else config.message_timestamp_after_max_ms,
            timestamp_before_max_ms=INT64_MAX if uses_append_time else config.message_timestamp_before_max_ms,
            uses_append_time=uses_append_time,
            requires_keys=config.is_compacted,
            opens_bodies=config.opens_bodies,
            codec=codec,
            level=_level(config, codec),
            may_flush=may_flush,
            is_header_enough=not (uses_append_time or config.opens_bodies),
        )


_CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def _level(config: LogConfig, codec: int | None) -> int | None:
    levels = {1: config.compression_gzip_level, 3: config.compression_lz4_level, 4: config.compression_zstd_level}
    return None if codec is None else levels.get(codec)


def checked_header(view: memoryview, start: int, end: int, version: int, rules: BatchRules) -> tuple[int, ...]:
    """Check everything that a header shows about the records in `view[start:end]`; raises `RefusedBatchError`.

    Returns the header's fields in `BatchHeader`'s order. The caller, which knows the time, checks for timestamps too
    far in the future.
    """
    size = end - start
    if size < BATCH_OVERHEAD:
        raise _too_short(view[start:end])
    header = _unpack_header(view, start)
    base_offset, length, _, magic, crc, attributes, last_offset_delta, _, _, producer_id, _, sequence, count = header
    if length + LOG_OVERHEAD != size or magic != MAGIC:
        raise _not_one_batch(size, length, magic)
    if base_offset:
        raise _contradiction(f"the batch has base offset {base_offset}; producers must send 0")
    if size > rules.max_message_bytes:
        raise RefusedBatchError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {size} bytes, more than max.message.bytes={rules.max_message_bytes}",
        )
    if crc32c(view[start + ATTRIBUTES_OFFSET : end]) != crc:
        raise RefusedBatchError(
            ErrorCode.CORRUPT_MESSAGE, "the CRC of the batch does not match its contents", counter="invalid_crc_records"
        )
    if last_offset_delta != count - 1 or count <= 0:
        raise _contradiction(f"the batch claims {count} records, but its last offset delta is {last_offset_delta}")
    if producer_id >= 0 and sequence < 0:
        raise _contradiction(f"the batch of producer {producer_id} has the negative base sequence {sequence}")
    if attributes & _ODD_ATTRIBUTES or attributes & CODEC_MASK >= ZSTD:
        _check_attributes(attributes, version)
    if size > rules.segment_bytes:
        raise RefusedBatchError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {size} bytes, more than segment.bytes={rules.segment_bytes}",
        )
    return header


def _check_attributes(attributes: int, version: int) -> None:
    codec = attributes & CODEC_MASK
    if codec > ZSTD:
        raise _invalid(f"compression codec {codec} is unknown")
    if codec == ZSTD and version < FIRST_WITH_ZSTD:
        raise RefusedBatchError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd compression needs Produce version 7 or later"
        )
    if attributes & CONTROL_BIT:
        raise _invalid("control records cannot be produced by clients")
    if attributes & LOG_APPEND_TIME_BIT:
        raise RefusedBatchError(
            ErrorCode.INVALID_TIMESTAMP, "the timestamp type is LogAppendTime; producers must send CreateTime"
        )


def _too_short(records: memoryview) -> RefusedBatchError:
    if len(records) <= LOG_OVERHEAD:
        return _invalid("the records of the partition hold no batch")
    if len(records) > MAGIC_OFFSET and records[MAGIC_OFFSET] != MAGIC:
        return _wrong_magic(records[MAGIC_OFFSET])
    return RefusedBatchError(
        ErrorCode.CORRUPT_MESSAGE, f"the batch is cut short: {len(records)} bytes are fewer than a batch header has"
    )


def _not_one_batch(size: int, length: int, magic: int) -> RefusedBatchError:
    if magic != MAGIC:
        return _wrong_magic(magic)
    if BATCH_OVERHEAD <= length + LOG_OVERHEAD < size:
        return _invalid("there is more than one batch for the partition; send one")
    return RefusedBatchError(ErrorCode.CORRUPT_MESSAGE, f"the batch length is {length}, but {size} bytes were sent")


def _wrong_magic(magic: int) -> RefusedBatchError:
    return RefusedBatchError(
        ErrorCode.INVALID_RECORD,
        f"the batch has magic {magic}; only magic 2 is supported",
        counter="invalid_magic_records",
    )


def _contradiction(message: str) -> RefusedBatchError:
    return RefusedBatchError(ErrorCode.INVALID_RECORD, message, counter="invalid_offset_or_sequence_records")


def _invalid(message: str) -> RefusedBatchError:
    return RefusedBatchError(ErrorCode.INVALID_RECORD, message)


def stamp_append_time(batch: memoryview, header: tuple[int, ...], now_ms: int) -> tuple[int, ...]:
    """Set a batch's timestamp to the broker's time, in place: one bit, the newest timestamp, and the checksum."""
    stamped = list(header)
    stamped[5] |= LOG_APPEND_TIME_BIT
    stamped[8] = now_ms
    HEADER.pack_into(batch, 0, *stamped)
    stamped[4] = crc32c(batch[ATTRIBUTES_OFFSET:])
    HEADER.pack_into(batch, 0, *stamped)
    return tuple(stamped)
