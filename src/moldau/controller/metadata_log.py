"""The metadata log: `__cluster_metadata-0`, a partition like any other, with snapshots beside its segments.

It only reads and writes; `controller.replay` applies the records, and `controller.quorum` decides who may
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
from moldau.protocol.records import ControlType, Record, control_batch, decode_records, encode_batch, split_batches

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
        image = self._load_snapshot()
        if self.partition.log_start_offset > image.offset + 1:
            raise StartupError(
                f"{self.directory}: the metadata log begins at {self.partition.log_start_offset}, and no snapshot "
                f"reaches that far; restore the newest .checkpoint file"
            )
        for header, group in self._batches(image.offset + 1):
            self._records_since_snapshot += len(group)
            image = replay_records(image, group, offset=header.last_offset, epoch=header.partition_leader_epoch).image
        return image

    def _load_snapshot(self) -> MetadataImage:
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
                log.warning("%s is ahead of the log, which is begun anew after it", path)
                self.partition.truncate_fully_and_start_at(snapshot.end_offset)
            self.last_snapshot, self.last_snapshot_bytes = snapshot, len(data)
            offset = snapshot.end_offset - 1
            return replay_records(MetadataImage(), records, offset=offset, epoch=snapshot.epoch).image
        return MetadataImage()

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
                self._last_timestamp_ms = header.max_timestamp
                self._bytes_since_snapshot += header.size_in_bytes
                if header.is_control:
                    yield header, []
                    continue
                values = [decode_metadata_record(one.value or b"") for one in decode_records(batch, header)]
                transaction, group = _settle_transaction(transaction, values)
                yield header, group

    # --- writing ------------------------------------------------------------------------------------

    def append(self, records: Sequence[MetadataRecord], epoch: int) -> int:
        """Write one batch, not yet synced; returns its last offset."""
        encoded = [Record(delta, 0, None, encode_metadata_record(one)) for delta, one in enumerate(records)]
        now_ms = self._clock.now_ms()
        last_offset = self._append(encode_batch(encoded, base_timestamp=now_ms), epoch, now_ms)
        self._records_since_snapshot += len(records)
        return last_offset

    def append_leader_change(self, node_id: int, epoch: int) -> int:
        """Write the first record of a new leader epoch; leader and only voter are this node."""
        voters = b"\x02" + node_id.to_bytes(4, "big") + b"\0"
        value = b"\0\0" + node_id.to_bytes(4, "big") + voters + voters + b"\0"
        now_ms = self._clock.now_ms()
        batch = control_batch(ControlType.LEADER_CHANGE, value, timestamp=now_ms)
        return self._append(batch, epoch, now_ms)

    def _append(self, batch: bytes, epoch: int, now_ms: int) -> int:
        header = BatchHeader.at(batch)
        base_offset = self.partition.append(bytearray(batch), header, epoch, now_ms)
        self._last_timestamp_ms = now_ms
        self._bytes_since_snapshot += len(batch)
        return base_offset + header.last_offset_delta

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

    def save_snapshot(self, image: MetadataImage) -> SnapshotId:
        """Write a snapshot of a committed image; may run concurrently with appends, since images are immutable."""
        snapshot = SnapshotId(image.offset + 1, image.epoch)
        bytes_before, records_before = self._bytes_since_snapshot, self._records_since_snapshot
        batches = encode_snapshot(
            image_records(image),
            epoch=image.epoch,
            last_timestamp_ms=self._last_timestamp_ms,
            now_ms=self._clock.now_ms(),
        )
        self.last_snapshot_bytes = save_snapshot(self._files, self.directory, snapshot, batches)
        self.last_snapshot, self.last_snapshot_ms = snapshot, self._clock.monotonic_ms()
        self._bytes_since_snapshot -= bytes_before
        self._records_since_snapshot -= records_before
        return snapshot

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
