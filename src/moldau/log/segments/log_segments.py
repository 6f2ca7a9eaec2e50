"""The segments of one log, including those about to be deleted.

`log.partition_log` decides which records to keep; this module removes files so that a crash leaves no gap and the
manifest never requires a deleted file: deleted segments keep their names until the manifest on disk does not list them
(`leaving`), replaced and truncated ones are first removed from it (`withhold`), and renamed files are unlinked after a
delay (`delete_retired`). Start at `LogSegments`.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from moldau.core.ids import TopicPartition
from moldau.log.errors import StorageError
from moldau.log.files import Files
from moldau.log.partition_files import Snapshots
from moldau.log.segments.segment import DELETED_SUFFIX, Segment

__all__ = ["LogSegments", "base_offset_of"]


def base_offset_of(segment: Segment) -> int:
    return segment.base_offset


class LogSegments:
    """The segments of a log; `all` is replaced under `lock`, never modified, so readers see a consistent list."""

    __slots__ = (
        "_files",
        "_leaving",
        "_retired",
        "_snapshots",
        "_topic_partition",
        "all",
        "lock",
        "save_manifest",
        "withheld",
    )

    def __init__(
        self, files: Files, topic_partition: TopicPartition, segments: Sequence[Segment], snapshots: Snapshots
    ) -> None:
        self._files = files
        self._topic_partition = topic_partition
        self._snapshots = snapshots
        self.all: tuple[Segment, ...] = tuple(segments)
        self.lock = threading.Lock()
        """Never held during disk access; also guards the log's recovery point and start offset."""
        self.save_manifest: Callable[[], None] | None = None
        """Writes the manifest to disk, or raises; `None` for a log that no manifest lists."""
        self.withheld: frozenset[int] = frozenset()
        """Base offsets of segments that are about to be replaced or cut, so the manifest must not list them."""
        self._leaving: list[Segment] = []
        """Deleted segments that keep their names until the manifest on disk no longer lists them."""
        self._retired: list[tuple[int, Segment]] = []
        """Renamed segments, and when their files may be unlinked."""

    @property
    def oldest(self) -> Segment:
        """The first segment whose file still has its name, whether or not it is still part of the log."""
        return next(iter(self._leaving), self.all[0])

    def of(self, offset: int) -> Segment:
        """The segment that contains `offset`."""
        segments = self.all
        return segments[max(0, bisect_right(segments, offset, key=base_offset_of) - 1)]

    def add(self, fresh: Segment) -> None:
        with self.lock:
            self.all = (*self.all, fresh)

    # --- deleting ---------------------------------------------------------------------------------------

    def take_first(self, count: int) -> tuple[tuple[Segment, ...], int]:
        """Remove the first `count`, but not the last one; return them, and the offset where the others begin."""
        with self.lock:
            count = min(count, len(self.all) - 1)
            gone, self.all = self.all[:count], self.all[count:]
            return gone, self.all[0].base_offset

    def delete_later(self, gone: Sequence[Segment]) -> None:
        """Queue removed segments for deletion; `retire_leaving` renames their files."""
        with self.lock:
            self._leaving += gone

    @property
    def leaving(self) -> int:
        """The number of deleted segments that wait for the manifest."""
        return len(self._leaving)

    def retire_leaving(self, due_ms: int) -> None:
        """Rename the first deleted segment for deletion; the manifest on disk no longer lists it."""
        segment = self._leaving[0]
        self.retire([segment], due_ms)
        with self.lock:
            self._leaving.remove(segment)

    def retire(self, segments: Iterable[Segment], due_ms: int) -> None:
        """Rename segments for deletion, in an order that leaves no gap after a crash; unlinked after `due_ms`."""
        for segment in segments:
            segment.rename(DELETED_SUFFIX)
            self._retired.append((due_ms, segment))
            self._snapshots.discard([segment.base_offset])

    def delete_retired(self, now_ms: int) -> int:
        """Unlink the files of segments whose delay has passed; return the number of segments deleted."""
        due = [entry for entry in list(self._retired) if entry[0] <= now_ms]
        for entry in due:
            entry[1].delete()
            self._retired.remove(entry)
        return len(due)

    # --- replacing --------------------------------------------------------------------------------------

    def withhold(self, segments: Sequence[Segment]) -> None:
        """Write a manifest that does not list these segments, before their files change."""
        if self.save_manifest is not None:
            self.withheld = frozenset(segment.base_offset for segment in segments)
            try:
                self.save_manifest()
            except BaseException as error:
                self.withheld = frozenset()
                if isinstance(error, OSError):
                    raise StorageError(f"{self._topic_partition}: cannot write the manifest: {error}") from error
                raise

    def replace(
        self, cleaned: Segment, replaced: Sequence[Segment], due_ms: int, take_offline: Callable[[str], None]
    ) -> None:
        """Replace segments by the compacted segment made from them; the old files are deleted at `due_ms`.

        `cleaned` is complete and synced under the suffix `.cleaned`. From the rename to `.swap` on, the next start
        finishes the swap after a crash, and an error is undone; if that fails too, `take_offline` is called. `replaced`
        must not contain the last segment.
        """
        self.withhold(replaced)
        directory = cleaned.directory
        try:
            cleaned.rename(".swap")
            self._files.sync_directory(directory)
            for segment in replaced:
                segment.rename(DELETED_SUFFIX)
            cleaned.rename("")
        except OSError:
            self._undo_replacement(cleaned, replaced, take_offline)
            raise
        names = set(map(id, replaced))
        with self.lock:
            kept = [segment for segment in self.all if id(segment) not in names]
            kept.append(cleaned)
            self.all = tuple(sorted(kept, key=base_offset_of))
        self._retired += [(due_ms, segment) for segment in replaced]
        self._files.sync_directory(directory)
        self._snapshots.discard([segment.base_offset for segment in replaced[1:]])
        self.withheld = frozenset()

    def _undo_replacement(
        self, cleaned: Segment, replaced: Sequence[Segment], take_offline: Callable[[str], None]
    ) -> None:
        """Rename the originals back, and only then delete the cleaned files, in case of a crash."""
        try:
            for segment in replaced:
                if segment.suffix == DELETED_SUFFIX:
                    segment.rename("")
            cleaned.delete()
            self.withheld = frozenset()
        except OSError as error:
            take_offline(
                f"replacing segments of {cleaned.directory} by compacted ones was interrupted and could not be undone: "
                f"{error}; the next start completes it"
            )
