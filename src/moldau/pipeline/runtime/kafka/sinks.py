"""The two Kafka sinks for a batch's rows: at-least-once and exactly-once. Start at `ExactlyOnceSink.open`.

At least once: rows first, then the group's offsets; an interrupted batch is written again from its beginning.

Exactly once: rows, offsets and the batch's number in one transaction. Spark fixes a batch's offsets before it runs, and
repeats the batch with the same offsets until it is done. The transaction makes the whole batch visible at once; the
number in it identifies a repeated batch. Before the number is read, the open transaction of a killed predecessor is
aborted, and a predecessor that still runs is fenced. `docs/adr/0009-exactly-once-by-one-transaction-a-batch.md` has the
full argument.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moldau.client.errors import ClientError, FencedError
from moldau.client.transactions import Transactions
from moldau.client.waiting import close_within
from moldau.core.errors import ErrorCode
from moldau.pipeline.runtime.errors import StreamsError, TakenOverError
from moldau.pipeline.runtime.identity import PipelineIdentity
from moldau.pipeline.runtime.kafka.clients import CLOSE_S, KafkaClients
from moldau.pipeline.runtime.kafka.delivery import Delivery, InterruptedDeliveryError
from moldau.pipeline.runtime.kafka.progress_topic import read_progress
from moldau.pipeline.runtime.progress import Progress
from moldau.pipeline.runtime.sink import Batch, Results
from moldau.pipeline.runtime.source import Offsets, Position

if TYPE_CHECKING:
    from confluent_kafka import Consumer

__all__ = ["AtLeastOnceSink", "ExactlyOnceSink"]

MAX_BLOCK_S = 60.0
TRANSACTION_TIMEOUT_MS = "60000"


class AtLeastOnceSink:
    """An idempotent producer; the source commits the offsets afterwards."""

    keeps_progress = False
    commits_offsets = False

    def __init__(self, clients: KafkaClients) -> None:
        self._delivery = Delivery(clients, {})

    def open(self) -> None:
        """Does nothing: there is no predecessor to fence, and no progress to read."""

    def deliver(self, results: Results, batch: Batch) -> int:
        """Write all rows, and wait until they are stored."""
        count = self._delivery.send(results)
        self._delivery.flush()
        return count

    def refresh(self) -> None:
        """Does nothing: the source keeps the group's offsets alive."""

    def interrupt(self) -> None:
        self._delivery.interruptible.interrupt()

    def close(self) -> None:
        self._delivery.close()


class ExactlyOnceSink:
    """A transactional producer. `position` is `Source.position`, which decodes an offset log entry."""

    keeps_progress = True
    commits_offsets = True

    def __init__(self, identity: PipelineIdentity, clients: KafkaClients, position: Callable[[str], Position]) -> None:
        self._identity = identity
        self._clients = clients
        self._position = position
        timeout_ms = clients.producer.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
        own = {"transactional.id": identity.transactional_id, "transaction.timeout.ms": timeout_ms}
        self._delivery = Delivery(clients, own)
        producer: Any = self._delivery.interruptible
        self._transactions = Transactions(producer, self._delivery.flush, self._delivery.discard_failures, MAX_BLOCK_S)
        self._consumer: Consumer | None = None
        self.progress: Progress | None = None

    def open(self) -> Progress | None:
        """Fence the predecessor, then read its last progress. The order matters: see the module docstring."""
        try:
            self._transactions.start()
        except ClientError as error:
            raise _error_with_advice(error, self._identity) from error
        self.progress = read_progress(self._identity, self._clients)
        return self.progress

    def deliver(self, results: Results, batch: Batch) -> int:
        """Commit a batch, unless it is already in Kafka."""
        if self.progress is not None and self.progress.covers(batch.checkpoint, batch.number, batch.entry):
            return 0
        # A batch that has read nothing is not committed, unless a clock tick has released rows that were held back.
        has_moved = self.progress is None or self._position(self.progress.entry) != batch.position
        if not has_moved and not results.wait_for_first_row():
            return 0
        # A transaction must not stay open while the batch is computed: the coordinator would abort it.
        results.wait_for_all()
        count = self._commit(results, batch.progress, batch.position.offsets)
        self.progress = batch.progress
        return count

    def refresh(self) -> None:
        """Commit the last progress again, so that neither the transactional id nor the offsets expire."""
        if self.progress is not None:
            self._commit(None, self.progress, self._position(self.progress.entry).offsets)

    def interrupt(self) -> None:
        self._delivery.interruptible.interrupt()

    def close(self) -> None:
        try:
            with suppress(InterruptedDeliveryError):
                self._transactions.abort_if_open()
        finally:
            self._delivery.close()
            consumer, self._consumer = self._consumer, None
            if consumer is not None:
                close_within(consumer, CLOSE_S)

    def _commit(self, results: Results | None, progress: Progress, offsets: Offsets) -> int:
        identity = self._identity
        try:
            with self._transactions.begin():
                count = 0 if results is None else self._delivery.send(results)
                key = identity.name.encode()
                self._delivery.producer.produce(identity.progress_topic, progress.encode(), key, partition=0)
                if offsets:
                    self._transactions.add_offsets(offsets, self._membership())
        except FencedError:
            raise TakenOverError(f"another instance of {identity.title} was started, and this one ends") from None
        return count

    def _membership(self) -> Any:
        if self._consumer is None:
            # This consumer joins no group: transactions only name the group, and the source is its member.
            self._consumer = self._clients.new_consumer(self._identity.group_id)
        return self._consumer.consumer_group_metadata()


def _error_with_advice(error: ClientError, identity: PipelineIdentity) -> StreamsError | ClientError:
    if error.error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return StreamsError(
            f"the cluster does not let this user write transactions as {identity.transactional_id}; "
            "allow Write on that transactional id, or use processing.guarantee=at_least_once"
        )
    return error
