"""Transactions on a whole simulated cluster: the coordinator on the leader of its partition, and clients of it.

The core, its shard and the producers' state are the real ones; `SimulatedCoordinator` is the shell that
`broker.coordination.coordinators` and `broker.coordination.transactions` are for real brokers: it loads what its log
has, answers once that is committed, and has markers written on whichever broker leads a partition. Start at
`TransactionClient.act`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from moldau.broker.coordination.transaction_markers import Marker
from moldau.coordinator.runtime.outcome import CoordinatorRecord, Outcome, Producer
from moldau.coordinator.runtime.shard import Shard
from moldau.coordinator.transaction.core import Granted, TransactionCore, TransactionSettings
from moldau.coordinator.transaction.requests import Owner
from moldau.coordinator.transaction.transaction import EPOCH_BUMPED_AT_END, Transaction
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition
from moldau.testing.simulation.kernel import InvariantError
from moldau.testing.simulation.whole_partition import Data, PartitionReplica

if TYPE_CHECKING:
    from moldau.testing.simulation.whole_cluster import WholeCluster

__all__ = ["COORDINATOR_KNOWS", "CoordinatorReplica", "SimulatedCoordinator", "TransactionClient", "Verdict"]

COORDINATOR_KNOWS: Final = "a coordinator tells nobody what is not committed"
TIMEOUT_MS: Final = 1_500
RETRY_MS: Final = 700
"""Longer than a message is under way: a marker of an old client's transaction that comes very late ends the next one,
and nothing in the protocol could tell. Since KIP-890 it could, and leaders do (`transaction_markers.is_missing`)."""
HASTY_RETRY_MS: Final = 150
SETTLED: Final = (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
AGAIN: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""Codes after which a client asks again."""

Verdict = Callable[[ErrorCode], None]


class NotAppendedError(MoldauError):
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class CoordinatorReplica(PartitionReplica):
    """A replica of the coordinator's partition. Its leader has a coordinator."""

    coordinator: SimulatedCoordinator | None = None

    def stop(self, *, loses_power: bool = False) -> None:
        self.coordinator = None
        super().stop(loses_power=loses_power)

    def follow_leadership(self, cluster: WholeCluster) -> None:
        """Keep a coordinator for exactly the epochs in which this broker leads."""
        epoch = -1 if self.partition is None or not self.is_leader else self.partition.leader_epoch
        known = self.coordinator
        if known is not None and known.epoch != epoch:
            known.shard.close()
            self.coordinator = None
        if self.coordinator is None and epoch >= 0:
            self.coordinator = cluster.coordinator(cluster, self, epoch)
            self.coordinator.load()


class SimulatedCoordinator:
    def __init__(self, cluster: WholeCluster, replica: CoordinatorReplica, epoch: int) -> None:
        self.cluster, self.replica, self.epoch = cluster, replica, epoch
        self._kernel = cluster.kernel
        self._loaded_end = replica.log.end_offset
        core = TransactionCore(TransactionSettings(retry_abort_ms=500), on_ending=self._end_soon)
        self.shard = Shard(core, self, on_deadline=self._wake, clock=lambda: self._kernel.now_ms)

    @property
    def is_current(self) -> bool:
        return self.replica.coordinator is self

    def load(self) -> None:
        for entry in self.replica.log.entries:
            for key, value in entry.value:  # type: ignore[attr-defined]
                self.shard.core.replay(key, value)
        self.activate_when_committed()

    def activate_when_committed(self) -> None:
        self.replica.when_committed(self._loaded_end, self.activate)

    def activate(self) -> None:
        if self.is_current:
            self._kernel.count("coordinators loaded")
            self.shard.activate(self._kernel.now_ms)

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.replica.later(delay_ms, lambda: action() if self.is_current else None)

    def _wake(self, deadline_ms: int) -> None:
        self._later(deadline_ms - self._kernel.now_ms, lambda: self.shard.on_time(self._kernel.now_ms))

    # --- the log, as a shard sees it --------------------------------------------------------------------

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: Producer | None,
        then: Callable[[MoldauError | None], None],
    ) -> None:
        then(None if self.replica.append(tuple(records)) else NotAppendedError("not appended"))

    def when_committed(self, then: Callable[[], None]) -> None:
        self.replica.when_committed(self.replica.log.end_offset, then)

    # --- requests ---------------------------------------------------------------------------------------

    def ask(self, decide: Callable[..., Outcome], answer: Callable[[Any], None]) -> None:
        """A client's request; what it is told must be committed."""

        def check(reply: Any) -> None:
            self._check(reply.error if isinstance(reply, Granted) else reply)
            answer(reply)

        self.shard.ask(decide, check, self._kernel.now_ms)

    def verify(self, transactional_id: str, owner: Owner, place: TopicPartition) -> ErrorCode:
        if not self.shard.is_active:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        code = self.shard.core.verify_partitions(transactional_id, owner, [place])[place]
        self._check(code)
        return code

    def _check(self, code: ErrorCode) -> None:
        if code is ErrorCode.NONE and self._loaded_end > self.replica.high_watermark:
            raise InvariantError(COORDINATOR_KNOWS, f"an answer rests on {self._loaded_end} in epoch {self.epoch}")

    # --- markers ----------------------------------------------------------------------------------------

    def _end_soon(self, transaction: Transaction) -> None:
        self._later(0, lambda: self._end(transaction))

    def _is_ending(self, transaction: Transaction) -> bool:
        core = self.shard.core
        return self.is_current and self.shard.is_active and core.ending.get(transaction.transactional_id) == transaction

    def _end(self, transaction: Transaction) -> None:
        """Once the end is committed no crash can change it, and markers may be written."""
        if self._is_ending(transaction):
            self.when_committed(lambda: self._write_markers(transaction))

    def _write_markers(self, transaction: Transaction) -> None:
        marker = Marker(
            transaction.producer_id,
            transaction.producer_epoch,
            self.epoch,
            transaction.is_commit,
            transaction.version,
        )
        missing = set(transaction.partitions)

        def write(place: TopicPartition) -> None:
            if place not in missing or not self._is_ending(transaction):
                return

            def on_written(code: ErrorCode) -> None:
                if code in SETTLED and place in missing:
                    missing.discard(place)
                    if not missing:
                        self._complete(transaction)

            self.cluster.write_marker(self.replica.node_id, place, marker, on_written)
            is_safe = marker.version >= EPOCH_BUMPED_AT_END
            self._later(HASTY_RETRY_MS if is_safe else RETRY_MS, lambda: write(place))

        for place in sorted(missing):
            write(place)

    def _complete(self, transaction: Transaction) -> None:
        if self._is_ending(transaction):
            self.shard.act(
                lambda core, now_ms: core.markers_written(transaction, now_ms),
                lambda: self._later(RETRY_MS, lambda: self._end(transaction)),
            )


