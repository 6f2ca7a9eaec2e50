"""A partition of an internal topic, as its coordinator writes and reads it.

`PartitionAppender` is what `coordinator.runtime` asks of a partition; `replay_log` feeds a core from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from moldau.coordinator.runtime.outcome import CoordinatorRecord, Producer
from moldau.core.errors import ErrorCode, MoldauError
from moldau.log.checked_read import LogExtent, checked_batches
from moldau.log.errors import DamagedLogError
from moldau.log.segments.batch_scan import WINDOW_BYTES
from moldau.protocol.record_batch import HEADER, TRANSACTIONAL_BIT, BatchHeader
from moldau.protocol.records import (
    ControlType,
    InvalidRecordError,
    Record,
    control_type,
    decode_records,
    encode_batch,
)

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.partition import Partition
    from moldau.coordinator.runtime.shard import CoordinatorCore
    from moldau.log.partition_log import PartitionLog

__all__ = ["PartitionAppender", "replay_log"]


class RecordsTooLargeError(MoldauError):
    """One decision's records exceed what the topic takes as one batch."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class PartitionAppender:
    """Used on the loop. Appends keep the order of calls, and so do commits."""

    def __init__(self, broker: Broker, partition: Partition, codec: int) -> None:
        self._broker = broker
        self._partition = partition
        self._codec = codec

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: Producer | None,
        then: Callable[[MoldauError | None], None],
    ) -> None:
        now_ms = self._broker.clock.now_ms()
        batch = _encode(records, producer, now_ms, self._codec)

        def on_appended(error: MoldauError | None) -> None:
            if error is None:
                self._partition.publish(len(records), len(batch))
            then(error)

        self._broker.data_plane.slow_appends.run(lambda: self._append(batch, now_ms), on_appended, len(batch))

    def _append(self, batch: bytearray, now_ms: int) -> None:
        """On the loop, or in the thread for slow appends."""
        partition = self._partition
        most = partition.topic.config.max_message_bytes
        if len(batch) > most:
            raise RecordsTooLargeError(
                f"{partition.topic_partition}: a batch of {len(batch)} bytes is larger than {most}"
            )
        partition.append(memoryview(batch), HEADER.unpack_from(batch), now_ms)

    def when_committed(self, then: Callable[[], None]) -> None:
        """Wait for everything in the log, whoever appended it: replies depend on transaction markers too."""

        def on_committed(code: ErrorCode) -> None:
            # Otherwise another broker leads the partition, and closing the shard answers all waiting requests.
            if code is ErrorCode.NONE:
                then()

        self._partition.when_committed(self._partition.log.log_end_offset, None, on_committed, is_patient=True)


def _encode(records: Sequence[CoordinatorRecord], producer: Producer | None, now_ms: int, codec: int) -> bytearray:
    return bytearray(
        encode_batch(
            [Record(number, 0, key, value) for number, (key, value) in enumerate(records)],
            base_timestamp=now_ms,
            codec=codec,
            attributes=0 if producer is None else TRANSACTIONAL_BIT,
            producer_id=-1 if producer is None else producer.producer_id,
            producer_epoch=-1 if producer is None else producer.producer_epoch,
        )
    )


def replay_log(
    partition_log: PartitionLog,
    core: CoordinatorCore,
    extent: LogExtent,
    is_wanted: Callable[[], bool],
    *,
    after: LogExtent | None = None,
    read_bytes: int = WINDOW_BYTES,
) -> None:
    """Replay the log up to `extent`, from the beginning or from the extent `after`.

    Runs in any thread, as long as no other thread uses the core. Stops early once `is_wanted` returns false. Raises
    `DamagedLogError` at the first damaged batch.
    """
    first_offset = partition_log.log_start_offset if after is None else after.end_offset
    replay = _Replay(core)
    for header, batch in checked_batches(partition_log, extent, after=after, read_bytes=read_bytes):
        if not is_wanted():
            return
        try:
            replay.take(header, batch, first_offset)
        except InvalidRecordError as error:
            raise DamagedLogError(
                f"{partition_log.directory}: the batch of offset {header.base_offset} cannot be read: {error}"
            ) from error
    replay.finish()


class _Replay:
    """Feeds a core with the records that compaction would have kept: the last one of each key.

    Consumers commit the same offsets repeatedly, so most records are never decoded. Transactional records are the
    exception: they take effect in the order of their markers.
    """

    def __init__(self, core: CoordinatorCore) -> None:
        self._core = core
        self._latest: dict[bytes, bytes | None] = {}

    def take(self, header: BatchHeader, batch: memoryview, first_offset: int) -> None:
        is_plain = not (header.is_control or header.is_transactional)
        if not is_plain:
            self.finish()
        for record in decode_records(batch, header):
            if header.base_offset + record.offset_delta < first_offset or record.key is None:
                continue
            if is_plain:
                self._latest.pop(record.key, None)
                self._latest[record.key] = record.value
            elif header.is_control:
                self._end_transaction(header, record)
            else:
                producer = Producer(header.producer_id, header.producer_epoch)
                self._core.replay(record.key, record.value, producer)

    def _end_transaction(self, header: BatchHeader, record: Record) -> None:
        kind = control_type(record.key)
        if kind in (ControlType.COMMIT, ControlType.ABORT):
            self._core.replay_marker(header.producer_id, header.producer_epoch, kind == ControlType.COMMIT)

    def finish(self) -> None:
        latest, self._latest = self._latest, {}
        for key, value in latest.items():
            self._core.replay(key, value)
