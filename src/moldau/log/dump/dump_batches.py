"""Batches and records as text: segments, metadata snapshots, anything made of record batches.

Reads as Kafka's tool does: up to the first incomplete batch, reporting how many bytes are left.
Start at `dump_batches`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from moldau.core.errors import MoldauError
from moldau.log.dump.dump_problems import Problems
from moldau.protocol.compression import Codec
from moldau.protocol.record_batch import BATCH_OVERHEAD, LOG_OVERHEAD, MAGIC, NO_SEQUENCE, BatchHeader
from moldau.protocol.records import ControlType, InvalidRecordError, Record, control_type, crc_of, decode_records

__all__ = ["DumpError", "RecordText", "batches_from", "dump_batches", "plain_text", "timestamp_of"]

HEADER_UP_TO_MAGIC: Final = 17
SMALLEST_RECORD: Final = 14
"""The record overhead of the oldest format: a smaller length is invalid."""
NO_LIMIT: Final = 2**31 - 1
DECOMPRESSED_LIMIT: Final = 2**31 - 1

SNAPSHOT_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

RecordText = Callable[[int, Record], tuple[str | None, str | None]]
"""Maps offset and record to the text of its key and of its payload; `None` omits that field."""


class DumpError(MoldauError):
    """A file cannot be dumped any further; the message says why and where."""


def plain_text(offset: int, record: Record) -> tuple[str | None, str | None]:
    """Keys and values as UTF-8."""
    return _utf8(record.key), _utf8(record.value)


def _utf8(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def dump_batches(
    path: Path,
    problems: Problems,
    *,
    is_deep: bool,
    prints_data: bool,
    skips_record_metadata: bool,
    max_bytes: int,
    text_of: RecordText,
) -> Iterator[str]:
    yield from _title(path)
    end = min(path.stat().st_size, max_bytes)
    valid_bytes, last_offset = 0, -1
    for position, header, batch in batches_from(path, 0, end):
        yield _batch_line(header, position, is_valid=crc_of(batch) == header.crc)
        valid_bytes = position + len(batch)
        if not is_deep:
            continue
        for record in _records(batch, header):
            offset = header.base_offset + record.offset_delta
            if offset != last_offset + 1:
                problems.offset_gaps.setdefault(os.path.abspath(path), []).append((last_offset, offset))
            last_offset = offset
            yield _record_line(
                header, record, prints_data=prints_data, skips_metadata=skips_record_metadata, text_of=text_of
            )
    if valid_bytes < end and max_bytes == NO_LIMIT:
        yield f"Found {end - valid_bytes} invalid bytes at the end of {path.name}"


def batches_from(path: Path, position: int, end: int) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Every complete batch in [position, end) with its position; raises `DumpError` for an invalid length."""
    with path.open("rb") as file:
        file.seek(position)
        while end - position > HEADER_UP_TO_MAGIC:
            head = file.read(BATCH_OVERHEAD)
            length, magic = int.from_bytes(head[8:12], "big", signed=True), head[16]
            if length < SMALLEST_RECORD:
                raise DumpError(
                    f"Found record size {length} smaller than minimum record overhead ({SMALLEST_RECORD}) "
                    f"in file {path}."
                )
            size = length + LOG_OVERHEAD
            if position + size > end:
                return
            if magic != MAGIC or size < BATCH_OVERHEAD:
                raise DumpError(
                    f"{path}: the batch at position {position} has magic {magic}; only {MAGIC} is supported"
                )
            yield position, BatchHeader.at(head), head + file.read(size - BATCH_OVERHEAD)
            position += size


def timestamp_of(header: BatchHeader, record: Record) -> int:
    """A record's timestamp as a consumer sees it."""
    return header.max_timestamp if header.has_log_append_time else header.base_timestamp + record.timestamp_delta


def _title(path: Path) -> Iterator[str]:
    if path.suffix == ".log":
        try:
            yield f"Log starting offset: {int(path.name.split('.')[0])}"
        except ValueError:
            raise DumpError(f"{path} is not named after an offset") from None
    elif path.name == "bootstrap.checkpoint":
        yield "KRaft bootstrap snapshot"
    else:
        named = SNAPSHOT_NAME.fullmatch(path.name)
        if named is None:
            raise DumpError(f"{path} is not named <end offset>-<epoch>.checkpoint")
        yield f"Snapshot end offset: {int(named[1])}, epoch: {int(named[2])}"


def _records(batch: bytes, header: BatchHeader) -> Iterator[Record]:
    try:
        yield from decode_records(batch, header, limit=DECOMPRESSED_LIMIT)
    except InvalidRecordError as error:
        raise DumpError(f"the batch at offset {header.base_offset} cannot be read: {error}") from None


def _batch_line(header: BatchHeader, position: int, *, is_valid: bool) -> str:
    horizon_ms = header.delete_horizon_ms
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.records_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} isTransactional: {_java(header.is_transactional)} "
        f"isControl: {_java(header.is_control)} "
        f"deleteHorizonMs: {'OptionalLong.empty' if horizon_ms is None else f'OptionalLong[{horizon_ms}]'} "
        f"position: {position} {_timestamp_type(header)}: {header.max_timestamp} size: {header.size_in_bytes} "
        f"magic: {header.magic} compresscodec: {_codec_name(header.codec)} crc: {header.crc} isvalid: {_java(is_valid)}"
    )


def _record_line(
    header: BatchHeader, record: Record, *, prints_data: bool, skips_metadata: bool, text_of: RecordText
) -> str:
    words = [] if skips_metadata else [_metadata(header, record)]
    if prints_data and not header.is_control:
        key, payload = text_of(header.base_offset + record.offset_delta, record)
        words += [f"key: {key}"] if key is not None else []
        words += [f"payload: {payload}"] if payload is not None else []
    return f"| {' '.join(words)}" if words else ""


def _metadata(header: BatchHeader, record: Record) -> str:
    sequence = NO_SEQUENCE
    if header.base_sequence != NO_SEQUENCE:
        sequence = (header.base_sequence + record.offset_delta) & 0x7FFFFFFF
    names = ",".join(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name, _ in record.headers)
    line = (
        f"offset: {header.base_offset + record.offset_delta} {_timestamp_type(header)}: {timestamp_of(header, record)} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{names}]"
    )
    return line + _control(record) if header.is_control else line


def _control(record: Record) -> str:
    kind = control_type(record.key)
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        coordinator_epoch = int.from_bytes((record.value or b"")[2:6], "big", signed=True)
        return f" endTxnMarker: {ControlType(kind).name} coordinatorEpoch: {coordinator_epoch}"
    if kind not in _KRAFT_WORDS:
        return f" controlType: UNKNOWN({kind})"
    return f" {_KRAFT_WORDS[kind]} {_kraft_json(kind, record.value or b'')}"


_KRAFT_WORDS: Final[dict[int, str]] = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


def _kraft_json(kind: int, value: bytes) -> str:
    # Imported here: a dump of data topics needs none of the metadata schemas.
    from moldau.log.dump.dump_metadata import control_record_json

    return control_record_json(ControlType(kind), value)


def _codec_name(codec: int) -> str:
    return Codec(codec).name.lower() if codec in Codec._value2member_map_ else f"unknown({codec})"


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.has_log_append_time else "CreateTime"


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _java(value: bool) -> str:
    return "true" if value else "false"
