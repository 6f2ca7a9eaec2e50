"""The small files of a partition's directory: epoch checkpoint, topic id, producer snapshots.

Each is read on first use, so that a start with thousands of partitions reads none of them, and written later by the
maintenance thread. Start at `Snapshots`.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

from moldau.core.ids import parse_uuid, render_uuid
from moldau.log.errors import CorruptSnapshotError
from moldau.log.files import Files
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.producer_state import Marker, ProducerStates, read_marker
from moldau.log.segments.segment import Segment, file_name
from moldau.log.segments.txn_index import AbortedTransaction
from moldau.protocol.record_batch import CONTROL_BIT, BatchHeader

__all__ = ["EPOCHS_FILE", "METADATA_FILE", "EpochFile", "PartitionMetadata", "Snapshots", "track_batch", "track_marker"]

log = logging.getLogger("moldau.log")

EPOCHS_FILE: Final = "leader-epoch-checkpoint"
METADATA_FILE: Final = "partition.metadata"


class EpochFile:
    """The leader epochs of a partition and their checkpoint file."""

    __slots__ = ("_epochs", "_files", "_lock", "_pending", "_saving", "is_saved", "path")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.path = f"{directory}/{EPOCHS_FILE}"
        self._epochs: LeaderEpochs | None = None
        self._pending: tuple[int, int] | None = None
        self._lock = threading.RLock()
        """Guards the epochs, which the maintenance thread truncates; never held while writing."""
        self._saving = threading.Lock()
        self.is_saved = True

    @property
    def epochs(self) -> LeaderEpochs:
        with self._lock:
            if self._epochs is None:
                self._epochs = self._load()
                if self._pending is not None:
                    self._epochs.assign(*self._pending)
            return self._epochs

    def _load(self) -> LeaderEpochs:
        try:
            return LeaderEpochs.parse(self._files.read_file(self.path).decode())
        except FileNotFoundError:
            return LeaderEpochs()
        except ValueError as error:
            log.error("%s is corrupt and ignored: %s", self.path, error)
            return LeaderEpochs()

    def start(self, epochs: LeaderEpochs, *, is_saved: bool = False) -> None:
        """Use the epochs that recovery rebuilt."""
        self._epochs, self.is_saved = epochs, is_saved

    def begin(self, epoch: int, start_offset: int) -> None:
        """Begin an epoch as leader, without saving it yet.

        It is saved after its first record: thousands of partitions begin an epoch at every start, and most get no
        record.
        """
        with self._lock:
            if self._epochs is None:
                self._pending = (epoch, start_offset)
            else:
                self._epochs.assign(epoch, start_offset)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Assign an epoch whose first record was written."""
        with self._lock:
            self.epochs.assign(epoch, start_offset)
            self.is_saved = False

    def truncate_end(self, offset: int) -> None:
        with self._lock:
            if self.epochs.truncate_end(offset):
                self.is_saved = False

    def truncate_start(self, offset: int) -> None:
        with self._lock:
            if self.epochs.truncate_start(offset):
                self.is_saved = False

    def clear(self) -> None:
        with self._lock:
            self.start(LeaderEpochs())

    def save(self) -> None:
        with self._saving:
            with self._lock:
                if self.is_saved:
                    return
                text = self.epochs.render()
                self.is_saved = True
            try:
                self._files.atomic_write(self.path, text.encode())
            except OSError:
                self.is_saved = False
                raise


