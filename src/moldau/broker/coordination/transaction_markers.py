"""Markers: the control records that end a transaction in each partition it touched.

A marker goes into the log behind everything of its transaction, readers of committed data get past it, and the
coordinator of groups hears of those in `__consumer_offsets`. Which markers are due is the transaction coordinator's
business (`broker.coordination.transactions`) or an operator's (WriteTxnMarkers). Start at `Markers.write`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from moldau.broker.coordination.internal_topics import CONSUMER_OFFSETS
from moldau.coordinator.transaction.transaction import EPOCH_BUMPED_AT_END, Version
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition
from moldau.log.errors import InvalidProducerEpochError
from moldau.protocol.record_batch import HEADER

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.log.producer_state import ProducerStates

__all__ = ["CoordinatorFencedError", "Marker", "Markers", "check_marker", "is_missing"]

MARKER_BYTES = 78
"""The size of one, for the queue of a slow disk."""


class CoordinatorFencedError(MoldauError):
    """A marker from a coordinator that is no longer the coordinator."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class Marker(NamedTuple):
    """How one producer's transaction ends."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    version: Version = 0
    """The transaction's; from `EPOCH_BUMPED_AT_END` on the epoch is newer than that of the records it ends."""


Done = Callable[[ErrorCode], None]


class Markers:
    """One per broker, used on the loop."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def write(
        self,
        topic_partition: TopicPartition,
        marker: Marker,
        done: Done,
        *,
        may_be_there: bool = False,
        may_go_elsewhere: bool = False,
    ) -> None:
        """Append a marker, and call `done` once it is as safe as that partition's records are.

        A marker that `may_be_there`, from before a crash, is written only where it is missing. One that
        `may_go_elsewhere` is sent to the broker that leads the partition, if that is another one.
        """
        partition = self._broker.partitions.get(topic_partition)
        if partition is None or not partition.is_leader:
            is_known = self._broker.image.partition(*topic_partition) is not None
            remote = self._broker.remote_transactions
            if is_known and remote is not None and may_go_elsewhere:
                remote.write_marker(topic_partition, marker, done)
                return
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        # Batches of the transaction may wait in that queue, and the marker has to come after them.
        batch = bytearray()

        def append() -> None:
            if may_be_there and not is_missing(partition.log.producers, marker):
                return
            check_marker(partition.log.producers, marker, partition.topic_partition)
            now_ms = self._broker.clock.now_ms()
            batch[:] = _encode_marker(marker, now_ms)
            partition.append(batch, HEADER.unpack_from(batch), now_ms)

        def on_appended(error: MoldauError | None) -> None:
            if error is not None:
                done(error.code)
                return
            if batch:
                partition.markers += 1
                partition.publish(1, len(batch))
            if partition.topic.name == CONSUMER_OFFSETS.name:
                self._tell_group_coordinator(partition.index, marker)
            partition.when_committed(partition.log.log_end_offset, None, done, is_patient=True)

        self._broker.data_plane.slow_appends.run(append, on_appended, MARKER_BYTES)

    def _tell_group_coordinator(self, index: int, marker: Marker) -> None:
        """Offsets committed in the transaction count from now on, or are forgotten."""
        shard = self._broker.coordinators.groups.shards.get(index)
        if shard is not None:
            shard.marker_appended(marker.producer_id, marker.producer_epoch, marker.is_commit)


def is_missing(producers: ProducerStates, marker: Marker) -> bool:
    """Whether a marker that may have been written before still has something to end.

    Without an open transaction a marker only carries the producer's epoch: if the partition knows that too, the marker
    was already written or is not needed. With one, a marker of this epoch may be an old request that was under way for
    long: since KIP-890 the records of the next transaction have the epoch of the marker before (KIP-1228).
    """
    producer = producers.get(marker.producer_id)
    if producer is None or producer.producer_epoch < marker.producer_epoch:
        return True
    is_of_the_one_before = marker.version >= EPOCH_BUMPED_AT_END and producer.producer_epoch == marker.producer_epoch
    return producer.txn_first_offset is not None and not is_of_the_one_before


def check_marker(producers: ProducerStates, marker: Marker, place: TopicPartition) -> None:
    """Reject a marker with an old producer epoch or an old coordinator epoch."""
    producer = producers.get(marker.producer_id)
    if producer is None:
        return
    if marker.producer_epoch < producer.producer_epoch:
        raise InvalidProducerEpochError(
            f"{place}: the marker of producer {marker.producer_id} has epoch {marker.producer_epoch}, "
            f"older than the producer's current epoch {producer.producer_epoch}"
        )
    if marker.coordinator_epoch < producer.coordinator_epoch:
        raise CoordinatorFencedError(
            f"{place}: the marker has coordinator epoch {marker.coordinator_epoch}, "
            f"older than {producer.coordinator_epoch}, which was seen before"
        )


def _encode_marker(marker: Marker, now_ms: int) -> bytearray:
    # Imported here: record codecs bring the compression libraries, which most brokers start without.
    from moldau.protocol.records import ControlType, end_transaction_marker

    return bytearray(
        end_transaction_marker(
            ControlType.COMMIT if marker.is_commit else ControlType.ABORT,
            timestamp=now_ms,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
        )
    )
