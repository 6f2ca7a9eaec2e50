"""The state that a partition keeps for idempotent and transactional producers.

Per producer id: its epoch, its last five batches (to detect a resend and answer it with the offset of the original) and
its open transaction in this partition. `check` validates a batch before the append, `update` and `complete` update the
state afterwards; recovery and truncation replay batches through the same two. This module encodes and decodes
snapshots, `log.partition_files` reads and writes the files. Start at `ProducerStates.check`.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from crc32c import crc32c

from moldau.log.errors import (
    CorruptSnapshotError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
)
from moldau.protocol.record_batch import TRANSACTIONAL_BIT, BatchHeader

__all__ = ["CompletedTransaction", "DuplicateBatch", "Marker", "ProducerState", "ProducerStates", "read_marker"]

_SEQUENCE_MASK: Final = 0x7FFFFFFF
_BATCHES_KEPT: Final = 5
_PREFIX: Final = struct.Struct(">hIi")
_CRC_START: Final = 6
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_VERSION: Final = 1


class DuplicateBatch(NamedTuple):
    """A batch that was appended before, with the offset of the original."""

    base_offset: int
    timestamp: int


class Marker(NamedTuple):
    """The end of a transaction, as read from its control record."""

    is_commit: bool
    coordinator_epoch: int


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """The marker's own offset."""
    is_aborted: bool


class ProducedBatch(NamedTuple):
    """A batch as stored to detect a resend."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class ProducerState:
    """The state of one producer in one partition."""

    __slots__ = (
        "coordinator_epoch",
        "last_append_ms",
        "next_sequence",
        "producer_epoch",
        "producer_id",
        "recent",
        "txn_first_offset",
    )

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.recent: tuple[tuple[int, int, int, int, int], ...] = ()
        """The newest batches, oldest first, with `ProducedBatch`'s fields; plain tuples for speed."""
        self.next_sequence = 0
        self.last_append_ms = -1
        self.coordinator_epoch = -1
        self.txn_first_offset: int | None = None

    def start_epoch(self, producer_epoch: int) -> None:
        """Start a newer producer epoch; sequences begin at zero again."""
        self.producer_epoch = producer_epoch
        self.recent = ()
        self.next_sequence = 0

    @property
    def batches(self) -> tuple[ProducedBatch, ...]:
        """The newest batches, oldest first."""
        return tuple(map(ProducedBatch._make, self.recent))

    @property
    def last_sequence(self) -> int:
        return ProducedBatch._make(self.recent[-1]).last_sequence if self.recent else -1

    @property
    def last_offset(self) -> int:
        return ProducedBatch._make(self.recent[-1]).last_offset if self.recent else -1


