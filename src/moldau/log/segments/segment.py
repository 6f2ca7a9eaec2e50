"""A segment: one log file with its indexes.

Opened lazily: a segment uses no descriptor and no memory until it is read or appended to. The indexes are kept in
memory as their files' bytes and written later (`save_indexes`), because they can be rebuilt after a crash and an append
should not wait for them. `log.partition_log` decides which segment to use, when to roll and what to keep; it also
appends to the last one. Start at `Segment.find`.

Threads: the loop thread appends; any thread may read, since the fields used by readers are either replaced as a whole
(`tail`) or only grow. Indexes are saved and dropped by one thread at a time, which `PartitionLog` ensures.
"""

from __future__ import annotations

import errno
import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from moldau.core.ids import INT32_MAX
from moldau.log.config import LogConfig
from moldau.log.directories.manifest import TxnMark
from moldau.log.errors import CorruptIndexError
from moldau.log.files import Files, SegmentFile
from moldau.log.segments.batch_scan import first_reaching, headers
from moldau.log.segments.offset_index import OffsetIndex
from moldau.log.segments.time_index import TimeIndex, TimestampOffset
from moldau.log.segments.txn_index import TxnIndex
from moldau.protocol.record_batch import LOG_OVERHEAD, NO_TIMESTAMP, BatchHeader

log = logging.getLogger("moldau.log")

__all__ = ["DELETED_SUFFIX", "EXTENSIONS", "Segment", "file_name", "parse_base_offset"]

NEVER: Final = 2**63 - 1
TIME_ENTRY_BYTES: Final = 12
INDEX_INTERVAL_BYTES: Final = 4096
"""The interval for indexes rebuilt where the topic's own `index.interval.bytes` is not known."""
EXTENSIONS: Final = (".log", ".index", ".timeindex", ".txnindex")
DELETED_SUFFIX: Final = ".deleted"

_POSITION_BITS: Final = 32
_POSITION_MASK: Final = (1 << _POSITION_BITS) - 1
_TAIL_KEPT: Final = 32
_TAIL_LONGEST: Final = 64

Index = TypeVar("Index", OffsetIndex, TimeIndex, TxnIndex)
T = TypeVar("T")


def file_name(base_offset: int, extension: str) -> str:
    return f"{base_offset:020d}{extension}"


def parse_base_offset(name: str) -> int:
    """The offset in the name of a segment or snapshot file; raises `ValueError` for other files."""
    stem, dot, _ = name.partition(".")
    if not dot or len(stem) != 20 or not stem.isdigit():
        raise ValueError(f"{name!r} is not named after an offset")
    return int(stem)


def _first_existing(names: tuple[str, ...], use: Callable[[str], T]) -> T:
    """Use the first of these files that exists."""
    for name in names[:-1]:
        try:
            return use(name)
        except FileNotFoundError:
            continue
    return use(names[-1])


