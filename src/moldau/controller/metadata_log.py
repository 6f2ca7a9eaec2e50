"""The metadata log: `__cluster_metadata-0`, a partition like any other, with snapshots beside its segments.

It only reads and writes; `controller.replay` applies the records, and `controller.quorum.quorum` decides who may
write. Start at `MetadataLog.load`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from typing import Final

from moldau.controller.image import MetadataImage
from moldau.controller.replay import replay_records
from moldau.controller.snapshots import (
    SnapshotId,
    decode_snapshot,
    encode_snapshot,
    image_records,
    newest_first,
    save_snapshot,
    snapshot_name,
)
from moldau.controller.topic_names import METADATA_TOPIC
from moldau.core.clock import Clock
from moldau.core.errors import MoldauError, StartupError
from moldau.core.ids import TopicPartition
from moldau.log.partition_log import PartitionLog
from moldau.protocol.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from moldau.protocol.record_batch import BatchHeader
from moldau.protocol.records import ControlType, Record, decode_records, encode_batch, split_batches

__all__ = ["BOOTSTRAP_FILE", "METADATA_PARTITION", "MetadataLog"]

log = logging.getLogger(__name__)

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC, 0)
BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
"""A file next to the log's folder: feature levels and credentials given when the folder was formatted."""

READ_BYTES: Final = 8 * 1024 * 1024
SNAPSHOTS_KEPT: Final = 2
FOREVER: Final = 2**63 - 1
SLOW_REPLAY_RECORDS: Final = 4000
"""Replaying this many records takes about 0.1 s; above it a snapshot is worthwhile."""


