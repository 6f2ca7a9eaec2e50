"""One cleaning round over one log: builds the job, has the worker run it, and swaps the results in.

Imported when the first log is due, since an idle broker does not need its imports. `log.cleaning.cleaner` decides which
log and when. Start at `CleaningRound.run`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moldau.core.clock import Clock
from moldau.log.cleaning.batch_filter import LastOfProducer
from moldau.log.cleaning.cleaned_transactions import AbortedRange
from moldau.log.cleaning.cleaner_worker import CleanerWorker
from moldau.log.cleaning.cleaning_job import CleanedGroup, CleaningJob, CleaningResult, Source
from moldau.log.cleaning.compaction import CleanableRange
from moldau.log.cleaning.segment_cleaner import CLEANED_SUFFIX
from moldau.log.errors import CleaningFailedError
from moldau.log.files import Files
from moldau.log.partition_log import PartitionLog
from moldau.log.segments.segment import Segment
from moldau.protocol.compression import Codec

if TYPE_CHECKING:
    from moldau.log.cleaning.cleaner import CleanerSettings

__all__ = ["CleaningRound"]


@dataclass(slots=True, kw_only=True)
class CleaningRound:
    target: PartitionLog
    span: CleanableRange
    settings: CleanerSettings
    files: Files
    clock: Clock
    exclusively: Callable[[Callable[[], None]], None]
    """Runs a swap in the thread that deletes segments, so that no segment is deleted meanwhile."""
    groups: list[CleanedGroup] = field(default_factory=list)

    def run(self, worker: CleanerWorker, now_ms: int) -> CleaningResult:
        """Clean and swap. A round that ends early leaves the log unchanged, or with some groups cleaned."""
        segments = {segment.base_offset: segment for segment in self.target.segments[:-1]}
        self._drop_leftovers()

        def swap_in(group: CleanedGroup) -> None:
            self.groups.append(group)
            if not group.is_unchanged:
                replaced = [segments[base] for base in group.base_offsets]
                self.exclusively(lambda: self._swap_in(replaced))

        try:
            return worker.run(self._job(list(segments.values()), now_ms), swap_in)
        finally:
            self._drop_leftovers()

    def _job(self, segments: Sequence[Segment], now_ms: int) -> CleaningJob:
        target, config, upper_bound = self.target, self.target.config, self.span.first_uncleanable_offset
        threads = max(1, self.settings.threads)
        return CleaningJob(
            directory=target.directory,
            sources=tuple(
                Source(segment.base_offset, segment.size, _index_bytes(segment))
                for segment in segments
                if segment.base_offset < upper_bound
            ),
            first_dirty_offset=self.span.first_dirty_offset,
            upper_bound=upper_bound,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            dedupe_buffer_bytes=self.settings.dedupe_buffer_size // threads,
            io_max_bytes_per_second=self.settings.io_max_bytes_per_second / threads,
            levels={
                Codec.GZIP: config.compression_gzip_level,
                Codec.LZ4: config.compression_lz4_level,
                Codec.ZSTD: config.compression_zstd_level,
            },
            producers=_last_of_producers(target),
            aborted=tuple(
                AbortedRange(entry.first_offset, entry.producer_id, entry.last_offset, entry.last_stable_offset)
                for entry in target.aborted_transactions(target.log_start_offset, upper_bound)
            ),
        )

    def _swap_in(self, replaced: Sequence[Segment]) -> None:
        target = self.target
        if target.is_closed or any(segment not in target.segments for segment in replaced):
            raise CleaningFailedError("gone", "the log lost segments that were being cleaned")
        for segment in replaced:
            # Open the files before they are renamed, so that no reader looks for an old name.
            _ = segment.file, segment.offset_index, segment.time_index, segment.txn_index
        base_offset = replaced[0].base_offset
        size = self.files.size(f"{target.directory}/{base_offset:020d}.log{CLEANED_SUFFIX}")
        cleaned = Segment(self.files, target.directory, base_offset, size=size, suffix=CLEANED_SUFFIX)
        target.replace_segments(cleaned, replaced, self.clock.now_ms())

    def _drop_leftovers(self) -> None:
        """Remove the cleaned files of an abandoned round; the next start would remove them too."""
        directory = self.target.directory
        try:
            for name in self.files.names(directory):
                if name.endswith(CLEANED_SUFFIX):
                    self.files.unlink(os.path.join(directory, name))
        except FileNotFoundError:
            pass


def _index_bytes(segment: Segment) -> int:
    return max(len(segment.offset_index.entries), len(segment.time_index.entries))


def _last_of_producers(target: PartitionLog) -> dict[int, LastOfProducer]:
    return {
        state.producer_id: LastOfProducer(state.producer_epoch, state.last_offset if state.last_offset >= 0 else None)
        for state in target.producers
    }
