"""The messages between the broker and its cleaning process: a job, finished groups, and the result.

Plain data and its JSON, one object per line; nothing is ever unpickled. Start at `CleaningJob`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from moldau.log.cleaning.batch_filter import LastOfProducer
from moldau.log.cleaning.cleaned_transactions import AbortedRange

__all__ = ["CleanedGroup", "CleaningJob", "CleaningResult", "Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """A closed segment to be cleaned."""

    base_offset: int
    size_in_bytes: int
    index_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningJob:
    """Everything one cleaning round needs; the process asks the broker for nothing else."""

    directory: str
    sources: tuple[Source, ...]
    first_dirty_offset: int
    upper_bound: int
    now_ms: int
    delete_retention_ms: int = 86_400_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4096
    dedupe_buffer_bytes: int = 134_217_728
    io_max_bytes_per_second: float = float("inf")
    levels: dict[int, int] = field(default_factory=dict)
    producers: dict[int, LastOfProducer] = field(default_factory=dict)
    aborted: tuple[AbortedRange, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> CleaningJob:
        fields: dict[str, Any] = json.loads(text)
        fields["sources"] = tuple(Source(**source) for source in fields["sources"])
        fields["levels"] = {int(codec): level for codec, level in fields["levels"].items()}
        fields["producers"] = {int(key): LastOfProducer(*last) for key, last in fields["producers"].items()}
        fields["aborted"] = tuple(AbortedRange(*entry) for entry in fields["aborted"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """Segments that were cleaned into one, which is complete and synced under the suffix `.cleaned`."""

    base_offsets: tuple[int, ...]
    """Base offsets of the segments it replaces, in order; it is named after the first."""
    bytes_read: int
    bytes_written: int
    is_unchanged: bool
    """The group is one segment that lost no records: no file was written, there is nothing to swap."""

    def to_json(self) -> str:
        return json.dumps({"group": asdict(self)}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class CleaningResult:
    """A finished round: everything below `end_offset` is now clean."""

    end_offset: int
    keys: int
    map_capacity: int
    map_bytes_read: int
    records_read: int
    records_kept: int

    def to_json(self) -> str:
        return json.dumps({"done": asdict(self)}, separators=(",", ":"))
