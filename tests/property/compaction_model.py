"""Logs made of random steps, and what compaction must leave of them, told without any cleverness.

`World` writes segments as a broker would and keeps a plain list of what it wrote; `expected` says which of
those records a round leaves. Used by the property tests of the cleaner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from moldau.log.cleaning.cleaned_transactions import AbortedRange
from moldau.log.cleaning.cleaning_job import CleaningJob, Source
from moldau.log.cleaning.segment_cleaner import CLEANED_SUFFIX
from moldau.log.files import Files
from moldau.log.segments.segment import Segment, parse_base_offset
from moldau.protocol.record_batch import TRANSACTIONAL_BIT, BatchHeader
from moldau.protocol.records import (
    ControlType,
    Record,
    decode_records,
    encode_batch,
    end_transaction_marker,
    split_batches,
)

START_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Written:
    """A record as a consumer sees it, and the batch it came in."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    batch: int
    is_control: bool = False


@dataclass
class World:
    directory: Path
    next_offset: int = 0
    written: list[Written] = field(default_factory=list)
    headers_by_base: dict[int, BatchHeader] = field(default_factory=dict)
    aborted: list[AbortedRange] = field(default_factory=list)
    aborted_offsets: set[int] = field(default_factory=set)
    open_since: dict[int, int] = field(default_factory=dict)
    open_offsets: dict[int, list[int]] = field(default_factory=dict)
    _segment: Segment | None = None

    def append(
        self, records: list[tuple[bytes | None, bytes | None]], *, codec: int = 0, producer_id: int = -1, gaps: int = 0
    ) -> None:
        """Write a data batch; with a producer id it belongs to that producer's transaction."""
        made = [
            Record(index * (gaps + 1), index, key, value, (("h", b"v"),) if index % 2 else ())
            for index, (key, value) in enumerate(records)
        ]
        base = self.next_offset
        if producer_id >= 0:
            self.open_since.setdefault(producer_id, base)
            self.open_offsets.setdefault(producer_id, []).extend(base + record.offset_delta for record in made)
        self._write(
            encode_batch(
                made,
                base_offset=base,
                base_timestamp=START_MS + base,
                codec=codec,
                attributes=TRANSACTIONAL_BIT if producer_id >= 0 else 0,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=base if producer_id >= 0 else -1,
                partition_leader_epoch=3,
            )
        )

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        marker = bytearray(
            end_transaction_marker(
                kind,
                timestamp=START_MS + self.next_offset,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=1,
                partition_leader_epoch=3,
            )
        )
        marker[:8] = self.next_offset.to_bytes(8, "big")
        first = self.open_since.pop(producer_id, None)
        offsets = self.open_offsets.pop(producer_id, [])
        if not commit and first is not None:
            stable = min([*self.open_since.values(), self.next_offset + 1])
            self.aborted.append(AbortedRange(first, producer_id, self.next_offset, stable))
            self.aborted_offsets.update(offsets)
        self._write(bytes(marker))

    def roll(self) -> None:
        if self._segment is not None:
            self._segment.save_indexes(is_last=True)
            self._segment = None

    def _write(self, batch: bytes) -> None:
        if self._segment is None:
            self._segment = Segment.create(Files(), str(self.directory), self.next_offset, now_ms=START_MS)
            self._segment.index_after = 100
        header = BatchHeader.at(batch)
        self._segment.files.write(self._segment.file.fd, batch)
        self._segment.note_batch(header, self._segment.size, 100)
        self.headers_by_base[header.base_offset] = header
        self.written += written_in(batch, header)
        self.next_offset = header.last_offset + 1

    @property
    def stable_offset(self) -> int:
        return min([*self.open_since.values(), self.next_offset])

    def job(self, *, first_dirty_offset: int, upper_bound: int, now_ms: int, **changes: object) -> CleaningJob:
        bases = [base for base in segment_bases(self.directory) if base < upper_bound]
        sources = tuple(Source(base, (self.directory / f"{base:020d}.log").stat().st_size) for base in bases)
        return CleaningJob(
            directory=str(self.directory),
            sources=sources,
            first_dirty_offset=first_dirty_offset,
            upper_bound=upper_bound,
            now_ms=now_ms,
            aborted=tuple(self.aborted),
            index_interval_bytes=100,
            **changes,  # type: ignore[arg-type]
        )


def written_in(batch: bytes, header: BatchHeader) -> list[Written]:
    return [
        Written(
            header.base_offset + record.offset_delta,
            header.base_timestamp + record.timestamp_delta,
            record.key,
            record.value,
            record.headers,
            header.base_offset,
            header.is_control,
        )
        for record in decode_records(batch, header)
    ]


def segment_bases(directory: Path) -> list[int]:
    return sorted(parse_base_offset(path.name) for path in directory.glob("*.log"))


def swap(directory: Path, base_offsets: tuple[int, ...]) -> None:
    """Put a cleaned segment in the place of its sources, with no thought of crashes."""
    for base in base_offsets:
        for path in directory.glob(f"{base:020d}.*"):
            if not path.name.endswith(CLEANED_SUFFIX):
                path.unlink()
    for path in directory.glob(f"{base_offsets[0]:020d}.*{CLEANED_SUFFIX}"):
        path.rename(path.with_name(path.name.removesuffix(CLEANED_SUFFIX)))


def batches_on_disk(directory: Path) -> list[tuple[BatchHeader, bytes]]:
    found = []
    for base in segment_bases(directory):
        data = (directory / f"{base:020d}.log").read_bytes()
        batches = [(header, bytes(batch)) for header, batch in split_batches(data)]
        assert sum(len(batch) for _, batch in batches) == len(data)
        found += batches
    return found


def on_disk(directory: Path) -> list[Written]:
    return [record for header, batch in batches_on_disk(directory) for record in written_in(batch, header)]


@dataclass
class Model:
    """Which records are left after rounds of cleaning; delete horizons are kept per batch, as on disk."""

    world: World
    left: list[Written] = field(default_factory=list)
    horizons: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = list(self.world.written)

    def clean(self, *, end_offset: int, now_ms: int, delete_retention_ms: int) -> None:
        candidates = [r for r in self.left if r.offset < end_offset and not r.is_control and self._is_candidate(r)]
        newest = {record.key: record.offset for record in candidates}
        kept = [
            record
            for record in self.left
            if record.is_control
            or record.offset >= end_offset
            or (self._is_candidate(record) and newest[record.key] == record.offset and self._stays(record, now_ms))
        ]
        self.left = [record for record in kept if record.is_control or not self._is_aborted_batch(record, end_offset)]
        for record in self.left:
            if record.value is None and not record.is_control and record.batch < end_offset:
                self.horizons.setdefault(record.batch, now_ms + delete_retention_ms)

    @property
    def data(self) -> list[Written]:
        return [record for record in self.left if not record.is_control]

    def _is_candidate(self, record: Written) -> bool:
        return record.key is not None and record.offset not in self.world.aborted_offsets

    def _is_aborted_batch(self, record: Written, end_offset: int) -> bool:
        """Aborted batches go whole, even where the round ends in the middle of one."""
        return record.offset in self.world.aborted_offsets and record.batch < end_offset

    def _stays(self, record: Written, now_ms: int) -> bool:
        return record.value is not None or now_ms < self.horizons.get(record.batch, now_ms + 1)