class PartitionMetadata:
    """The topic id of a directory: distinguishes a topic from an older one of the same name."""

    __slots__ = ("_files", "_is_loaded", "_topic_id", "path")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.path = f"{directory}/{METADATA_FILE}"
        self._topic_id: uuid.UUID | None = None
        self._is_loaded = False

    @property
    def topic_id(self) -> uuid.UUID | None:
        if not self._is_loaded:
            self._topic_id = self._load()
            self._is_loaded = True
        return self._topic_id

    def _load(self) -> uuid.UUID | None:
        try:
            lines = self._files.read_file(self.path).decode().splitlines()
            fields = dict(line.split(": ", 1) for line in lines if line)
            return parse_uuid(fields["topic_id"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError) as error:
            log.error("%s is corrupt and ignored: %r", self.path, error)
            return None

    def assume(self, topic_id: uuid.UUID) -> None:
        """Use an id that is known without reading the file."""
        self._topic_id, self._is_loaded = topic_id, True

    def save(self, topic_id: uuid.UUID) -> None:
        """Write the file without a sync; the partition's first flush syncs it."""
        try:
            self._files.write_file(self.path, f"version: 0\ntopic_id: {render_uuid(topic_id)}\n".encode())
        except OSError:
            self._files.unlink(self.path)  # a partial file would be reported as damaged
            raise
        self._topic_id, self._is_loaded = topic_id, True


class Snapshots:
    """The producer snapshots of a partition, by the offset in their file name."""

    __slots__ = ("_directory", "_files", "_lock", "_pending", "offsets")

    def __init__(self, files: Files, directory: str, offsets: Sequence[int] = ()) -> None:
        self._files = files
        self._directory = directory
        self._lock = threading.Lock()
        self._pending: dict[int, bytes] = {}
        self.offsets = set(offsets)

    def path(self, offset: int) -> str:
        return f"{self._directory}/{file_name(offset, '.snapshot')}"

    def keep(self, offset: int, states: ProducerStates) -> None:
        """Take a snapshot as of `offset`, to be written by `save`."""
        if offset not in self.offsets:
            self._pending[offset] = states.encode()
            self.offsets.add(offset)

    def save(self) -> None:
        with self._lock:
            for offset, data in list(self._pending.items()):
                self._files.write_file(self.path(offset), data, sync=True)
                self._pending.pop(offset, None)

    def discard(self, offsets: Iterable[int]) -> None:
        with self._lock:
            for offset in list(offsets):
                if offset in self.offsets:
                    self._files.unlink(self.path(offset))
                    self.offsets.discard(offset)
                    self._pending.pop(offset, None)

    def discard_above(self, offset: int) -> None:
        self.discard([known for known in list(self.offsets) if known > offset])

    def newest(self, end_offset: int) -> tuple[int, ProducerStates]:
        """The newest usable snapshot up to `end_offset`, and its content; (0, empty) if there is none."""
        for offset in sorted((known for known in list(self.offsets) if known <= end_offset), reverse=True):
            try:
                data = self._pending.get(offset) or self._files.read_file(self.path(offset))
                return offset, ProducerStates.decode(data)
            except FileNotFoundError:
                self.offsets.discard(offset)
            except CorruptSnapshotError as error:
                log.warning("%s is corrupt and removed: %s", self.path(offset), error)
                self.discard([offset])
        return 0, ProducerStates()

    def load(self, segments: Sequence[Segment], end_offset: int, now_ms: int) -> ProducerStates:
        """Return the producer state as of `end_offset`: the newest snapshot plus the batches written since."""
        start, states = self.newest(end_offset)
        for segment, following in zip_longest(segments, segments[1:]):
            if segment.size == 0 or (following is not None and following.base_offset <= start) or start >= end_offset:
                continue
            first = segment.find(start)
            for position, header in segment.headers(segment.size if first is None else first):
                if header.base_offset >= end_offset:
                    break
                if header.producer_id >= 0 and header.base_offset >= start:
                    batch = segment.read(position, header.size_in_bytes) if header.is_control else b""
                    track_batch(states, None, batch, header, header.base_offset, now_ms)
        return states


def track_batch(  # noqa: PLR0917 - called once per idempotent batch, and keywords cost
    states: ProducerStates,
    segment: Segment | None,
    batch: bytes | bytearray | memoryview,
    header: tuple[int, ...],
    base_offset: int,
    now_ms: int,
) -> None:
    """Update the producer state for a batch with a producer id; an abort is also added to the segment's index."""
    if not header[5] & CONTROL_BIT:
        states.update(header, base_offset, now_ms)
        return
    track_marker(states, segment, read_marker(batch, BatchHeader._make(header)), header, base_offset, now_ms)


def track_marker(  # noqa: PLR0917
    states: ProducerStates,
    segment: Segment | None,
    marker: Marker | None,
    header: tuple[int, ...],
    base_offset: int,
    now_ms: int,
) -> None:
    """Update the producer state for a control batch; `marker` is `None` for other control records."""
    completed = None if marker is None else states.complete(header, base_offset, marker, now_ms)
    if completed is not None and completed.is_aborted and segment is not None:
        stable_offset = states.stable_offset_after(completed)
        segment.txn_index.add(
            AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable_offset)
        )
        segment.is_index_saved = False