class MetadataLog:
    def __init__(self, partition: PartitionLog, clock: Clock, *, snapshot_after_bytes: int, keep_bytes: int) -> None:
        self.partition = partition
        self._files = partition.files
        self._clock = clock
        self._snapshot_after_bytes = snapshot_after_bytes
        self._keep_bytes = keep_bytes
        self._bytes_since_snapshot = 0
        self._records_since_snapshot = 0
        self._last_timestamp_ms = -1
        self._is_in_transaction = False
        self.last_snapshot: SnapshotId | None = None
        self.last_snapshot_bytes = 0
        self.last_snapshot_ms = clock.monotonic_ms()

    @property
    def directory(self) -> str:
        return self.partition.directory

    @property
    def end_offset(self) -> int:
        return self.partition.log_end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the newest batch or, if the log has none, of the last snapshot; 0 if there is neither."""
        snapshot_epoch = self.last_snapshot.epoch if self.last_snapshot is not None else 0
        newest = self.partition.leader_epochs.latest
        return max(newest, snapshot_epoch, 0)

    # --- reading ------------------------------------------------------------------------------------

    def load(self) -> MetadataImage:
        """Read the newest complete snapshot and replay the records after it."""
        image = self.load_snapshot()
        if self.partition.log_start_offset > image.offset + 1:
            raise StartupError(
                f"{self.directory}: the metadata log begins at {self.partition.log_start_offset}, and no snapshot "
                f"reaches that far; restore the newest .checkpoint file"
            )
        for header, group in self._batches(image.offset + 1):
            self._last_timestamp_ms = header.max_timestamp
            self._bytes_since_snapshot += header.size_in_bytes
            self._records_since_snapshot += len(group)
            image = replay_records(image, group, offset=header.last_offset, epoch=header.partition_leader_epoch).image
        return image

    def load_snapshot(self) -> MetadataImage:
        """The image of the newest complete snapshot; the log begins anew behind it if it ends before."""
        names = self._files.names(self.directory)
        for name in names:
            if name.endswith(".checkpoint.part"):
                self._files.unlink(os.path.join(self.directory, name))
        for snapshot in newest_first(names):
            path = os.path.join(self.directory, snapshot_name(snapshot))
            try:
                data = self._files.read_file(path)
                records = decode_snapshot(data)
            except MoldauError as error:
                log.error("%s cannot be used: %s", path, error)
                continue
            if snapshot.end_offset > self.end_offset:
                log.warning("%s is ahead of the log; the log restarts after it", path)
                self.partition.truncate_fully_and_start_at(snapshot.end_offset)
            self.last_snapshot, self.last_snapshot_bytes = snapshot, len(data)
            offset = snapshot.end_offset - 1
            return replay_records(MetadataImage(), records, offset=offset, epoch=snapshot.epoch).image
        return MetadataImage()

    def replayed(self, image: MetadataImage, end_offset: int) -> MetadataImage:
        """The image with the records below `end_offset` that it does not have yet, but for an open transaction's."""
        settled = image
        for header, group in self._batches(image.offset + 1):
            if header.last_offset >= end_offset:
                break
            image = replay_records(image, group, offset=header.last_offset, epoch=header.partition_leader_epoch).image
            if not self._is_in_transaction:
                settled = image
        return settled

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from `offset` on, at least one if there is any."""
        part = self.partition.read(offset, max_bytes, self.end_offset, True)
        return b"" if part.length == 0 else self._files.pread(part.file.fd, part.length, part.position)

    def bootstrap_records(self) -> list[MetadataRecord]:
        """The records the folder was formatted with, which are the first to be written to an empty log."""
        path = os.path.join(os.path.dirname(self.directory), BOOTSTRAP_FILE)
        try:
            return decode_snapshot(self._files.read_file(path))
        except FileNotFoundError:
            return []
        except MoldauError as error:
            raise StartupError(f"{path} cannot be read: {error}") from error

    def _batches(self, offset: int) -> Iterator[tuple[BatchHeader, list[MetadataRecord]]]:
        """Yield data batches from `offset` on; a transaction's records are returned with the batch that ends it."""
        transaction: list[MetadataRecord] | None = None
        while offset < self.end_offset:
            part = self.partition.read(offset, READ_BYTES, self.end_offset, True)
            data = self._files.pread(part.file.fd, part.length, part.position)
            for header, batch in split_batches(data):
                offset = header.last_offset + 1
                if header.is_control:
                    yield header, []
                    continue
                values = [decode_metadata_record(one.value or b"") for one in decode_records(batch, header)]
                transaction, group = _settle_transaction(transaction, values)
                self._is_in_transaction = transaction is not None
                yield header, group

    # --- writing ------------------------------------------------------------------------------------

    def append(self, records: Sequence[MetadataRecord], epoch: int) -> int:
        """Write one batch, not yet synced; returns its last offset."""
        return self.append_batch(self.encoded(records), epoch)

    def encoded(self, records: Sequence[MetadataRecord]) -> bytes:
        """The records as one batch, which gets its offset and its epoch when it is appended."""
        encoded = [Record(delta, 0, None, encode_metadata_record(one)) for delta, one in enumerate(records)]
        return encode_batch(encoded, base_timestamp=self.now_ms())

    def append_batch(self, batch: bytes, epoch: int) -> int:
        """Write an encoded batch, not yet synced; returns its last offset."""
        header = BatchHeader.at(batch)
        base_offset = self.partition.append(bytearray(batch), header, epoch, self.now_ms())
        self._last_timestamp_ms = header.max_timestamp
        self._bytes_since_snapshot += len(batch)
        if not header.is_control:
            self._records_since_snapshot += header.records_count
        return base_offset + header.last_offset_delta

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def flush(self) -> None:
        """Sync everything appended so far to disk; raises `FatalDiskError` if that fails.

        A `StorageError` means that it was not attempted, because no file descriptor was free.
        """
        self.partition.flush()

    def take_back(self, offset: int) -> None:
        """Truncate uncommitted records from `offset` on.

        If that fails too, the log goes offline: later decisions must not build on records that were not applied.
        """
        self.partition.truncate_to(offset)

    # --- snapshots ----------------------------------------------------------------------------------

    def is_snapshot_due(self, image: MetadataImage) -> bool:
        """Whether enough was written since the last snapshot, or the replay at startup would take noticeably long."""
        if self._bytes_since_snapshot > self._snapshot_after_bytes:
            return True
        partitions = sum(len(topic.partitions) for topic in image.topics.values())
        return self._records_since_snapshot > max(SLOW_REPLAY_RECORDS, 2 * partitions)

    def save_snapshot(self, image: MetadataImage, quorum: Sequence[tuple[ControlType, bytes]] = ()) -> SnapshotId:
        """Write a snapshot of a committed image; may run concurrently with appends, since images are immutable.

        `quorum` are control records about the voters of a dynamic quorum.
        """
        snapshot = SnapshotId(image.offset + 1, image.epoch)
        bytes_before, records_before = self._bytes_since_snapshot, self._records_since_snapshot
        batches = encode_snapshot(
            image_records(image),
            epoch=image.epoch,
            last_timestamp_ms=self._last_timestamp_ms,
            now_ms=self._clock.now_ms(),
            quorum=quorum,
        )
        self.last_snapshot_bytes = save_snapshot(self._files, self.directory, snapshot, batches)
        self.last_snapshot, self.last_snapshot_ms = snapshot, self._clock.monotonic_ms()
        self._bytes_since_snapshot -= bytes_before
        self._records_since_snapshot -= records_before
        return snapshot

    def read_snapshot(self, snapshot: tuple[int, int]) -> bytes | None:
        """The bytes of a snapshot; `None` if there is none with this id."""
        try:
            return self._files.read_file(os.path.join(self.directory, snapshot_name(SnapshotId(*snapshot))))
        except FileNotFoundError:
            return None

    def install_snapshot(self, snapshot: tuple[int, int], data: bytes) -> MetadataImage | None:
        """Save a snapshot of another node and begin the log behind it; `None` if it is damaged, and nothing changed."""
        known = SnapshotId(*snapshot)
        try:
            records = decode_snapshot(data)
        except MoldauError as error:
            log.error("the snapshot up to %d that was fetched cannot be used: %s", known.end_offset, error)
            return None
        save_snapshot(self._files, self.directory, known, [data])
        self.partition.truncate_fully_and_start_at(known.end_offset)
        self.partition.flush()
        self.last_snapshot, self.last_snapshot_bytes = known, len(data)
        self.last_snapshot_ms = self._clock.monotonic_ms()
        self._bytes_since_snapshot = self._records_since_snapshot = 0
        return replay_records(MetadataImage(), records, offset=known.end_offset - 1, epoch=known.epoch).image

    def trim(self) -> None:
        """Delete old snapshots and, if the log exceeds its retention size, the segments that the kept snapshots cover.

        The log after the oldest kept snapshot stays too, in case the newest one is damaged.
        """
        snapshots = newest_first(self._files.names(self.directory))
        for old in snapshots[SNAPSHOTS_KEPT:]:
            self._files.unlink(os.path.join(self.directory, snapshot_name(old)))
        if snapshots and self.partition.size_in_bytes > self._keep_bytes:
            covered = snapshots[:SNAPSHOTS_KEPT][-1].end_offset
            following = [segment.base_offset for segment in self.partition.segments[1:]]
            count = sum(base <= covered for base in following)
            self.partition.delete_segments(count, self._clock.now_ms(), "a snapshot has what they say")
            self.partition.delete_retired(FOREVER)


def _settle_transaction(
    transaction: list[MetadataRecord] | None, values: Sequence[MetadataRecord]
) -> tuple[list[MetadataRecord] | None, list[MetadataRecord]]:
    """Hold back records of an open transaction; return them when it ends and drop them when it is aborted."""
    group: list[MetadataRecord] = []
    for record in values:
        if isinstance(record, BeginTransactionRecord):
            transaction = []
        elif isinstance(record, AbortTransactionRecord):
            transaction = None
        elif isinstance(record, EndTransactionRecord):
            group += transaction or []
            transaction = None
        elif transaction is not None:
            transaction.append(record)
        else:
            group.append(record)
    return transaction, group
