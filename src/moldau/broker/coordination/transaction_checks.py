"""Verifies transactional batches: what partition leaders ask the transaction coordinator (KIP-890).

Older clients add their partitions before they write, and the leader verifies that; for newer ones the leader adds them.
Either way no transaction can begin in a partition without its coordinator knowing, so none is left hanging there. Error
codes are those that the writer's protocol version understands. Start at `TransactionChecks.check_then`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from moldau.broker.data.batch_rules import RefusedBatchError
from moldau.coordinator.transaction.core import TransactionSettings
from moldau.coordinator.transaction.requests import Owner
from moldau.coordinator.transaction.transaction import EPOCH_BUMPED_AT_END
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.ids import TopicPartition
from moldau.log.errors import OutOfOrderSequenceError

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.coordination.coordinators import Coordinators
    from moldau.broker.partition import Partition
    from moldau.log.partition_log import PartitionLog

__all__ = ["TransactionChecks", "Writer", "check_first_sequence"]

FIRST_WITH_ABORTABLE: Final = 11
FIRST_THAT_JOINS: Final = 12
"""From this version of Produce on a batch makes its partition part of the transaction."""

_AWAY: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Writer(NamedTuple):
    """Who writes into a transaction, and what its version of the protocol lets it understand."""

    transactional_id: str
    owner: Owner
    knows_abortable: bool
    """Whether it understands TRANSACTION_ABORTABLE."""
    joins: bool
    """Whether partitions are added for it when it first writes to them."""


def check_first_sequence(log: PartitionLog, header: tuple[int, ...], version: int) -> None:
    """Check that a producer whose partitions the leader adds begins with sequence 0 in a partition that is new to it.

    Every end of a transaction leaves the producer's epoch in the partition, so an unknown producer is a new one.
    """
    if version >= FIRST_THAT_JOINS and header[11] and log.producers.get(header[9]) is None:
        raise OutOfOrderSequenceError(
            f"producer {header[9]} is new to the partition and begins with sequence {header[11]}, expected 0"
        )


def _has_open_transaction(log: PartitionLog, owner: Owner) -> bool:
    """Whether this producer's transaction has begun here, so that nothing needs to be asked."""
    producer = log.producers.get(owner.producer_id)
    return (
        producer is not None
        and producer.txn_first_offset is not None
        and producer.producer_epoch == owner.producer_epoch
    )