class Segment:
    """One segment; `size`, the timestamps and the roll limits are public because `PartitionLog.append` updates them."""

    __slots__ = (
        "_append_file",
        "_file",
        "_former_suffix",
        "_offset_index",
        "_time_index",
        "_txn_index",
        "_txn_mark",
        "base_offset",
        "created_ms",
        "directory",
        "fd",
        "files",
        "first_timestamp",
        "index_after",
        "is_entry_synced",
        "is_index_saved",
        "is_index_synced",
        "last_offset_allowed",
        "max_timestamp",
        "max_timestamp_offset",
        "roll_above_size",
        "roll_above_timestamp",
        "size",
        "suffix",
        "tail",
    )

    def __init__(self, files: Files, directory: str, base_offset: int, *, size: int = 0, suffix: str = "") -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        """`.cleaned`, `.swap` or `.deleted` while the files are being swapped in or deleted."""
        self._former_suffix: str | None = None
        """While files are being renamed: the suffix that those not renamed yet still have."""
        self.size = size
        """Bytes of whole batches in the log file."""
        self.max_timestamp: int | None = NO_TIMESTAMP if size == 0 else None
        """The newest timestamp; `None` until first needed (`newest_timestamp`)."""
        self.max_timestamp_offset = base_offset
        self.first_timestamp: int | None = None
        self.created_ms = 0
        self.index_after = NEVER
        """An append beyond this position gets an index entry."""
        self.roll_above_size = NEVER
        self.roll_above_timestamp = NEVER
        self.last_offset_allowed = base_offset + INT32_MAX
        self.tail: list[int] = []
        """The most recent batches, each as `base offset << 32 | position`, so that a reader at the end of
        the log needs neither index nor disk."""
        self.is_entry_synced = True
        """Whether the directory entry of the log file is known to be on disk."""
        self.is_index_saved = True
        self.is_index_synced = True
        """Whether the saved index files are known to be on disk; meaningless while they are not saved."""
        self.fd = -1
        """The file descriptor for appends; set only while this is the segment appended to."""
        self._append_file: SegmentFile | None = None
        """Keeps `fd` open even if a reader on another thread replaces `_file`.

        A descriptor closed during an append could already belong to another file.
        """
        self._file: SegmentFile | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None
        self._txn_mark: TxnMark | None = None

    def __repr__(self) -> str:
        return f"Segment({self.path('.log')}, {self.size} bytes)"

    # --- files ------------------------------------------------------------------------------------------

    def path(self, extension: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{extension}{self.suffix}"

    @classmethod
    def create(cls, files: Files, directory: str, base_offset: int, *, now_ms: int, suffix: str = "") -> Segment:
        """Create an empty segment on disk."""
        segment = cls(files, directory, base_offset, suffix=suffix)
        segment._file = SegmentFile(files.open_append(segment.path(".log")))
        if files.size(segment.path(".log")):
            raise FileExistsError(errno.EEXIST, "it holds records already", segment.path(".log"))
        segment._append_file = segment._file
        segment.fd = segment._file.fd
        segment.start_indexes(OffsetIndex(base_offset), TimeIndex(base_offset), TxnIndex())
        segment.created_ms = now_ms
        segment.is_entry_synced = False
        return segment

    @property
    def file(self) -> SegmentFile:
        """The open log file; keep a reference to it while its descriptor is in use."""
        held = self._file
        if held is None:
            held = self._file = SegmentFile(self._open())
        return held

    def _open(self) -> int:
        return self._with_file(".log", self.files.open_existing, self.files.close)

    def _read_whole(self, extension: str) -> bytes:
        return self._with_file(extension, self.files.read_file, lambda _: None)

    def _with_file(self, extension: str, use: Callable[[str], T], discard: Callable[[T], None]) -> T:
        """Use a file by its name, also while another thread renames it; raises `FileNotFoundError` if there is none."""
        while True:
            names = self._names(extension)
            try:
                result = _first_existing(names, use)
            except FileNotFoundError:
                if names == self._names(extension):
                    raise
                continue
            if names == self._names(extension):
                return result
            # It was renamed meanwhile, and by now a compacted segment's file may have that name.
            discard(result)

    def _names(self, extension: str) -> tuple[str, ...]:
        """The paths a file may have now, in the order to try them: it moves once, while it is being renamed."""
        now, former = self.path(extension), self._former_suffix
        return (now,) if former is None else (now, f"{self.directory}/{self.base_offset:020d}{extension}{former}", now)

    def release(self) -> None:
        """Drop the descriptor and the indexes that are on disk; both are loaded again when needed.

        Must not run while the indexes are being saved: they are marked as saved before they are written.
        """
        self._file = self._append_file = None
        self.fd = -1
        if self.is_index_saved:
            self._offset_index = self._time_index = self._txn_index = None

    def close_file(self) -> None:
        """Drop the descriptor only; it is opened again when needed. May run while the indexes are being saved."""
        self._file = self._append_file = None
        self.fd = -1

    def sync(self) -> None:
        """Sync the log file and its directory entry. The caller handles failures."""
        held = self.file
        self.files.sync(held.fd)
        if not self.is_entry_synced:
            self.files.sync_directory(self.directory)
            self.is_entry_synced = True

    def rename(self, suffix: str) -> None:
        """Rename all files to another suffix, or none of them.

        For deletion the log file is renamed first: a start removes indexes without a log file, but would trust a log
        file that has lost only its transaction index. Otherwise it is renamed last: once it is renamed, all files are.
        """
        self._former_suffix = old = self.suffix
        self.suffix = suffix
        renamed: list[str] = []
        try:
            for extension in EXTENSIONS if suffix == DELETED_SUFFIX else (*EXTENSIONS[1:], EXTENSIONS[0]):
                stem = f"{self.directory}/{self.base_offset:020d}{extension}"
                if extension == ".log" or self.files.exists(stem + old):
                    self.files.rename(stem + old, stem + suffix)
                    renamed.append(stem)
        except OSError:
            self._former_suffix = suffix
            self.suffix = old
            for stem in reversed(renamed):
                self.files.rename(stem + suffix, stem + old)
            raise
        finally:
            self._former_suffix = None

    def delete(self) -> None:
        self.release()
        for extension in EXTENSIONS:
            self.files.unlink(self.path(extension))

    # --- indexes ----------------------------------------------------------------------------------------

    @property
    def offset_index(self) -> OffsetIndex:
        index = self._offset_index
        if index is None:
            index = self._load_index(".index", OffsetIndex.decode)
            self._offset_index = index
        return index

    @property
    def time_index(self) -> TimeIndex:
        index = self._time_index
        if index is None:
            index = self._load_index(".timeindex", TimeIndex.decode)
            self._time_index = index
        return index

    @property
    def txn_index(self) -> TxnIndex:
        index = self._txn_index
        if index is None:
            try:
                index = TxnIndex.decode(self._read_whole(".txnindex"))
            except FileNotFoundError:
                index = TxnIndex()
            self._txn_index = index
        return index

    @property
    def txn_mark(self) -> TxnMark | None:
        """The transaction index as it is on disk, for the manifest; `None` while it is not saved."""
        if not self.is_index_saved:
            return None
        if self._txn_mark is None:
            try:
                self._txn_mark = TxnMark.of(self._read_whole(".txnindex"))
            except FileNotFoundError:
                self._txn_mark = TxnMark()
        return self._txn_mark

    def expect_txn_index(self, mark: TxnMark) -> None:
        """Set the mark after the file was found to match the manifest."""
        self._txn_mark = mark

    def _load_index(self, extension: str, decode: Callable[[int, bytes], Index]) -> Index:
        """Load an index; a missing one is treated as empty, which is slow but correct, a corrupt one is rebuilt."""
        try:
            return decode(self.base_offset, self._read_whole(extension))
        except FileNotFoundError:
            return decode(self.base_offset, b"")
        except CorruptIndexError as error:
            log.warning("%s is corrupt and rebuilt: %s", self.path(extension), error)
            offsets, times = self._rebuild_indexes()
            self.start_indexes(offsets, times, self.txn_index)
            return decode(self.base_offset, bytes((offsets if extension == ".index" else times).entries))

    def _rebuild_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Build both indexes from the batch headers of the log file."""
        scratch = Segment(self.files, self.directory, self.base_offset)
        scratch.begin_rebuild(INDEX_INTERVAL_BYTES)
        for position, header in self.headers():
            scratch.note_batch(header, position, INDEX_INTERVAL_BYTES)
        scratch.force_time_entry()
        return scratch.offset_index, scratch.time_index

    def start_indexes(self, offsets: OffsetIndex, times: TimeIndex, aborted: TxnIndex) -> None:
        """Use newly built indexes; the next `save_indexes` writes them to disk."""
        self._offset_index, self._time_index, self._txn_index = offsets, times, aborted
        self.is_index_saved = False

    def begin_rebuild(self, interval_bytes: int) -> None:
        """Reset size, timestamps and indexes; the caller then scans the file."""
        self.size, self.max_timestamp, self.first_timestamp = 0, NO_TIMESTAMP, None
        self.start_indexes(OffsetIndex(self.base_offset), TimeIndex(self.base_offset), TxnIndex())
        self.index_after = interval_bytes

    def note_batch(self, header: BatchHeader, position: int, interval_bytes: int) -> None:
        """Update timestamps and, when due, index entries for a batch at `position`.

        `PartitionLog.append` does the same inline; this is for code that rebuilds or rewrites segments.
        """
        last_offset = header.base_offset + header.last_offset_delta
        if self.max_timestamp is None or header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_offset = last_offset
        if self.first_timestamp is None:
            self.first_timestamp = header.max_timestamp
        if position > self.index_after:
            self.add_index_entry(last_offset, position, interval_bytes)
        self.size = position + header.batch_length + LOG_OVERHEAD

    def add_index_entry(self, last_offset: int, position: int, interval_bytes: int) -> None:
        """Index the batch at `position`, and drop tail entries beyond what readers at the end need."""
        self.offset_index.add(last_offset, position)
        if self.max_timestamp is not None and self.max_timestamp >= 0:
            self.time_index.add(self.max_timestamp, self.max_timestamp_offset)
        self.index_after = position + interval_bytes
        self.is_index_saved = False
        if len(self.tail) > _TAIL_LONGEST:
            self.tail = self.tail[-_TAIL_KEPT:]

    def force_time_entry(self) -> None:
        """Add the newest timestamp to the time index, so that it is the last entry of a closed segment."""
        if not self.size:
            return
        timestamp, offset = self.newest_timestamp()
        if timestamp > self.time_index.last.timestamp:
            self.time_index.add(timestamp, offset)
            self.is_index_saved = False

    def save_indexes(self, *, is_last: bool = False, sync: bool = False) -> None:
        """Write the current index files, unless they are on disk already.

        `is_last` means that the segment gets no more batches, so that its newest timestamp is added too.
        """
        if is_last:
            self.force_time_entry()
        if self.is_index_saved and (self.is_index_synced or not sync):
            return
        if self.is_index_saved:
            for extension in (".index", ".timeindex", ".txnindex"):
                if self.files.exists(self.path(extension)):
                    self.files.sync_file(self.path(extension))
        else:
            self._write_indexes(sync)
        self.is_index_synced = sync or not (self.offset_index.entries or self.time_index.entries)

    def _write_indexes(self, sync: bool) -> None:
        # While the indexes are marked as unsaved, no other thread drops them.
        offsets, times, aborted = self.offset_index, self.time_index, self.txn_index
        # Set before copying the bytes: an entry that an append adds meanwhile must mark them as unsaved again.
        self.is_index_saved = True
        self._txn_mark = None
        try:
            self._write_index(".index", bytes(offsets.entries), sync)
            self._write_index(".timeindex", bytes(times.entries), sync)
            if aborted.entries or self.files.exists(self.path(".txnindex")):
                self._write_index(".txnindex", bytes(aborted.entries), sync)
        except OSError:
            self.is_index_saved = False
            raise

    def _write_index(self, extension: str, data: bytes, sync: bool) -> None:
        self.files.write_file(self.path(extension), data, sync=sync and bool(data))

    # --- appending --------------------------------------------------------------------------------------

    def open_for_append(self, interval_bytes: int, now_ms: int) -> None:
        """Prepare for appends: load everything into memory that an append updates.

        `PartitionLog` sets the roll limits.
        """
        self._append_file = held = self.file
        self.fd = held.fd
        self.created_ms = self.created_ms or now_ms
        self.index_after = self.offset_index.last.position + interval_bytes
        self.newest_timestamp()
        _ = self.time_index, self.txn_index
        for _, header in self.headers():
            self.first_timestamp = header.max_timestamp
            break

    def set_roll_limits(self, config: LogConfig, jitter_ms: int) -> None:
        """Compute the limits that an append compares with from the configuration.

        An empty segment never rolls by size or time. Without a usable timestamp, every append checks.
        """
        if self.first_timestamp is None:
            self.roll_above_size = self.roll_above_timestamp = NEVER
            return
        self.roll_above_size = -1 if self.is_index_full(config.segment_index_bytes) else config.segment_bytes
        if self.first_timestamp < 0:
            self.roll_above_timestamp = -2
        else:
            self.roll_above_timestamp = self.first_timestamp + config.max_segment_ms - jitter_ms

    def is_index_full(self, limit_bytes: int) -> bool:
        """Whether an index has no room; one time entry is reserved for the one added when the segment is closed."""
        return (len(self.offset_index) + 1) * 8 > limit_bytes or (len(self.time_index) + 2) * 12 > limit_bytes

    def free_preallocated(self) -> None:
        """Free the space preallocated after the last batch."""
        held = self.file
        self.files.truncate(held.fd, self.size)

    def prepare_truncation(self) -> None:
        """Read what `truncate` needs, before anything is changed, since reading may fail."""
        _ = self.file, self.offset_index, self.time_index, self.txn_index

    def truncate(self, offset: int) -> None:
        """Cut the file and the indexes before the first batch that reaches `offset`; call `prepare_truncation` first.

        The index files are removed first: a start that trusts them must not find entries that point past the cut.
        """
        position = self.find(offset)
        for extension in EXTENSIONS[1:]:
            self.files.unlink(self.path(extension))
        self.is_index_saved = False
        if position is not None:
            held = self.file
            self.files.truncate(held.fd, position)
            self.size = position
        self.tail = []
        self.first_timestamp = None
        self.offset_index.truncate(offset)
        self.time_index.truncate(offset)
        self.txn_index.truncate(offset)
        self.max_timestamp = None if self.size else NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset

    # --- reading ----------------------------------------------------------------------------------------

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the batch headers with their positions, from the batch at `position` on."""
        return headers(self.files, self.file, position, self.size if end is None else end)

    def read(self, position: int, length: int) -> bytes:
        held = self.file
        return self.files.pread(held.fd, length, position)

    def find(self, offset: int) -> int | None:
        """The position of the first batch that reaches `offset`, or `None` if all end before it."""
        tail = self.tail
        if tail and tail[0] <= offset << _POSITION_BITS | _POSITION_MASK:
            # The tail has no gaps between base offsets: this segment is still appended to.
            return tail[bisect_right(tail, offset << _POSITION_BITS | _POSITION_MASK) - 1] & _POSITION_MASK
        index = self.offset_index
        following = index.before(offset)
        start = index[following - 1].position if following else 0
        return first_reaching(self.files, self.file, start, self.size, offset)

    def search_start(self, offset: int) -> int | None:
        """The position where `find` would begin to read for `offset`; `None` while the index is still on disk.

        Needs no disk access, so that a caller that must not block can estimate the cost of `find`.
        """
        index = self._offset_index
        if index is None:
            return None
        following = index.before(offset)
        return index[following - 1].position if following else 0

    def position_of_end(self, upper_bound: int) -> int:
        """The position where batches that begin at or above `upper_bound` start, or the segment's size."""
        tail = self.tail
        if tail and tail[0] <= upper_bound << _POSITION_BITS:
            index = bisect_left(tail, upper_bound << _POSITION_BITS)
            return tail[index] & _POSITION_MASK if index < len(tail) else self.size
        start = self.offset_index.lookup(upper_bound).position
        for position, header in self.headers(start):
            if header.base_offset >= upper_bound:
                return position
        return self.size

    def slice_end(self, position: int, limit: int, end: int, *, at_least_one_batch: bool) -> int:
        """The position to stop at so that [position, stop) holds whole batches and at most `limit` bytes.

        Uses an indexed position if possible, which needs no disk read, even if a few more batches would fit.
        """
        indexed = self.offset_index.position_up_to(min(position + limit, end))
        if indexed > position:
            return indexed
        stop = position
        for start, header in self.headers(position, end):
            following = start + header.batch_length + LOG_OVERHEAD
            if following - position > limit and not (at_least_one_batch and start == position):
                break
            stop = following
            if stop - position >= limit:
                break
        return stop

    def newest_timestamp(self) -> TimestampOffset:
        """The newest timestamp and the last offset of its batch; timestamp -1 when there is none."""
        if self.max_timestamp is None:
            last = self._last_time_entry()
            if last is None:
                last = TimestampOffset(NO_TIMESTAMP, self.base_offset)
                for _, header in self.headers():
                    if header.max_timestamp > last.timestamp:
                        last = TimestampOffset(header.max_timestamp, header.last_offset)
            self.max_timestamp, self.max_timestamp_offset = last
        return TimestampOffset(self.max_timestamp, self.max_timestamp_offset)

    def _last_time_entry(self) -> TimestampOffset | None:
        """The last entry of the time index as of closing the segment; `None` if there is no entry to trust.

        Reads only this entry unless the index is in memory: retention needs nothing else.
        """
        if self._time_index is not None or not self.is_index_saved:
            return self.time_index.last if self.time_index.entries and self.is_index_saved else None
        path = self.path(".timeindex")
        try:
            data = self.files.read_tail(path, TIME_ENTRY_BYTES)
            if self.files.size(path) % TIME_ENTRY_BYTES == 0 and data.strip(b"\0"):
                return TimeIndex.decode(self.base_offset, data).last
        except (FileNotFoundError, CorruptIndexError):
            pass
        # Empty, not written to its end, or damaged: load the whole index, which repairs it.
        return self.time_index.last if self.time_index.entries else None

    def modified_ms(self) -> int:
        return self.files.modified_ms(self.path(".log"))

    def end(self) -> tuple[int, int]:
        """The offset and the position after the last batch; scans from the last index entry on."""
        last = self.offset_index.last
        end_offset, end_position = self.base_offset, 0
        for position, header in self.headers(last.position):
            end_offset, end_position = header.last_offset + 1, position + header.size_in_bytes
        return end_offset, end_position
