"""Replicas of the partitions of a whole simulated cluster: what waits for the high watermark, and what producers did.

`PartitionReplica` adds to `replica_node.ReplicaNode` what `broker.partition` has: callbacks that wait for a commit.
`TransactionalReplica` judges producers and takes markers as a real log does, with the real `log.producer_state`.
Start at `PartitionReplica.when_committed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from moldau.broker.coordination.transaction_markers import Marker, check_marker, is_missing
from moldau.controller.image import MetadataImage
from moldau.coordinator.transaction.requests import Owner
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition
from moldau.log.producer_state import CompletedTransaction, ProducerStates
from moldau.log.producer_state import Marker as EndMarker
from moldau.protocol.record_batch import TRANSACTIONAL_BIT, BatchHeader
from moldau.testing.simulation.kernel import InvariantError
from moldau.testing.simulation.replica_node import LOOK_MS, ReplicaNode

__all__ = ["DECIDED_ONCE", "Data", "PartitionReplica", "TransactionalReplica", "fates_of"]

DECIDED_ONCE: Final = "a transaction is decided once on each partition"


class PartitionReplica(ReplicaNode):
    """A replica among several of its broker, which has the heartbeats and the metadata."""

    def _reset(self) -> None:
        super()._reset()
        self._commit_waits: list[tuple[int, Callable[[], None]]] = []

    def _habits(self) -> list[tuple[int, Callable[[], None]]]:
        return [(LOOK_MS, self._look), (LOOK_MS, self._save_watermark)]

    def _save_watermark(self) -> None:
        self.saved_watermark = self.high_watermark

    def when_committed(self, end_offset: int, then: Callable[[], None]) -> None:
        """Call `then` when the high watermark is there; never, if this broker stops leading before."""
        if self.high_watermark >= end_offset:
            then()
        else:
            self._commit_waits.append((end_offset, then))

    def on_image(self, image: MetadataImage) -> None:
        epoch = None if self.partition is None else self.partition.leader_epoch
        super().on_image(image)
        now = self.partition
        if now is not None and (not self.is_leader or now.leader_epoch != epoch):
            self._commit_waits = []

    def _advance(self) -> None:
        super()._advance()
        waits, self._commit_waits = self._commit_waits, []
        for end_offset, then in waits:
            self.when_committed(end_offset, then)


class Data(NamedTuple):
    owner: Owner
    sequence: int
    transaction: int
    """Which of its transactions the client meant."""


def header_of(owner: Owner, sequence: int) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, TRANSACTIONAL_BIT, 0, 0, 0, owner.producer_id, owner.producer_epoch, sequence, 1)


class TransactionalReplica(PartitionReplica):
    def _reset(self) -> None:
        super()._reset()
        self.markers = 0
        self._producers = ProducerStates()
        self._known_end = 0
        self._known_epoch = -1

    @property
    def producers(self) -> ProducerStates:
        """What the log says of producers, up to its end."""
        epoch = -1 if self.partition is None else self.partition.leader_epoch
        if self._known_epoch != epoch or self._known_end > self.log.end_offset:
            # Another leader may have cut what was known.
            self._producers, self._known_end, self._known_epoch = ProducerStates(), 0, epoch
        for entry in self.log.read(self._known_end, self.log.end_offset):
            take(self._producers, entry.value, entry.base_offset)
        self._known_end = self.log.end_offset
        return self._producers

    def has_open(self, owner: Owner) -> bool:
        state = self.producers.get(owner.producer_id)
        return state is not None and state.txn_first_offset is not None and state.producer_epoch == owner.producer_epoch

    def write(self, data: Data, then: Callable[[ErrorCode], None]) -> None:
        """A producer's batch that was verified; `then` hears when it is committed."""
        header = header_of(data.owner, data.sequence)
        try:
            is_there = self.producers.check(header) is not None
        except MoldauError as error:
            then(error.code)
            return
        if not is_there and not self.append(data):
            then(ErrorCode.NOT_ENOUGH_REPLICAS)
            return
        self.when_committed(self.log.end_offset, lambda: then(ErrorCode.NONE))

    def mark(self, marker: Marker, then: Callable[[ErrorCode], None]) -> None:
        """As `broker.coordination.transaction_markers`: written only where it is missing."""
        if is_missing(self.producers, marker):
            try:
                check_marker(self.producers, marker, TopicPartition(self.topic, self.number))
            except MoldauError as error:
                then(error.code)
                return
            if not self.append(marker):
                then(ErrorCode.KAFKA_STORAGE_ERROR)
                return
            self.markers += 1
        self.when_committed(self.log.end_offset, lambda: then(ErrorCode.NONE))


def take(producers: ProducerStates, value: object, offset: int) -> CompletedTransaction | None:
    """Apply one entry of a log."""
    if isinstance(value, Data):
        producers.update(header_of(value.owner, value.sequence), offset, 0)
    elif isinstance(value, Marker):
        header = header_of(Owner(value.producer_id, value.producer_epoch), -1)
        return producers.complete(header, offset, EndMarker(value.is_commit, value.coordinator_epoch), 0)
    return None


def fates_of(replica: PartitionReplica) -> dict[int, list[bool | None]]:
    """By transaction, whether each of its batches in the log is committed; `None` if that is not decided."""
    producers = ProducerStates()
    batches: list[tuple[int, Data]] = []
    fate: dict[int, bool] = {}
    for entry in replica.log.entries:
        value = entry.value
        ended = take(producers, value, entry.base_offset)
        if isinstance(value, Data):
            batches.append((entry.base_offset, value))
        elif ended is not None:
            for offset, data in batches:
                if data.owner.producer_id == ended.producer_id and offset >= ended.first_offset:
                    if offset in fate:
                        raise InvariantError(DECIDED_ONCE, f"{data} at {offset} of {replica.topic}-{replica.number}")
                    fate[offset] = not ended.is_aborted
    found: dict[int, list[bool | None]] = {}
    for offset, data in batches:
        found.setdefault(data.transaction, []).append(fate.get(offset))
    return found
