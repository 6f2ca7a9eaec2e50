"""Transactions of a producer: several records, and consumed offsets, that become visible together or not at all.

librdkafka keeps the state; here its errors are classified into retriable, abortable and fatal. The loop that consumes,
processes and produces is in `client.exactly_once`. Start at `Transactions.begin`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.client.errors import ClientError, FencedError, client_error
from moldau.client.waiting import BlockingCall, interruptible, served
from moldau.core.ids import TopicPartition

if TYPE_CHECKING:
    from confluent_kafka import Producer as RdkafkaProducer

__all__ = ["GroupMembership", "Transactions"]

CALL_S = 0.5
"""Each call is made in slices of this length, so that Ctrl-C works in between: librdkafka resumes the operation on the
next call."""

PAUSE_S = 0.05
DISCARD_S = 5.0
INTERRUPTED_S = 1.0
"""How long an abort may take when Ctrl-C or an exit ends the program."""

logger = logging.getLogger("moldau.client")

GroupMembership = Any
"""What `Consumer.group_membership` returns: the consumer's member id and generation."""


class Transactions:
    """One transaction at a time, for a producer whose properties have a `transactional.id`.

    producer.transactions.start()
    with producer.transactions.begin():
        producer.send("a", "1")
        producer.send("b", "2")
    """

    def __init__(
        self,
        rdkafka: RdkafkaProducer,
        flush: Callable[[], None],
        discard_failures: Callable[[], None],
        max_block_s: float,
    ) -> None:
        self._rdkafka = rdkafka
        self._flush = flush
        self._discard_failures = discard_failures
        self._max_block_s = max_block_s
        self.is_open = False

    def start(self) -> None:
        """Take the transactional id over: once per producer, before its first transaction.

        The previous owner of the id is fenced, and a transaction it left open is aborted. Raises `UnreachableError`
        when no coordinator answers within `max.block.ms`, and `ClientError` where there is no `transactional.id` or no
        permission to use it.
        """
        self._insist(self._rdkafka.init_transactions, patience_s=self._max_block_s)

    @contextmanager
    def begin(self) -> Iterator[None]:
        """A transaction around the block: committed at its end, aborted when an exception leaves it.

        The exception is re-raised. Raises `FencedError` when another producer has taken the id over; this
        one is then unusable. Any other `ClientError` with `requires_abort` means: aborted, may be retried.
        """
        self._call(self._rdkafka.begin_transaction)
        self.is_open = True
        try:
            yield
            self._commit()
        except Exception:
            self.abort_if_open()
            raise
        except BaseException:
            # Ctrl-C or an exit: the program ends without waiting long for the broker.
            self._abort_within(INTERRUPTED_S)
            raise

    def add_offsets(self, offsets: Mapping[TopicPartition, int], membership: GroupMembership) -> None:
        """Commit a group's offsets with this transaction: each is the offset of the next record to read.

        `membership` is the consumer's `group_membership()`, taken when the records were polled: a consumer that has
        been removed from the group since is rejected, and the transaction has to be aborted.
        """
        from confluent_kafka import TopicPartition as RdkafkaPartition

        wanted = [RdkafkaPartition(at.topic, at.partition, offset) for at, offset in offsets.items()]
        self._insist(self._rdkafka.send_offsets_to_transaction, wanted, membership)

    def abort_if_open(self) -> None:
        """Abort the open transaction, if any. A fenced producer has nothing to abort: its successor did that."""
        if not self.is_open:
            return
        self.is_open = False
        try:
            self._insist(self._rdkafka.abort_transaction)
        except ClientError as error:
            if error.requires_abort:
                raise
            self._discard_failures_of_fenced()
        else:
            self._discard_failures()

    def _discard_failures_of_fenced(self) -> None:
        """Discard them in another thread: every call of a fenced producer raises, and the binding then leaks the
        exception that the caller is handling, with everything on its stack."""
        from confluent_kafka import KafkaException

        discarding = BlockingCall(self._discard_failures).start()
        with suppress(KafkaException):
            if discarding.wait(DISCARD_S):
                discarding.answer()

    def _abort_within(self, patience_s: float) -> None:
        """Abort within `patience_s`; otherwise the coordinator aborts, as for a producer that has crashed."""
        if not self.is_open:
            return
        self.is_open = False
        try:
            deadline = time.monotonic() + patience_s
            interruptible(
                partial(self._insist, self._rdkafka.abort_transaction, patience_s=patience_s),
                is_over=lambda: time.monotonic() > deadline,
            )
        except ClientError as error:
            logger.warning(
                "A transaction was left open: %s. It is aborted when its id is used again, or when "
                "transaction.timeout.ms is over.",
                error,
            )

    def _commit(self) -> None:
        # A failed record must be reported as such, not as the commit that is rejected because of it.
        try:
            self._flush()
        except ClientError as error:
            error.requires_abort = not isinstance(error, FencedError)
            raise
        self._insist(self._rdkafka.commit_transaction)
        self.is_open = False

    def _insist(self, call: Callable[..., None], *arguments: Any, patience_s: float = math.inf) -> None:
        """Repeat the call while librdkafka reports its error as retriable.

        There is no other way to learn the outcome of a commit or an abort, so those are retried without end by default.
        """
        deadline = time.monotonic() + patience_s
        while True:
            try:
                return self._call(call, *arguments, min(CALL_S, patience_s))
            except ClientError as error:
                if not error.is_retriable or time.monotonic() >= deadline:
                    raise
            # Delivers log lines and delivery reports.
            served(self._rdkafka.poll, PAUSE_S)

    @staticmethod
    def _call(call: Callable[..., None], *arguments: Any) -> None:
        from confluent_kafka import KafkaException

        try:
            # Not every call honours its timeout: send_offsets_to_transaction blocks until the broker answers.
            interruptible(partial(call, *arguments))
        except KafkaException as error:
            raise client_error(error.args[0], about="Transaction") from None
        except RuntimeError as error:
            # Raised by every call of the binding once the producer is closed.
            raise ClientError(f"Transaction: {error}") from None
