"""What compaction leaves of a batch: all, some records, an empty header, or nothing.

Pure: bytes in, bytes out. Offsets, order, sequences and the codec never change; a batch that loses nothing is returned
as the same bytes. Start at `BatchFilter.filter_batch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.log.cleaning.cleaned_transactions import CleanedTransactions
from moldau.log.cleaning.offset_map import OffsetMap
from moldau.log.segments.record_spans import RecordSpan, record_spans, unpacked_body, with_timestamp_delta
from moldau.protocol.compression import compress
from moldau.protocol.record_batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    BatchHeader,
)
from moldau.protocol.records import control_type, crc_of

__all__ = ["BatchFilter", "LastOfProducer", "marker_type"]


class LastOfProducer(NamedTuple):
    """A live producer's last batch in the log: it is kept, if only as an empty header."""

    epoch: int
    last_data_offset: int | None
    """`None` for a producer that wrote only markers."""


@dataclass(slots=True)
class BatchFilter:
    """The rules of one cleaning round over one log."""

    newest: OffsetMap
    end_offset: int
    """Records from here on are not in the map and are all kept."""
    upper_bound: int
    """Where the cleanable part of the log ends. The batch before it is kept, so that the log end does not move."""
    now_ms: int
    delete_retention_ms: int
    producers: Mapping[int, LastOfProducer] = field(default_factory=dict)
    transactions: CleanedTransactions = field(default_factory=CleanedTransactions)
    levels: Mapping[int, int] = field(default_factory=dict)
    """Compression level by codec, for batches that are rewritten."""
    records_read: int = 0
    records_kept: int = 0

    def filter_batch(self, header: BatchHeader, batch: memoryview) -> bytes | memoryview | None:
        """Return the bytes to write in place of `batch`; `None` drops it."""
        self.records_read += header.records_count
        marker = marker_type(header, batch) if header.is_control else None
        is_removable = self.transactions.is_removable(header, marker)
        if header.base_offset >= self.end_offset:
            return self._whole(header, batch)
        if header.is_control:
            return self._filter_control_batch(header, batch, is_removable)
        if is_removable or header.records_count == 0:
            return self._without_records(header)
        return self._filter_data_batch(header, batch)

    def _filter_control_batch(
        self, header: BatchHeader, batch: memoryview, is_removable: bool
    ) -> bytes | memoryview | None:
        """A marker without data gets a delete horizon and is removed after it, like a tombstone."""
        if header.records_count == 0:
            return self._without_records(header)
        horizon_ms = header.delete_horizon_ms
        if not is_removable or (horizon_ms is not None and horizon_ms > self.now_ms):
            return self._whole(header, batch)
        if horizon_ms is not None:
            return self._without_records(header)
        body = unpacked_body(batch, header)
        return self._rewrite(header, body, list(record_spans(body, header)), self._horizon_from_now())

    def _filter_data_batch(self, header: BatchHeader, batch: memoryview) -> bytes | memoryview | None:
        body = unpacked_body(batch, header)
        horizon_ms = header.delete_horizon_ms
        tombstones_stay = horizon_ms is None or self.now_ms < horizon_ms
        base_offset, end_offset, newest = header.base_offset, self.end_offset, self.newest.get
        kept, has_tombstone = [], False
        for span in record_spans(body, header):
            _, _, _, _, delta, key, has_value = span
            offset = base_offset + delta
            if offset < end_offset and (key is None or offset < newest(key) or not (has_value or tombstones_stay)):
                continue
            kept.append(span)
            has_tombstone |= not has_value
        if not kept:
            return self._without_records(header)
        needs_horizon = has_tombstone and horizon_ms is None
        if len(kept) == header.records_count and not needs_horizon:
            return self._whole(header, batch)
        return self._rewrite(header, body, kept, self._horizon_from_now() if needs_horizon else horizon_ms)

    def _horizon_from_now(self) -> int:
        return self.now_ms + self.delete_retention_ms

    def _whole(self, header: BatchHeader, batch: memoryview) -> memoryview:
        self.records_kept += header.records_count
        return batch

    def _without_records(self, header: BatchHeader) -> bytes | None:
        """An empty batch if its header is still needed, else `None`."""
        if not self._header_must_stay(header):
            return None
        emptied = header._replace(
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
            base_timestamp=header.max_timestamp,
            records_count=0,
        )
        return _assemble(emptied, b"")

    def _header_must_stay(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self.upper_bound:
            return True
        last = self.producers.get(header.producer_id) if header.producer_id != NO_PRODUCER_ID else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _rewrite(self, header: BatchHeader, body: bytes, kept: Sequence[RecordSpan], horizon_ms: int | None) -> bytes:
        """The batch with only the records `kept`. Their bytes are unchanged unless a delete horizon replaces the base
        timestamp."""
        self.records_kept += len(kept)
        attributes, base_timestamp = header.attributes, header.base_timestamp
        if horizon_ms is None or header.delete_horizon_ms == horizon_ms:
            records = b"".join([body[start:end] for start, _, end, *_ in kept])
        else:
            attributes, base_timestamp = attributes | DELETE_HORIZON_BIT, horizon_ms
            shift = header.base_timestamp - horizon_ms
            records = b"".join([with_timestamp_delta(body, span, span[3] + shift) for span in kept])
        newest_ms = header.max_timestamp
        if not header.has_log_append_time:
            newest_ms = header.base_timestamp + max(stamp_delta for _, _, _, stamp_delta, *_ in kept)
        changed = header._replace(
            attributes=attributes, base_timestamp=base_timestamp, max_timestamp=newest_ms, records_count=len(kept)
        )
        return _assemble(changed, compress(header.codec, records, self.levels.get(header.codec)))


def marker_type(header: BatchHeader, batch: memoryview) -> int | None:
    """The type in a control batch's record, `None` if the record is gone."""
    if header.records_count == 0:
        return None
    _, _, _, _, _, key, _ = next(record_spans(unpacked_body(batch, header), header))
    return control_type(key)


def _assemble(header: BatchHeader, body: bytes) -> bytes:
    """Join header and body, with length and CRC recomputed."""
    batch = bytearray(BATCH_OVERHEAD + len(body))
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - LOG_OVERHEAD, crc=0))
    batch[BATCH_OVERHEAD:] = body
    batch[17:21] = crc_of(batch).to_bytes(4, "big")
    return bytes(batch)
