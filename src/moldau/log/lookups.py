"""Finding records by timestamp: indexes lead to the batch, and only that batch is decoded.

Start at `offset_for_timestamp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from moldau.log.errors import StorageError
from moldau.log.segments.segment import Segment
from moldau.protocol.record_batch import NO_TIMESTAMP, BatchHeader

if TYPE_CHECKING:
    from moldau.log.local_log import LocalLog

__all__ = ["FoundOffset", "max_timestamp_offset", "offset_for_timestamp"]


class FoundOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(log: LocalLog, timestamp: int) -> FoundOffset | None:
    """The first record, in offset order from the log start on, whose timestamp is at least `timestamp`."""
    log.check_online()
    try:
        for segment in log.segments:
            if segment.size and segment.newest_timestamp().timestamp >= timestamp:
                found = _find_in_segment(segment, timestamp, log.log_start_offset)
                if found is not None:
                    return found
    except OSError as error:
        raise StorageError(f"{log.topic_partition}: cannot read {log.directory}: {error.strerror}") from error
    return None


def max_timestamp_offset(log: LocalLog) -> FoundOffset | None:
    """The first record with the newest timestamp of the log; `None` if no record has a timestamp."""
    log.check_online()
    try:
        newest = max((segment.newest_timestamp().timestamp for segment in log.segments), default=NO_TIMESTAMP)
    except OSError as error:
        raise StorageError(f"{log.topic_partition}: cannot read {log.directory}: {error.strerror}") from error
    return None if newest < 0 else offset_for_timestamp(log, newest)


def _find_in_segment(segment: Segment, timestamp: int, log_start_offset: int) -> FoundOffset | None:
    """Search from the time index entry on: every batch up to it is older than `timestamp`."""
    known = segment.time_index.lookup(timestamp - 1)
    start = segment.offset_index.lookup(max(known.offset, log_start_offset)).position
    for position, header in segment.headers(start):
        if header.max_timestamp >= timestamp and header.last_offset >= log_start_offset:
            found = _first_record(segment, position, header, timestamp, log_start_offset)
            if found is not None:
                return found
    return None


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, log_start_offset: int
) -> FoundOffset | None:
    # Imported here: record codecs import the compression libraries, which most brokers do not need at startup.
    from moldau.protocol.records import decode_records

    if header.has_log_append_time:
        offset = max(header.base_offset, log_start_offset)
        return FoundOffset(header.max_timestamp, offset, header.partition_leader_epoch)
    for record in decode_records(segment.read(position, header.size_in_bytes), header):
        offset = header.base_offset + record.offset_delta
        record_timestamp = header.base_timestamp + record.timestamp_delta
        if record_timestamp >= timestamp and offset >= log_start_offset:
            return FoundOffset(record_timestamp, offset, header.partition_leader_epoch)
    return None
