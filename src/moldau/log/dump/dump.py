"""The contents of a log's files as text, in the output format of Kafka's dump tool.

Yields lines; `cli.dump_log` prints them. Batches are in `log.dump.dump_batches`, offset and time indexes in
`log.dump.dump_indexes`; the other files are read below. Start at `dump_file`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crc32c import crc32c

from moldau.log.directories.checkpoints import parse_checkpoint
from moldau.log.dump.dump_batches import DumpError, RecordText, dump_batches, plain_text
from moldau.log.dump.dump_indexes import dump_offset_index, dump_time_index
from moldau.log.dump.dump_problems import Problems
from moldau.log.segments.txn_index import ENTRY as TXN_ENTRY

__all__ = ["DumpError", "DumpOptions", "Problems", "dump_file"]

SNAPSHOT_HEAD: Final = struct.Struct(">hIi")
SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
SNAPSHOT_CRC_START: Final = 6
NO_LIMIT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    prints_data: bool = False
    """Show keys and payloads, through `text_of`."""
    is_deep: bool = False
    """Show every record and not only batches."""
    skips_record_metadata: bool = False
    verifies_only: bool = False
    """Compare indexes with the log, and do not print entries that match."""
    checks_sanity_only: bool = False
    """Check an index as a starting broker does: sizes and order only."""
    max_message_bytes: int = 5 * 1024 * 1024
    max_bytes: int = NO_LIMIT
    text_of: RecordText = field(default=plain_text)


def dump_file(path: str, options: DumpOptions, problems: Problems) -> Iterator[str]:
    """The lines for one file, by the type its name says; inconsistencies go to `problems`.

    Raises `DumpError`, possibly after some lines, when a file cannot be read any further.
    """
    name = os.path.basename(path)
    suffix = os.path.splitext(name)[1]
    if suffix in (".log", ".checkpoint"):
        yield from dump_batches(
            Path(path),
            problems,
            is_deep=options.is_deep,
            prints_data=options.prints_data,
            skips_record_metadata=options.skips_record_metadata,
            max_bytes=options.max_bytes,
            text_of=options.text_of,
        )
    elif suffix == ".index":
        yield from dump_offset_index(
            Path(path),
            problems,
            verifies_only=options.verifies_only,
            checks_sanity_only=options.checks_sanity_only,
            max_message_bytes=options.max_message_bytes,
        )
    elif suffix == ".timeindex":
        yield from dump_time_index(
            Path(path), problems, verifies_only=options.verifies_only, checks_sanity_only=options.checks_sanity_only
        )
    elif (dump := _SMALL_FILES.get(suffix) or _SMALL_FILES.get(name)) is not None:
        yield from dump(Path(path), problems)
    else:
        problems.note(f"Ignoring unknown file {path}")


def _dump_txn_index(path: Path, problems: Problems) -> Iterator[str]:
    data = path.read_bytes()
    for start in range(0, len(data) - TXN_ENTRY.size + 1, TXN_ENTRY.size):
        version, producer_id, first_offset, last_offset, last_stable_offset = TXN_ENTRY.unpack_from(data, start)
        if version != 0:
            raise DumpError(f"Unexpected aborted transaction version {version} in transaction index {path}")
        yield (
            f"version: {version} producerId: {producer_id} firstOffset: {first_offset} lastOffset: {last_offset} "
            f"lastStableOffset: {last_stable_offset}"
        )


def _dump_producer_snapshot(path: Path, problems: Problems) -> Iterator[str]:
    data = path.read_bytes()
    if len(data) < SNAPSHOT_HEAD.size:
        problems.note(f"Snapshot is corrupt ({len(data)} bytes)")
        return
    version, crc, count = SNAPSHOT_HEAD.unpack_from(data)
    computed = crc32c(data[SNAPSHOT_CRC_START:])
    if version != 1:
        problems.note(f"Snapshot contained an unknown file version {version}")
    elif crc != computed or len(data) < SNAPSHOT_HEAD.size + count * SNAPSHOT_ENTRY.size:
        problems.note(f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed}")
    else:
        for index in range(count):
            yield _producer_line(SNAPSHOT_ENTRY.unpack_from(data, SNAPSHOT_HEAD.size + index * SNAPSHOT_ENTRY.size))


def _producer_line(entry: tuple[int, ...]) -> str:
    producer_id, producer_epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, opened_at = (
        entry
    )
    opened = f"OptionalLong[{opened_at}]" if opened_at >= 0 else "OptionalLong.empty"
    line = (
        f"producerId: {producer_id} producerEpoch: {producer_epoch} coordinatorEpoch: {coordinator_epoch} "
        f"currentTxnFirstOffset: {opened} lastTimestamp: {timestamp}"
    )
    if last_offset < 0:
        return line
    first_sequence = (last_sequence - offset_delta) & 0x7FFFFFFF
    return (
        f"{line} firstSequence: {first_sequence} lastSequence: {last_sequence} lastOffset: {last_offset} "
        f"offsetDelta: {offset_delta} timestamp: {timestamp}"
    )


def _dump_offset_checkpoint(path: Path, problems: Problems) -> Iterator[str]:
    """Kafka's tool does not dump the text files; these lines follow the format of its other lines."""
    try:
        offsets = parse_checkpoint(path.read_text("utf-8"))
    except ValueError as error:
        raise DumpError(f"{path} is corrupt: {error}") from None
    for (topic, partition), offset in offsets.items():
        yield f"topic: {topic} partition: {partition} offset: {offset}"


def _dump_leader_epochs(path: Path, problems: Problems) -> Iterator[str]:
    try:
        lines = path.read_text("utf-8").splitlines()
        entries = [tuple(map(int, line.split())) for line in lines[2:] if line]
        if lines[0] != "0" or len(entries) != int(lines[1]):
            raise ValueError(f"{lines[1]} entries announced, {len(entries)} found")
        for epoch, start_offset in entries:
            yield f"epoch: {epoch} startOffset: {start_offset}"
    except (ValueError, IndexError) as error:
        raise DumpError(f"{path} is corrupt: {error}") from None


_SMALL_FILES: Final[dict[str, Callable[[Path, Problems], Iterator[str]]]] = {
    ".txnindex": _dump_txn_index,
    ".snapshot": _dump_producer_snapshot,
    "cleaner-offset-checkpoint": _dump_offset_checkpoint,
    "log-start-offset-checkpoint": _dump_offset_checkpoint,
    "recovery-point-offset-checkpoint": _dump_offset_checkpoint,
    "replication-offset-checkpoint": _dump_offset_checkpoint,
    "leader-epoch-checkpoint": _dump_leader_epochs,
}
