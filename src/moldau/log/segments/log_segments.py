"""The segments of one log, and those on their way out of it.

Which records to keep is for `log.partition_log`; here is how files leave without a crash finding a hole, or a manifest
asking for what is gone: deleted segments keep their names until the manifest on disk does not list them (`leaving`),
replaced and truncated ones are withheld from it first (`withhold`), and renamed files are unlinked after a delay
(`delete_retired`). Start at `LogSegments`.
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
    """`all` is a tuple that is only ever replaced, under `lock`, so whoever took it sees a consistent list."""

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
        """Never held while the disk works; the log moves its recovery point and its start under it too."""
        self.save_manifest: Callable[[], None] | None = None
        """Puts the manifest on disk, or raises; `None` for a log that no manifest lists."""
        self.withheld: frozenset[int] = frozenset()
        """Base offsets of segments that are about to be replaced or cut, so the manifest must not list them."""
        self._leaving: list[Segment] = []
        """Deleted segments that keep their names until the manifest on disk does not list them any more."""
        self._retired: list[tuple[int, Segment]] = []
        """Renamed ones, and when their files may be unlinked."""

    @property
    def oldest(self) -> Segment:
        """The first one whose file has its name, whether or not it is still part of the log."""
        return next(iter(self._leaving), self.all[0])

    def of(self, offset: int) -> Segment:
        """The segment that `offset` falls into."""
        segments = self.all
        return segments[max(0, bisect_right(segments, offset, key=base_offset_of) - 1)]

    def add(self, fresh: Segment) -> None:
        with self.lock:
            self.all = (*self.all, fresh)

    # --- deleting ---------------------------------------------------------------------------------------

    def take_first(self, count: int) -> tuple[tuple[Segment, ...], int]:
        """Take the first `count` out, but not the last one; return them, and the offset where the others begin."""
        with self.lock:
            count = min(count, len(self.all) - 1)
            gone, self.all = self.all[:count], self.all[count:]
            return gone, self.all[0].base_offset

    def delete_later(self, gone: Sequence[Segment]) -> None:
        """They are out of the log; their files go when `retire_leaving` says so."""
        with self.lock:
            self._leaving += gone

    @property
    def leaving(self) -> int:
        """How many deleted segments wait for the manifest."""
        return len(self._leaving)

    def retire_leaving(self, due_ms: int) -> None:
        """Let the first deleted segment go, which the manifest on disk does not list any more."""
        segment = self._leaving[0]
        self.retire([segment], due_ms)
        with self.lock:
            self._leaving.remove(segment)

    def retire(self, segments: Iterable[Segment], due_ms: int) -> None:
        """Rename files out of the way, in an order in which a crash leaves no hole, and unlink them after `due_ms`."""
        for segment in segments:
            segment.rename(DELETED_SUFFIX)
            self._retired.append((due_ms, segment))
            self._snapshots.discard([segment.base_offset])

    def delete_retired(self, now_ms: int) -> int:
        """Unlink the files of segments whose delay has passed; return how many segments went."""
        due = [entry for entry in list(self._retired) if entry[0] <= now_ms]
        for entry in due:
            entry[1].delete()
            self._retired.remove(entry)
        return len(due)

    # --- replacing --------------------------------------------------------------------------------------

    def withhold(self, segments: Sequence[Segment]) -> None:
        """Have a manifest on disk that does not ask for these segments, before their files change."""
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
        """Swap a compacted segment in for the ones it was made of, whose files go when `due_ms` has come.

        `cleaned` is complete and synced under the suffix `.cleaned`. From the rename to `.swap` on, a crash
        is finished by the next start, and an error is undone; where that fails too, `take_offline` is called. None of
        `replaced` is the last segment.
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
        """Give the originals their names back; the cleaned files go only when all have, in case of a crash."""
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
