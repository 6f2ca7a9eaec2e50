"""Keeps a log directory's manifest up to date, and on disk before files are deleted.

`log.directories.manifest` describes the file and why a crash never looks like a loss. The maintenance thread saves it
in rounds; segments that retention deletes wait in their log (`PartitionLog.retire_leaving`) until that is done. Lines
are rendered again only for logs whose segments have changed, so a round over thousands of idle partitions is cheap.
Start at `ManifestKeeper.save`.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from moldau.core.ids import TopicPartition
from moldau.log.directories.manifest import (
    MANIFEST,
    Manifest,
    PartitionEntry,
    SegmentEntry,
    parse_manifest,
    render_manifest,
)
from moldau.log.files import Files
from moldau.log.partition_log import PartitionLog
from moldau.log.segments.segment import Segment

__all__ = ["ManifestKeeper", "MetadataMark", "entry_of"]

log = logging.getLogger("moldau.log")

_FULL_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class MetadataMark(NamedTuple):
    """How far the metadata log is on disk, and the epoch of this run."""

    epoch: int = -1
    end_offset: int = 0


class _Line(NamedTuple):
    """A rendered line, and everything it was rendered from."""

    log: PartitionLog
    segments: tuple[Segment, ...]
    closed: int
    is_partial: bool
    withheld: frozenset[int]
    text: str | None


class ManifestKeeper:
    def __init__(self, files: Files, directory: str) -> None:
        self.path = os.path.join(directory, MANIFEST)
        self.recorded: Manifest | None = None
        """The last run's manifest; `None` without a usable file."""
        self._files = files
        self._directory = directory
        self._is_loaded = False
        self._lines: dict[TopicPartition, _Line] = {}
        self._saved: str | None = None
        """What is certainly on disk; `None` when that is unknown."""
        self._lock = threading.Lock()

    def load(self) -> None:
        """Read the file, once."""
        if self._is_loaded:
            return
        self._is_loaded = True
        try:
            self.recorded = parse_manifest(self._files.read_file(self.path).decode())
        except FileNotFoundError:
            return
        except ValueError as error:
            log.error("%s is damaged and ignored, so missing files would not be noticed: %s", self.path, error)
            return
        if self.recorded.damaged_lines:
            log.error("%s: %d damaged lines are ignored", self.path, self.recorded.damaged_lines)

    def save(
        self,
        logs: Iterable[PartitionLog],
        metadata: MetadataMark,
        *,
        missing: Mapping[TopicPartition, PartitionEntry] | None = None,
        is_stopped: bool = False,
    ) -> None:
        """Write the manifest of the current files; raises `OSError` if that fails.

        `missing` are partitions without a folder, which stay listed.
        """
        with self._lock:
            lines = [entry.render(partition) for partition, entry in (missing or {}).items()]
            lines += [text for each in logs if (text := self._line(each, is_stopped)) is not None]
            text = render_manifest(
                lines, is_stopped=is_stopped, metadata_epoch=metadata.epoch, metadata_end_offset=metadata.end_offset
            )
            if text != self._saved:
                self._saved = None
                self._files.atomic_write(self.path, text.encode())
                self._saved = text

    def _line(self, each: PartitionLog, is_stopped: bool) -> str | None:
        partition = each.topic_partition
        known = self._lines.get(partition)
        if known is not None and known.log is not each:
            known = None
        if each.offline_error is not None or is_stopped:
            entry = _offline_entry(each) if each.offline_error is not None else entry_of(each, is_stopped=True)
            return None if entry is None else entry.render(partition)
        segments, withheld = each.segments, each.withheld
        count, is_partial = _safe_extent(each, segments)
        if known is None or known[1:5] != (segments, count, is_partial, withheld):
            entry = entry_of(each)
            text = None if entry is None else entry.render(partition)
            known = _Line(each, segments, count, is_partial, withheld, text)
            if entry is None or all(segment.size is None or segment.txn_mark for segment in entry.segments):
                self._lines[partition] = known
        return known.text

    def withdraw(self) -> None:
        """Remove the manifest: then no file is required to exist."""
        with self._lock:
            self._saved = None
            self._files.unlink(self.path)
            self._files.sync_directory(self._directory)

    def save_or_withdraw(self, logs: Iterable[PartitionLog], metadata: MetadataMark) -> bool:
        """Save; return whether files that the new manifest does not list may be deleted.

        On a full disk, files must be deleted to make room, so the manifest is removed for a while.
        """
        try:
            self.save(logs, metadata)
        except OSError as error:
            if error.errno not in _FULL_DISK:
                log.error("cannot write %s, will retry: %s", self.path, error)
                return False
            return self._withdraw_for(error)
        return True

    def _withdraw_for(self, error: OSError) -> bool:
        try:
            self.withdraw()
        except OSError as unlink_error:
            log.error("cannot remove %s, will retry: %s", self.path, unlink_error)
            return False
        log.error(
            "%s was removed until it can be written again, so lost files would go unnoticed: %s", self.path, error
        )
        return True


def entry_of(each: PartitionLog, *, is_stopped: bool = False) -> PartitionEntry | None:
    """The part of a log that is certainly on disk; `None` while that is nothing."""
    segments, withheld = each.segments, each.withheld
    if is_stopped and not each.needs_recovery and each.recovery_point >= each.log_end_offset:
        if segments[0].base_offset == each.log_end_offset:
            return None
        return PartitionEntry(each.topic_id, each.log_end_offset, tuple(map(_entry, segments)))
    count, is_partial = _safe_extent(each, segments)
    entries = [_entry(segment) for segment in segments[:count]]
    end_offset = segments[count].base_offset
    if is_partial:
        entries.append(SegmentEntry(end_offset, None, None))
    if withheld:
        end_offset = min(end_offset, *withheld)
        entries = [entry for entry in entries if entry.base_offset not in withheld]
    return PartitionEntry(each.topic_id, end_offset, tuple(entries)) if entries else None


def _offline_entry(each: PartitionLog) -> PartitionEntry | None:
    """The entry of an offline log, unchanged: restarting a broker does not accept a loss."""
    if each.recorded is not None:
        return each.recorded
    entry = entry_of(each)
    return None if entry is None or each.withheld else replace(entry, end_offset=each.recovery_point)


def _safe_extent(each: PartitionLog, segments: tuple[Segment, ...]) -> tuple[int, bool]:
    """How many leading segments are closed and entirely below the recovery point, and whether it lies in the next.

    A new partition counts only after its directory is synced, which the first flush does.
    """
    recovery_point = each.recovery_point
    count = len(segments) - 1
    while count and segments[count].base_offset > recovery_point:
        count -= 1
    return count, recovery_point > segments[count].base_offset


def _entry(segment: Segment) -> SegmentEntry:
    return SegmentEntry(segment.base_offset, segment.size, segment.txn_mark)
