"""Offset and time indexes as text, each entry compared with the log it points into.

Start at `dump_offset_index`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from moldau.log.dump.dump_batches import DECOMPRESSED_LIMIT, DumpError, batches_from, timestamp_of
from moldau.log.dump.dump_problems import Pairs, Problems
from moldau.log.segments.offset_index import ENTRY as OFFSET_ENTRY
from moldau.log.segments.time_index import ENTRY as TIME_ENTRY
from moldau.protocol.record_batch import NO_TIMESTAMP, BatchHeader
from moldau.protocol.records import InvalidRecordError, decode_records

__all__ = ["dump_offset_index", "dump_time_index"]

NOT_FOUND: Final = -1


def dump_offset_index(
    path: Path, problems: Problems, *, verifies_only: bool, checks_sanity_only: bool, max_message_bytes: int
) -> Iterator[str]:
    base_offset, log_path, data = _base_offset(path), _log_beside(path), path.read_bytes()
    entries = [(base_offset + offset, position) for offset, position in _whole_entries(OFFSET_ENTRY, data)]
    if not entries:
        yield f"{path} is empty."
        return
    if checks_sanity_only:
        _check_offset_index(path, base_offset, entries, len(data))
        yield f"{path} passed sanity check."
        return
    for offset, position in _used_entries(entries, base_offset, offset_field=0):
        header = _first_batch(log_path, position, max_message_bytes)
        if header.last_offset != offset:
            _add(problems.index_mismatches, path, offset, header.last_offset)
        if not verifies_only:
            yield f"offset: {offset} position: {position}"


def dump_time_index(path: Path, problems: Problems, *, verifies_only: bool, checks_sanity_only: bool) -> Iterator[str]:
    base_offset, data = _base_offset(path), path.read_bytes()
    _log_beside(path)
    entries = [(timestamp, base_offset + offset) for timestamp, offset in _whole_entries(TIME_ENTRY, data)]
    if checks_sanity_only:
        _check_time_index(path, base_offset, entries, len(data))
        yield f"{path} passed sanity check."
        return
    positions = _positions(path.with_suffix(".index"), base_offset)
    previous = NO_TIMESTAMP
    for timestamp, offset in _used_entries(entries, base_offset, offset_field=1):
        _compare_time(path, problems, timestamp, offset, previous=previous, positions=positions)
        if not verifies_only:
            yield f"timestamp: {timestamp} offset: {offset}"
        previous = timestamp


def _compare_time(
    path: Path,
    problems: Problems,
    timestamp: int,
    offset: int,
    *,
    previous: int,
    positions: list[tuple[int, int]],
) -> None:
    log_path = path.with_suffix(".log")
    start = max((position for indexed, position in positions if indexed <= offset and position >= 0), default=0)
    found = next(
        ((h, batch) for _, h, batch in batches_from(log_path, start, _size(log_path)) if h.last_offset >= offset), None
    )
    if found is None or found[0].last_offset != offset:
        _add(problems.offsets_not_found, path, offset, found[0].last_offset if found else NOT_FOUND)
        return
    newest = _newest_timestamp(*found)
    if newest != timestamp:
        _add(problems.timestamp_mismatches, path, timestamp, newest)
    if previous >= timestamp:
        _add(problems.timestamps_out_of_order, path, timestamp, previous)


def _newest_timestamp(header: BatchHeader, batch: bytes) -> int:
    try:
        records = decode_records(batch, header, limit=DECOMPRESSED_LIMIT)
        return max((timestamp_of(header, record) for record in records), default=NO_TIMESTAMP)
    except InvalidRecordError as error:
        raise DumpError(f"the batch at offset {header.base_offset} cannot be read: {error}") from None


def _first_batch(log_path: Path, position: int, max_message_bytes: int) -> BatchHeader:
    if position < 0:
        raise DumpError(f"Invalid position: {position} in read from {log_path}")
    end = min(_size(log_path), position + max_message_bytes)
    found = next(batches_from(log_path, position, end), None)
    if found is None:
        raise DumpError(f"{log_path} holds no whole batch of up to {max_message_bytes} bytes at position {position}")
    return found[1]


def _used_entries(entries: list[tuple[int, int]], base_offset: int, *, offset_field: int) -> Iterator[tuple[int, int]]:
    """The entries before the zeroes that a file which was still being written has at its end."""
    for index, entry in enumerate(entries):
        if index and entry[offset_field] == base_offset:
            return
        yield entry


def _positions(path: Path, base_offset: int) -> list[tuple[int, int]]:
    if not path.exists():
        return []
    entries = [(base_offset + offset, position) for offset, position in _whole_entries(OFFSET_ENTRY, path.read_bytes())]
    return list(_used_entries(entries, base_offset, offset_field=0))


def _check_offset_index(path: Path, base_offset: int, entries: list[tuple[int, int]], size: int) -> None:
    last = entries[-1][0]
    if last < base_offset:
        raise DumpError(
            f"Corrupt index found, index file ({os.path.abspath(path)}) has non-zero size but the last offset is "
            f"{last} which is less than the base offset {base_offset}"
        )
    _check_size(path, size, OFFSET_ENTRY.size)


def _check_time_index(path: Path, base_offset: int, entries: list[tuple[int, int]], size: int) -> None:
    if entries:
        (first_timestamp, _), (last_timestamp, last_offset) = entries[0], entries[-1]
        corrupt = f"Corrupt time index found, time index file ({os.path.abspath(path)}) has non-zero size but the last"
        if last_timestamp < first_timestamp:
            raise DumpError(
                f"{corrupt} timestamp is {last_timestamp} which is less than the first timestamp {first_timestamp}"
            )
        if last_offset < base_offset:
            raise DumpError(f"{corrupt} offset is {last_offset} which is less than the first offset {base_offset}")
    _check_size(path, size, TIME_ENTRY.size)


def _check_size(path: Path, size: int, entry_size: int) -> None:
    if size % entry_size:
        raise DumpError(
            f"Index file {os.path.abspath(path)} is corrupt, found {size} bytes which is neither positive nor "
            f"a multiple of {entry_size}"
        )


def _whole_entries(entry: struct.Struct, data: bytes) -> Iterator[tuple[int, int]]:
    used = len(data) - len(data) % entry.size
    return ((first, second) for first, second in entry.iter_unpack(data[:used]))


def _base_offset(path: Path) -> int:
    try:
        return int(path.name.split(".")[0])
    except ValueError:
        raise DumpError(f"{path} is not named after an offset") from None


def _log_beside(path: Path) -> Path:
    log_path = path.with_suffix(".log")
    if not log_path.exists():
        raise DumpError(f"{log_path} is missing, and an index cannot be read without it")
    return log_path


def _size(path: Path) -> int:
    return path.stat().st_size


def _add(pairs: Pairs, path: Path, expected: int, found: int) -> None:
    pairs.setdefault(os.path.abspath(path), []).append((expected, found))
