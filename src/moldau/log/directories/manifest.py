"""The manifest: what has to be in a log directory, so that missing files are noticed at the next start.

    moldau-manifest 1
    broker stopped 7 1234 1c8a03f2                        state, metadata epoch, metadata end offset, checksum
    orders 0 Xb3…kQ 5210 0:1048 2000:990:34:9ae1f00c 5000:77 5fe2c3d1
    end

A line per partition with records on disk: topic, partition, topic id, the end offset of the log, its segments, a
checksum of the line. A segment is `base offset:size`, followed by size and CRC-32C of its `.txnindex` if there is one,
or by `?` if that is unknown. A segment without a size only has to exist.

A crash must never look like a loss. Four rules ensure that:

1. A manifest lists only what is certainly on disk: segments below the recovery point, whose files, indexes and
   directory entries are synced. It may lag behind, so a roll does not wait for it.
2. A file is deleted, or replaced by a shorter one, only after a manifest that does not list it is on disk
   (`log.directories.manifest_keeper`). If a full disk prevents that, the manifest is removed instead.
3. A partition's folder is deleted only after the deletion of its topic is committed in the metadata. The metadata
   decides, by topic id, whether a missing folder is a loss.
4. Another broker (Apache Kafka, an older moldau) does not update the file, so it may be out of date. Every start of any
   broker takes a new epoch of the metadata quorum, and ours is written to the manifest right after `quorum-state`. A
   newer epoch than the manifest's means that another broker ran, and then nothing is compared
   (`Manifest.is_outdated`). A crash of ours between the two writes has the same effect, for one start.

An operator who removes a partition's line accepts that partition as it is; without the file, everything is accepted.
Pure: text in, findings out. Start at `loss`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crc32c import crc32c

from moldau.core.ids import TopicPartition, parse_uuid, render_uuid

__all__ = [
    "MANIFEST",
    "NO_TXN_INDEX",
    "Manifest",
    "PartitionEntry",
    "SegmentEntry",
    "TxnMark",
    "loss",
    "parse_manifest",
]

MANIFEST: Final = "moldau-manifest"
_FIRST_LINE: Final = "moldau-manifest 1"
_LAST_LINE: Final = "end"
_RUNNING, _STOPPED = "running", "stopped"
_UNKNOWN: Final = "?"
_NO_ID: Final = "-"


class TxnMark(NamedTuple):
    """A transaction index as it is on disk; a missing file counts as an empty one."""

    size: int = 0
    crc: int = 0

    @classmethod
    def of(cls, data: bytes) -> TxnMark:
        return cls(len(data), crc32c(data) if data else 0)


NO_TXN_INDEX: Final = TxnMark()


class SegmentEntry(NamedTuple):
    base_offset: int
    size: int | None = None
    """`None`: the segment is still appended to, and only has to exist."""
    txn_mark: TxnMark | None = NO_TXN_INDEX
    """`None`: not known."""

    def render(self) -> str:
        base_offset, size, mark = self
        if size is None:
            return str(base_offset)
        if mark is None:
            return f"{base_offset}:{size}:{_UNKNOWN}"
        return f"{base_offset}:{size}:{mark.size}:{mark.crc:08x}" if mark.size else f"{base_offset}:{size}"

    @classmethod
    def parse(cls, text: str) -> SegmentEntry:
        words = text.split(":")
        base_offset = int(words[0])
        if len(words) == 2:
            return cls(base_offset, int(words[1]))
        if len(words) == 1:
            return cls(base_offset, None, None)
        if words[2:] == [_UNKNOWN]:
            return cls(base_offset, int(words[1]), None)
        _, size, mark_size, crc = words
        return cls(base_offset, int(size), TxnMark(int(mark_size), int(crc, 16)))


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    topic_id: uuid.UUID | None
    end_offset: int
    """Everything below it is on disk, except what was deleted."""
    segments: tuple[SegmentEntry, ...]

    def render(self, topic_partition: TopicPartition) -> str:
        """The partition's line, with its checksum."""
        topic_id = _NO_ID if self.topic_id is None else render_uuid(self.topic_id)
        segments = " ".join(segment.render() for segment in self.segments)
        return _with_checksum(
            f"{topic_partition.topic} {topic_partition.partition} {topic_id} {self.end_offset} {segments}"
        )

    @classmethod
    def parse(cls, fields: Sequence[str]) -> PartitionEntry:
        topic_id, end_offset, *segments = fields
        return cls(
            None if topic_id == _NO_ID else parse_uuid(topic_id),
            int(end_offset),
            tuple(SegmentEntry.parse(segment) for segment in segments if segment),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    is_stopped: bool = False
    """Written by a clean shutdown: files are exactly as listed."""
    metadata_epoch: int = -1
    metadata_end_offset: int = 0
    partitions: Mapping[TopicPartition, PartitionEntry] = field(default_factory=dict)
    damaged_lines: int = 0

    def is_outdated(self, metadata_epoch: int) -> bool:
        """Whether another broker has run on these files since, according to the quorum's epoch found at start."""
        return metadata_epoch > self.metadata_epoch


def render_manifest(lines: Iterable[str], *, is_stopped: bool, metadata_epoch: int, metadata_end_offset: int) -> str:
    """The file's text, from rendered lines of partitions."""
    state = _STOPPED if is_stopped else _RUNNING
    broker = _with_checksum(f"broker {state} {metadata_epoch} {metadata_end_offset}")
    return "\n".join([_FIRST_LINE, broker, *lines, _LAST_LINE, ""])


def parse_manifest(text: str) -> Manifest:
    """Parse a manifest; raises `ValueError` if it cannot be used. Damaged partition lines are skipped."""
    lines = text.splitlines()
    if len(lines) < 3 or lines[0] != _FIRST_LINE or lines[-1] != _LAST_LINE:
        raise ValueError("the first or last line of a manifest is missing")
    word, state, epoch, end_offset = _check_line(lines[1])
    if word != "broker" or state not in (_RUNNING, _STOPPED):
        raise ValueError(f"unknown second line {lines[1]!r}")
    partitions, damaged = {}, 0
    for line in lines[2:-1]:
        try:
            topic, partition, *rest = _check_line(line)
            partitions[TopicPartition(topic, int(partition))] = PartitionEntry.parse(rest)
        except ValueError:
            damaged += 1
    return Manifest(state == _STOPPED, int(epoch), int(end_offset), partitions, damaged)


def _with_checksum(line: str) -> str:
    return f"{line} {crc32c(line.encode()):08x}"


def _check_line(line: str) -> list[str]:
    content, _, crc = line.rpartition(" ")
    if int(crc, 16) != crc32c(content.encode()):
        raise ValueError("a line fails its checksum")
    return content.split(" ")


def loss(
    entry: PartitionEntry, found: Mapping[int, int], *, is_exact: bool = False, log_start_offset: int = 0
) -> str | None:
    """A message that says what of a partition is missing; `None` when nothing is.

    `found` are the sizes of its segments by base offset. `is_exact` says that nothing was written since the manifest.
    Segments entirely below `log_start_offset` are not required: their records were deleted.
    """
    ends = [segment.base_offset for segment in entry.segments[1:]] + [entry.end_offset]
    for segment, end_offset in zip(entry.segments, ends, strict=True):
        if end_offset <= log_start_offset:
            continue
        size = found.get(segment.base_offset)
        name = f"{segment.base_offset:020d}.log"
        if size is None:
            if segment.size != 0:
                return f"{name} with offsets {segment.base_offset} to {end_offset - 1} is missing"
        elif segment.size is not None and (size < segment.size or (is_exact and size != segment.size)):
            return f"{name} has {size} bytes, but had {segment.size}"
    return None
