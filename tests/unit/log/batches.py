"""Batches and logs for the log's tests."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moldau.core.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.files import Files
from moldau.log.partition_log import PartitionLog
from moldau.log.recovery.loading import LastRun, create_log, open_log
from moldau.protocol.record_batch import TRANSACTIONAL_BIT, BatchHeader
from moldau.protocol.records import ControlType, Record, encode_batch, end_transaction_marker, split_batches

TP = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000


def data_batch(
    count: int = 1,
    *,
    timestamp: int = NOW_MS,
    size: int = 10,
    timestamps: list[int] | None = None,
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = 0,
    is_transactional: bool = False,
    codec: int = 0,
    value: bytes | None = None,
) -> bytearray:
    """A batch as a producer sends it."""
    stamps = timestamps or [timestamp] * count
    content = b"v" * size if value is None else value
    records = [Record(index, stamp - stamps[0], b"k%d" % index, content) for index, stamp in enumerate(stamps)]
    return bytearray(
        encode_batch(
            records,
            base_timestamp=stamps[0],
            codec=codec,
            attributes=TRANSACTIONAL_BIT if is_transactional else 0,
            producer_id=producer_id,
            producer_epoch=producer_epoch if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
        )
    )


def marker(producer_id: int, *, commit: bool, producer_epoch: int = 0, timestamp: int = NOW_MS) -> bytearray:
    return bytearray(
        end_transaction_marker(
            ControlType.COMMIT if commit else ControlType.ABORT,
            timestamp=timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=7,
        )
    )


def append(
    log: PartitionLog, batch: bytearray | None = None, *, epoch: int = 0, now_ms: int = NOW_MS, **kw: Any
) -> int:
    """Append a batch as the broker does, and let the high watermark follow."""
    made = data_batch(**kw) if batch is None else batch
    offset = log.append(memoryview(made), tuple(BatchHeader.at(made)), epoch, now_ms)
    log.high_watermark = log.log_end_offset
    return offset


def new_log(tmp_path: Path, files: Files | None = None, **config: Any) -> PartitionLog:
    return create_log(str(tmp_path / str(TP)), TP, LogConfig(**config), files=files)


def reopened(log: PartitionLog, last_run: LastRun | None = None, *, allow_cut: bool = False) -> PartitionLog:
    """Open the same directory again, by default as after a crash that lost nothing."""
    log.abandon()
    return open_log(
        log.directory, log.topic_partition, log.config, last_run, files=log.files, truncate_corruption=allow_cut
    )


def clean_run(log: PartitionLog) -> LastRun:
    """What the checkpoints say after an orderly end."""
    return LastRun(True, log.recovery_point, log.log_start_offset, log.high_watermark)


def batches_of(log: PartitionLog, *, max_bytes: int = 1 << 20) -> Iterator[tuple[BatchHeader, bytes]]:
    """Every batch of the log, by reading it from start to end as a consumer does."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, max_bytes, log.log_end_offset, True)
        if part.length == 0:
            return
        data = os.pread(part.file.fd, part.length, part.position)
        assert len(data) == part.length
        for header, batch in split_batches(data):
            assert offset <= header.last_offset
            yield header, bytes(batch)
            offset = header.last_offset + 1


def base_offsets(log: PartitionLog, **kw: Any) -> list[int]:
    return [header.base_offset for header, _ in batches_of(log, **kw)]


class FaultyFiles(Files):
    """A disk that fails on request."""

    def __init__(self) -> None:
        self.room: int | None = None
        """Bytes that can still be written; `None` for all you like."""
        self.is_sync_broken = False
        self.syncs: list[str] = []

    def write(self, fd: int, data: Any) -> int:  # type: ignore[override]
        if self.room is None:
            return os.write(fd, data)
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(fd, memoryview(data)[: self.room])
        self.room -= written
        return written

    def sync(self, fd: int) -> None:
        self.syncs.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        if self.is_sync_broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(fd)
