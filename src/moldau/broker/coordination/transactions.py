"""The transaction coordinator as this broker runs it: requests go to the shard of their transactional id, decided
transactions get their markers.

What is decided and why is `coordinator.transaction`; how one marker gets into a log is
`broker.coordination.transaction_markers`; how the shards come and go is `broker.coordination.coordinators`. Start at
`Transactions.end_transaction`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from moldau.broker.coordination.internal_topics import TRANSACTION_STATE
from moldau.broker.coordination.transaction_markers import Marker, Markers
from moldau.controller.image import NO_LEADER
from moldau.coordinator.runtime.outcome import Outcome, Ticket
from moldau.coordinator.transaction.core import Granted, TransactionCore, TransactionSettings
from moldau.coordinator.transaction.requests import Owner
from moldau.coordinator.transaction.transaction import EPOCH_BUMPED_AT_END, NO_PRODUCER_ID, Transaction, Version
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.coordination.coordinators import Coordinators
    from moldau.coordinator.runtime.shard import Shard

    TransactionShard: TypeAlias = Shard[TransactionCore]

__all__ = ["Transactions", "version_of"]

RETRY_S = 0.5
"""Until markers that could not be written are tried again."""

_SETTLED = (
    ErrorCode.NONE,
    # The topic was deleted: with its records the need for a marker is gone.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    # The partition has heard of a later epoch, which ended all before it.
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)

Decide = Callable[[TransactionCore, Ticket, int], Outcome]


class Transactions:
    """One per broker, used on the loop only."""

    def __init__(self, broker: Broker, coordinators: Coordinators) -> None:
        self._broker = broker
        self._coordinators = coordinators
        self._loop = coordinators.loop
        self.markers = Markers(broker)
        self.committed = 0
        self.aborted = 0
        self.waiting_markers = 0
        """Gauge: markers that could not be written and are tried again."""

    def new_core(self) -> TransactionCore:
        """The core of a shard that this broker has just become the coordinator for."""
        return TransactionCore(self._broker.config.section(TransactionSettings), on_ending=self._end_soon)

    def all(self) -> Iterator[Transaction]:
        """Every transactional id that this broker coordinates and has loaded."""
        for shard in self._coordinators.transaction_shards.shards.values():
            if shard.is_active:
                yield from shard.core.transactions.values()

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self._coordinators.transaction_shards.shards.values())

    # --- requests ---------------------------------------------------------------------------------------

    async def init_producer_id(self, transactional_id: str, timeout_ms: int, expected: Owner | None) -> Granted:
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return Granted(shard)
        is_new = shard.core.needs_producer_id(transactional_id, expected)
        fresh_id = await self._fresh_id(is_new)
        return await self._ask_for_id(
            shard,
            lambda core, ticket, now_ms: core.init_producer_id(
                transactional_id, timeout_ms, expected, fresh_id, ticket, now_ms
            ),
        )

    async def add_partitions(
        self, transactional_id: str, owner: Owner, partitions: Iterable[TopicPartition], version: Version
    ) -> ErrorCode:
        added: asyncio.Future[ErrorCode] = self._loop.create_future()
        self.add_then(transactional_id, owner, partitions, version, partial(_resolve, added))
        return await added

    def add_then(
        self,
        transactional_id: str,
        owner: Owner,
        partitions: Iterable[TopicPartition],
        version: Version,
        then: Callable[[ErrorCode], None],
    ) -> None:
        """Make partitions part of a transaction; `then` hears how that went, often before this returns."""
        partitions = list(partitions)
        elsewhere = self.coordinator_elsewhere(transactional_id)
        if elsewhere is not None and self._broker.remote_transactions is not None:

            def on_added(verdicts: dict[TopicPartition, ErrorCode]) -> None:
                refused = [code for code in verdicts.values() if code is not ErrorCode.NONE]
                then(refused[0] if refused else ErrorCode.NONE)

            self._broker.remote_transactions.ask_coordinator(
                elsewhere, transactional_id, owner, partitions, is_verified_only=False, then=on_added
            )
            return
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            then(shard)
            return
        shard.ask(
            lambda core, ticket, now_ms: core.add_partitions(
                transactional_id, owner, partitions, version, ticket, now_ms
            ),
            then,
            self._coordinators.now_ms(),
        )

    def coordinator_elsewhere(self, transactional_id: str) -> int | None:
        """The broker that coordinates a transactional id, if that is another one in a cluster."""
        if self._broker.remote_transactions is None:
            return None
        number = self._coordinators.transaction_shards.partition_of(transactional_id)
        partition = None if number is None else self._broker.image.partition(TRANSACTION_STATE.name, number)
        if partition is None or partition.leader in (NO_LEADER, self._broker.node_id):
            return None
        return partition.leader

    def verify(
        self, transactional_id: str, owner: Owner, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether each partition is part of the transaction, right now."""
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return dict.fromkeys(partitions, shard)
        return shard.core.verify_partitions(transactional_id, owner, partitions)

    async def end_transaction(
        self, transactional_id: str, owner: Owner, *, is_commit: bool, version: Version
    ) -> Granted:
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return Granted(shard)
        is_new = shard.core.ending_needs_producer_id(transactional_id, version)
        fresh_id = await self._fresh_id(is_new)
        return await self._ask_for_id(
            shard,
            lambda core, ticket, now_ms: core.end_transaction(
                transactional_id, owner, is_commit, version, fresh_id, ticket, now_ms
            ),
        )

    def find(self, transactional_id: str) -> Transaction | ErrorCode:
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard
        return shard.core.transactions.get(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    # --- asking a shard ---------------------------------------------------------------------------------

    def _shard_of(self, transactional_id: str) -> TransactionShard | ErrorCode:
        shard = self._coordinators.transaction_shards.shard_of(transactional_id)
        is_ready = isinstance(shard, ErrorCode) or not shard.is_loading
        return shard if is_ready else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    async def _fresh_id(self, is_needed: bool) -> int:
        try:
            return await self._broker.producer_ids.next() if is_needed else NO_PRODUCER_ID
        except MoldauError:
            return NO_PRODUCER_ID

    async def _ask_for_id(self, shard: TransactionShard, decide: Decide) -> Granted:
        answer = self._coordinators.transaction_shards.ask_shard(shard, decide)
        if isinstance(answer, asyncio.Future):
            answer = await answer
        return Granted(answer) if isinstance(answer, ErrorCode) else answer

    # --- markers ----------------------------------------------------------------------------------------

    def _end_soon(self, transaction: Transaction) -> None:
        """The records are being replayed right now; act when that is over."""
        self._loop.call_soon(self._end, transaction)

    def _current_shard(self, transaction: Transaction) -> TransactionShard | None:
        """The shard of a transaction that is still about to end; `None` once there is nothing left to do."""
        shard = self._shard_of(transaction.transactional_id)
        if isinstance(shard, ErrorCode) or not shard.is_active:
            return None
        return shard if shard.core.ending.get(transaction.transactional_id) == transaction else None

    def _end(self, transaction: Transaction) -> None:
        """Write the markers of a transaction once its end is committed: from then on no crash can change it."""
        shard = self._current_shard(transaction)
        if shard is not None:
            shard.ask(
                lambda core, ticket, now_ms: Outcome(replies=[(ticket, ErrorCode.NONE)]),
                lambda code: self._write_markers(transaction) if code is ErrorCode.NONE else None,
                self._coordinators.now_ms(),
            )

    def _write_markers(self, transaction: Transaction) -> None:
        marker = Marker(
            transaction.producer_id,
            transaction.producer_epoch,
            self._coordinator_epoch(transaction.transactional_id),
            transaction.is_commit,
            transaction.version,
        )
        missing = set(transaction.partitions)

        def on_written(target: TopicPartition, code: ErrorCode) -> None:
            if code in _SETTLED:
                missing.discard(target)
                if not missing:
                    self._complete(transaction)
            elif self._current_shard(transaction) is not None:
                self.waiting_markers += 1
                self._loop.call_later(RETRY_S, write_again, target)

        def write_again(target: TopicPartition) -> None:
            self.waiting_markers -= 1
            write(target)

        def write(target: TopicPartition) -> None:
            # Always as if it might be there: after a restart nobody knows which were written.
            done = partial(on_written, target)
            self.markers.write(target, marker, done, may_be_there=True, may_go_elsewhere=True)

        for target in sorted(missing):
            write(target)

    def _coordinator_epoch(self, transactional_id: str) -> int:
        number = self._coordinators.transaction_shards.partition_of(transactional_id)
        led = None if number is None else self._broker.partitions.get(TopicPartition(TRANSACTION_STATE.name, number))
        return 0 if led is None else led.leader_epoch

    def _complete(self, transaction: Transaction) -> None:
        shard = self._current_shard(transaction)
        if shard is None:
            return

        is_ended_before = False

        def decide(core: TransactionCore, now_ms: int) -> Outcome:
            nonlocal is_ended_before
            outcome = core.markers_written(transaction, now_ms)
            is_ended_before = not outcome.records
            return outcome

        shard.act(decide, lambda: None if is_ended_before else self._note_end(transaction))

    def _note_end(self, transaction: Transaction) -> None:
        if self._current_shard(transaction) is not None:
            # The record was refused: the disk is full, say. The markers are there and will be found to be.
            self._loop.call_later(RETRY_S, self._end, transaction)
        elif transaction.is_commit:
            self.committed += 1
        else:
            self.aborted += 1


def _resolve(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def version_of(is_newer: bool) -> Version:
    """How a client takes part in transactions, by the version of the API it uses."""
    return EPOCH_BUMPED_AT_END if is_newer else 0