class ProducerStates:
    __slots__ = ("_completed", "_entries", "_open")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerState] = {}
        self._open: dict[int, ProducerState] = {}
        """Open transactions by their first offset; offsets only increase, so the first key is the lowest."""
        self._completed: deque[CompletedTransaction] = deque()
        """Transactions whose marker is not yet below the high watermark."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerState]:
        return iter(list(self._entries.values()))

    def get(self, producer_id: int) -> ProducerState | None:
        return self._entries.get(producer_id)

    # --- one batch --------------------------------------------------------------------------------------

    def check(self, header: tuple[int, ...]) -> DuplicateBatch | None:
        """Check a client's data batch by its header fields, in `BatchHeader`'s order.

        `None` means append; a `DuplicateBatch` means reply with it and append nothing. An unknown producer may begin
        with any sequence: retention may have removed its earlier batches.
        """
        entry = self._entries.get(header[9])
        if entry is None:
            return None
        if header[10] == entry.producer_epoch and header[11] == entry.next_sequence and entry.txn_first_offset is None:
            return None
        return self._check_closely(entry, BatchHeader._make(header))

    def _check_closely(self, entry: ProducerState, header: BatchHeader) -> DuplicateBatch | None:
        producer = f"producer {header.producer_id}"
        if header.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpochError(
                f"{producer}: epoch {header.producer_epoch} is behind {entry.producer_epoch}; "
                "a newer instance has taken over"
            )
        if header.producer_epoch == entry.producer_epoch:
            for batch in entry.batches:
                if batch.first_sequence == header.base_sequence and batch.last_sequence == header.last_sequence:
                    return DuplicateBatch(batch.last_offset - batch.offset_delta, batch.timestamp)
        expected = entry.next_sequence if header.producer_epoch == entry.producer_epoch else 0
        if header.base_sequence != expected:
            raise OutOfOrderSequenceError(
                f"{producer}: sequence {header.base_sequence}, expected {expected} (epoch {header.producer_epoch})"
            )
        if entry.txn_first_offset is not None and not header.is_transactional:
            raise InvalidTxnStateError(
                f"{producer}: the batch is not transactional, "
                f"but a transaction is open since offset {entry.txn_first_offset}"
            )
        return None

    def update(self, header: tuple[int, ...], base_offset: int, now_ms: int) -> None:
        """Update the state for a data batch that was appended at `base_offset`."""
        producer_id, producer_epoch, sequence, delta = header[9], header[10], header[11], header[6]
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerState(producer_id, producer_epoch)
        elif entry.producer_epoch != producer_epoch:
            entry.start_epoch(producer_epoch)
        # Offsets committed in a transaction are written by a coordinator, without sequences.
        last_sequence = (sequence + delta) & _SEQUENCE_MASK if sequence >= 0 else -1
        entry.next_sequence = (last_sequence + 1) & _SEQUENCE_MASK
        entry.recent = (
            *entry.recent[1 - _BATCHES_KEPT :],
            (sequence, last_sequence, base_offset + delta, delta, header[8]),
        )
        entry.last_append_ms = now_ms
        if header[5] & TRANSACTIONAL_BIT and entry.txn_first_offset is None:
            entry.txn_first_offset = base_offset
            self._open[base_offset] = entry

    def complete(
        self, header: tuple[int, ...], base_offset: int, marker: Marker, now_ms: int
    ) -> CompletedTransaction | None:
        """Update the state for an end-transaction marker; `None` if the producer had no open transaction here."""
        producer_id, producer_epoch = header[9], header[10]
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerState(producer_id, producer_epoch)
        elif entry.producer_epoch < producer_epoch:
            entry.start_epoch(producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_append_ms = now_ms
        first_offset, entry.txn_first_offset = entry.txn_first_offset, None
        if first_offset is None:
            return None
        self._open.pop(first_offset, None)
        completed = CompletedTransaction(producer_id, first_offset, base_offset, not marker.is_commit)
        self._completed.append(completed)
        return completed

    # --- transactions -----------------------------------------------------------------------------------

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The first offset of the earliest transaction that is open, or whose marker is not below `high_watermark`."""
        if not self._open and not self._completed:
            return None
        completed = self._completed
        while completed and completed[0].last_offset < high_watermark:
            completed.popleft()  # its marker is below the high watermark, so it is no longer needed
        candidates = [transaction.first_offset for transaction in completed]
        candidates.extend(list(self._open)[:1])
        return min(candidates, default=None)

    def has_late_transaction(self, before_ms: int) -> bool:
        """Whether a transaction is open whose last append was before `before_ms`."""
        return any(entry.last_append_ms < before_ms for entry in list(self._open.values()))

    def stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset after `completed` ends, as stored in its index entry."""
        return next(iter(self._open), completed.last_offset + 1)

    def expire(self, now_ms: int, max_age_ms: int) -> int:
        """Remove producers that have been inactive for `max_age_ms` and have no open transaction; return how many."""
        gone = [
            entry.producer_id
            for entry in list(self._entries.values())
            if entry.txn_first_offset is None and now_ms - entry.last_append_ms >= max_age_ms
        ]
        for producer_id in gone:
            self._entries.pop(producer_id, None)
        return len(gone)

    # --- snapshots --------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """The bytes of a `.snapshot` file: each producer with its newest batch."""
        body = b"".join([_encoded_entry(entry) for entry in list(self._entries.values())])
        count = len(body) // _ENTRY.size
        unchecked = _PREFIX.pack(_VERSION, 0, count) + body
        return _PREFIX.pack(_VERSION, crc32c(memoryview(unchecked)[_CRC_START:]), count) + body

    @classmethod
    def decode(cls, data: bytes) -> ProducerStates:
        """Read a snapshot's bytes; raises `CorruptSnapshotError` if they are invalid."""
        if len(data) < _PREFIX.size:
            raise CorruptSnapshotError(f"{len(data)} bytes are too few for a snapshot")
        version, crc, count = _PREFIX.unpack_from(data)
        if version != _VERSION:
            raise CorruptSnapshotError(f"version {version} is not known")
        if crc != crc32c(memoryview(data)[_CRC_START:]) or len(data) != _PREFIX.size + count * _ENTRY.size:
            raise CorruptSnapshotError(f"checksum or size do not fit {count} entries")
        states = cls()
        for fields in sorted(_ENTRY.iter_unpack(data[_PREFIX.size :]), key=lambda fields: fields[7]):
            states._restore(fields)
        return states

    def _restore(self, fields: tuple[int, ...]) -> None:
        producer_id, producer_epoch, last_sequence, last_offset = fields[:4]
        offset_delta, timestamp, coordinator_epoch, txn_first_offset = fields[4:]
        entry = self._entries[producer_id] = ProducerState(producer_id, producer_epoch)
        entry.last_append_ms = timestamp
        entry.coordinator_epoch = coordinator_epoch
        if last_sequence >= 0:
            first_sequence = (last_sequence - offset_delta) & _SEQUENCE_MASK
            entry.recent = (ProducedBatch(first_sequence, last_sequence, last_offset, offset_delta, timestamp),)
            entry.next_sequence = (last_sequence + 1) & _SEQUENCE_MASK
        if txn_first_offset >= 0:
            entry.txn_first_offset = txn_first_offset
            self._open[txn_first_offset] = entry


def _encoded_entry(entry: ProducerState) -> bytes:
    last = ProducedBatch._make(entry.recent[-1] if entry.recent else (-1, -1, -1, 0, -1))
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_append_ms,
        entry.coordinator_epoch,
        -1 if entry.txn_first_offset is None else entry.txn_first_offset,
    )


def read_marker(batch: bytes | bytearray | memoryview, header: BatchHeader) -> Marker | None:
    """Return the transaction marker in a control batch; `None` for control batches of another kind.

    Compaction may leave a marker's header without its record: that transaction ended long ago.
    """
    if header.records_count == 0:
        return None
    # Imported here: record codecs import the compression libraries, which most brokers do not need at startup.
    from moldau.protocol.records import ControlType, control_type, decode_records

    record = next(decode_records(batch, header))
    kind = control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    coordinator_epoch = int.from_bytes(record.value[2:6], "big", signed=True) if record.value else -1
    return Marker(kind == ControlType.COMMIT, coordinator_epoch)