class TransactionClient:
    """A producer as a well-behaved application drives it: one request at a time, repeated until it is answered."""

    def __init__(self, cluster: WholeCluster, transactional_id: str, version: int) -> None:
        self._cluster = cluster
        self._kernel = cluster.kernel
        self._id = transactional_id
        self._version = version
        self._owner: Owner | None = None
        self._transaction = 0
        self._sequences: dict[TopicPartition, int] = {}
        self._touched: dict[TopicPartition, int] = {}
        """How many batches of this transaction each partition has acknowledged."""
        self._wanted: tuple[TopicPartition, int] | None = None
        """The batch to be written now, and how often that was tried."""
        self._end: bool | None = None
        self._number = 0
        self._is_stopped = False

    def stop(self) -> None:
        """Ask for nothing any more."""
        self._is_stopped = True

    def act(self) -> None:
        """Send one request; the next one follows its answer, or its silence."""
        if self._is_stopped:
            return
        self._number = number = self._number + 1
        if self._owner is None:
            self._init(number)
        elif self._end is not None:
            self._ask_to_end(number, self._owner, is_commit=self._end)
        elif self._wanted is not None:
            self._write(number, self._owner, *self._wanted)
        elif self._touched and self._kernel.chance(0.35):
            self._end = self._kernel.chance(0.7)
            self._ask_to_end(number, self._owner, is_commit=self._end)
        else:
            self._wanted = self._kernel.random.choice(self._cluster.transactional_places), 0
            self._write(number, self._owner, *self._wanted)
        self._kernel.after(600, lambda: self._again(number))

    def _again(self, number: int) -> None:
        if number == self._number:
            self.act()

    def _then(self, number: int, action: Callable[[Any], None]) -> Callable[[Any], None]:
        """Take an answer, if it is the one to the last request."""

        def take(answer: Any) -> None:
            if number != self._number:
                return
            self._number += 1
            action(answer)
            self._kernel.after(self._kernel.random.randrange(1, 60), self.act)

        return take

    def _init(self, number: int) -> None:
        fresh = self._cluster.next_producer_id()

        def granted(reply: Any) -> None:
            if isinstance(reply, Granted) and reply.error is ErrorCode.NONE:
                self._take(reply)

        self._cluster.ask_coordinator(
            lambda core, ticket, now_ms: core.init_producer_id(self._id, TIMEOUT_MS, None, fresh, ticket, now_ms),
            self._then(number, granted),
        )

    def _take(self, reply: Granted) -> None:
        self._owner = Owner(reply.producer_id, reply.producer_epoch)
        self._sequences = {}
        self._begin()

    def _begin(self) -> None:
        self._transaction = self._cluster.next_transaction()
        self._touched = {}
        self._wanted = self._end = None

    def _give_up(self) -> None:
        self._owner = None
        self._begin()

    def _write(self, number: int, owner: Owner, place: TopicPartition, attempts: int) -> None:
        self._wanted = place, attempts + 1
        if attempts > 8:
            self._give_up()
            return
        sequence = self._sequences.get(place, 0)
        data = Data(owner, sequence, self._transaction)

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._sequences[place] = sequence + 1
                self._touched[place] = self._touched.get(place, 0) + 1
                self._wanted = None
            elif code not in AGAIN:
                self._give_up()

        then = self._then(number, written)

        def added(code: Any) -> None:
            if code is ErrorCode.NONE:
                self._cluster.write(place, self._id, data, then)
            else:
                then(code)

        self._cluster.ask_coordinator(
            lambda core, ticket, now_ms: core.add_partitions(self._id, owner, [place], self._version, ticket, now_ms),
            added,
        )

    def _ask_to_end(self, number: int, owner: Owner, *, is_commit: bool) -> None:
        fresh = self._cluster.next_producer_id()

        def ended(reply: Any) -> None:
            code = reply.error if isinstance(reply, Granted) else reply
            if code in AGAIN:
                return
            if code is not ErrorCode.NONE:
                self._kernel.count(f"ends refused with {code.name}")
                self._give_up()
                return
            self._cluster.on_ended(self._transaction, dict(self._touched), is_commit=is_commit)
            if self._version == 2:
                self._take(reply)
            else:
                self._begin()

        self._cluster.ask_coordinator(
            lambda core, ticket, now_ms: core.end_transaction(
                self._id, owner, is_commit, self._version, fresh, ticket, now_ms
            ),
            self._then(number, ended),
        )
