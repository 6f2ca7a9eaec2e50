"""Results of a batch, each exactly once: rows, the batch's end offsets and its number in one transaction.

Spark fixes a batch's offsets before it runs, and runs it again with the same ones until it is done. The transaction
makes everything of a batch visible at once; the number in it tells a batch that comes again. A predecessor that was
killed has its open transaction aborted, and one that still lives is fenced, before the number is read.
`docs/adr/0009-exactly-once-by-one-transaction-a-batch.md` has the argument in full. Start at `ExactlyOnceSink.open`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from moldau.client.errors import ClientError, FencedError
from moldau.client.transactions import Transactions
from moldau.core.errors import ErrorCode
from moldau.pipeline.runtime.delivery import Delivery
from moldau.pipeline.runtime.errors import StreamsError, TakenOverError
from moldau.pipeline.runtime.group_presence import member_consumer
from moldau.pipeline.runtime.interruptible import InterruptedDeliveryError
from moldau.pipeline.runtime.progress import Progress, progress_topic
from moldau.pipeline.runtime.progress_reader import read_progress
from moldau.pipeline.runtime.results import Results
from moldau.pipeline.runtime.settings import StreamsSettings
from moldau.pipeline.runtime.sinks import Batch

__all__ = ["ExactlyOnceSink"]

MAX_BLOCK_S = 60.0
TRANSACTION_TIMEOUT_MS = "60000"


class ExactlyOnceSink:
    """A transactional producer with the application's id."""

    def __init__(self, settings: StreamsSettings) -> None:
        self._settings = settings
        self._topic = progress_topic(settings.application_id)
        given = settings.client_properties("producer")
        timeout_ms = given.get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
        own = {"transactional.id": settings.application_id, "transaction.timeout.ms": timeout_ms}
        self._delivery = Delivery(settings, own)
        producer: Any = self._delivery.interruptible
        self._transactions = Transactions(producer, self._delivery.flush, self._delivery.discard_failures, MAX_BLOCK_S)
        # A member of nothing: transactions name the group, the presence is its member.
        self._consumer = member_consumer(settings, {})
        self.progress: Progress | None = None

    def open(self) -> Progress | None:
        """Put an end to whatever ran before, and read how far it came. In this order: see the module."""
        try:
            self._transactions.start()
        except ClientError as error:
            raise _explained(error, self._settings.application_id) from error
        self.progress = read_progress(self._settings)
        return self.progress

    def deliver(self, results: Results, batch: Batch) -> int:
        """Commit a batch, unless it is in Kafka already."""
        if self.progress is not None and self.progress.covers(batch.checkpoint, batch.number, batch.entry):
            return 0
        if self.progress is not None and self.progress.ends == batch.ends and results.is_empty():
            return 0
        # A transaction must not be open for as long as a batch may take: the coordinator would abort it.
        results.wait()
        progress = Progress(batch.checkpoint, batch.number, batch.entry)
        sent = self._commit(results, progress)
        self.progress = progress
        return sent

    def refresh(self) -> None:
        """Commit the last progress again, so that neither the transactional id nor the offsets are forgotten."""
        if self.progress is not None:
            self._commit(None, self.progress)

    def interrupt(self) -> None:
        self._delivery.interruptible.interrupt()

    def close(self) -> None:
        with suppress(InterruptedDeliveryError):
            self._transactions.abort_if_open()
        self._delivery.close()
        self._consumer.close()

    def _commit(self, results: Results | None, progress: Progress) -> int:
        application_id = self._settings.application_id
        try:
            with self._transactions.begin():
                sent = 0 if results is None else self._delivery.send(results)
                self._delivery.producer.produce(self._topic, progress.encoded(), application_id.encode(), partition=0)
                membership: Any = self._consumer.consumer_group_metadata()
                self._transactions.add_offsets(progress.ends, membership)
        except FencedError:
            raise TakenOverError(
                f"another instance of application {application_id} was started, and this one ends"
            ) from None
        return sent


def _explained(error: ClientError, application_id: str) -> MoldauErrorOrClient:
    if error.error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return StreamsError(
            f"the cluster does not let this user write transactions as {application_id}; "
            "allow Write on that transactional id, or use processing.guarantee=at_least_once"
        )
    return error


MoldauErrorOrClient = StreamsError | ClientError