class TransactionChecks:
    """Used on the loop only."""

    def __init__(self, broker: Broker, coordinators: Coordinators) -> None:
        self._broker = broker
        self._coordinators = coordinators
        self.failures = 0
        """Batches whose partition was not part of their transaction."""

    def check_then(
        self,
        version: int,
        transactional_id: str,
        headers: Mapping[Partition, tuple[int, ...]],
        refuse: Callable[[Partition, MoldauError], None],
        then: Callable[[], None],
    ) -> bool:
        """Judge a produce request's transactional batches, all of one producer: refuse those that may not be appended.

        True when that is done; false when the coordinator's log has to be waited for, and `then` is called
        afterwards. Append at once: what was true now may not be true later.
        """
        # A marker may be queued for a slow disk before these batches: then the log's state is out of date.
        is_log_behind = self._broker.data_plane.slow_appends.pending > 0
        unsure = {
            partition.topic_partition: partition
            for partition, header in headers.items()
            if is_log_behind or not _has_open_transaction(partition.log, Owner(header[9], header[10]))
        }
        if not unsure:
            return True
        header = next(iter(headers.values()))
        joins = version >= FIRST_THAT_JOINS
        writer = Writer(transactional_id, Owner(header[9], header[10]), version >= FIRST_WITH_ABORTABLE, joins)

        def refuse_others() -> None:
            for topic_partition, code in self.refusals(writer, unsure.keys()).items():
                refuse(unsure[topic_partition], _not_in_transaction(writer, code))

        elsewhere = self._coordinators.transactions.coordinator_elsewhere(transactional_id)
        if not joins:
            if not self._broker.config.section(TransactionSettings).is_verified:
                return True
            if elsewhere is not None:
                self._verify_elsewhere(elsewhere, writer, unsure, refuse, then)
                return False
            refuse_others()
            return True
        if elsewhere is not None:
            # The coordinator has just added them, and the end of a transaction leaves a newer epoch in the log.
            return self._join_first(writer, unsure, refuse, lambda: None, then)
        return self._join_first(writer, unsure, refuse, refuse_others, then)

    async def verify_elsewhere(self, writer: Writer, target: TopicPartition) -> ErrorCode:
        """The error if another broker coordinates the transaction and this partition is not part of it."""
        partition = self._broker.partitions.get(target)
        coordinator = self._coordinators.transactions.coordinator_elsewhere(writer.transactional_id)
        if partition is None or coordinator is None:
            return _code_for(ErrorCode.NOT_COORDINATOR, writer)
        verified: asyncio.Future[ErrorCode] = self._coordinators.loop.create_future()
        refused: list[ErrorCode] = []

        def then() -> None:
            if not verified.done():
                verified.set_result(refused[0] if refused else ErrorCode.NONE)

        def refuse(_: Partition, error: MoldauError) -> None:
            refused.append(error.code if not isinstance(error, RefusedBatchError) else error.error_code)

        self._verify_elsewhere(coordinator, writer, {target: partition}, refuse, then)
        return await verified

    def _verify_elsewhere(
        self,
        coordinator: int,
        writer: Writer,
        unsure: dict[TopicPartition, Partition],
        refuse: Callable[[Partition, MoldauError], None],
        then: Callable[[], None],
    ) -> None:
        """Ask another broker; again, if a transaction ended here meanwhile, because it may have been this one."""
        remote = self._broker.remote_transactions
        assert remote is not None
        before = {target: partition.markers for target, partition in unsure.items()}

        def on_verified(verdicts: dict[TopicPartition, ErrorCode]) -> None:
            if any(partition.markers != before[target] for target, partition in unsure.items()):
                self._verify_elsewhere(coordinator, writer, unsure, refuse, then)
                return
            for target, code in verdicts.items():
                if code is not ErrorCode.NONE:
                    self.failures += 1
                    refuse(unsure[target], _not_in_transaction(writer, _code_for(code, writer)))
            then()

        remote.ask_coordinator(
            coordinator,
            writer.transactional_id,
            writer.owner,
            unsure.keys(),
            is_verified_only=True,
            then=on_verified,
        )

    def _join_first(
        self,
        writer: Writer,
        unsure: dict[TopicPartition, Partition],
        refuse: Callable[[Partition, MoldauError], None],
        refuse_others: Callable[[], None],
        then: Callable[[], None],
    ) -> bool:
        is_over, is_waited_for = False, False

        def on_joined(code: ErrorCode) -> None:
            nonlocal is_over
            is_over = True
            if code is ErrorCode.NONE:
                # The transaction may have ended while its log was waited for.
                refuse_others()
            else:
                for partition in unsure.values():
                    refuse(partition, _not_in_transaction(writer, code))
            if is_waited_for:
                then()

        self.join_then(writer, unsure.keys(), on_joined)
        is_waited_for = not is_over
        return is_over

    def refusals(self, writer: Writer, partitions: Collection[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        """The partitions that are not part of the writer's transaction, each with what to tell it."""
        verdicts = self._coordinators.transactions.verify(writer.transactional_id, writer.owner, partitions)
        refused = {
            partition: _code_for(code, writer) for partition, code in verdicts.items() if code is not ErrorCode.NONE
        }
        self.failures += len(refused)
        return refused

    def join_then(
        self, writer: Writer, partitions: Collection[TopicPartition], then: Callable[[ErrorCode], None]
    ) -> None:
        """Add partitions to the writer's transaction; `then` hears how that went, perhaps before this returns.

        While the transaction before is still ending there is a short wait: its markers are on their way.
        """
        loop = self._coordinators.loop
        settings = self._broker.config.section(TransactionSettings)
        backoff_s = settings.join_backoff_ms / 1000
        give_up_at = loop.time() + settings.join_timeout_ms / 1000

        def on_added(code: ErrorCode) -> None:
            if code is ErrorCode.CONCURRENT_TRANSACTIONS and loop.time() < give_up_at:
                loop.call_later(backoff_s, add)
            else:
                then(code if code is ErrorCode.NONE else _code_for(code, writer))

        def add() -> None:
            self._coordinators.transactions.add_then(
                writer.transactional_id, writer.owner, partitions, EPOCH_BUMPED_AT_END, on_added
            )

        add()


def _not_in_transaction(writer: Writer, code: ErrorCode) -> RefusedBatchError:
    return RefusedBatchError(
        code, f"the partition is not part of a transaction of {writer.transactional_id}: {code.name}"
    )


def _code_for(code: ErrorCode, writer: Writer) -> ErrorCode:
    """Older clients retry what they should only if told that replicas are missing."""
    if code in _AWAY or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not writer.joins):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not writer.knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code
