"""The dead-letter topic of a sink connector: failed records as they were, with the reason in headers.

Start at `DeadLetters.report`.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moldau.client.admin import Admin
from moldau.client.connection import build, log_report
from moldau.client.errors import ClientError, client_error
from moldau.connect.api.errors import ConnectError
from moldau.connect.runtime.client_settings import ClientSettings
from moldau.connect.runtime.tolerance import FailedRecord
from moldau.core.errors import ErrorCode

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["DeadLetters", "context_headers"]

PREFIX = "__connect.errors."
FLUSH_S = 30.0


def context_headers(failed: FailedRecord, connector: str, task: int) -> list[tuple[str, bytes]]:
    """Why and where a record failed."""
    message = failed.record
    trace = "".join(traceback.format_exception(failed.error))
    texts = {
        "topic": message.topic(),
        "partition": str(message.partition()),
        "offset": str(message.offset()),
        "connector.name": connector,
        "task.id": str(task),
        "stage": failed.stage.value,
        "class.name": failed.class_name,
        "exception.class.name": f"{type(failed.error).__module__}.{type(failed.error).__qualname__}",
        "exception.message": str(failed.error),
        "exception.stacktrace": trace,
    }
    return [(f"{PREFIX}{name}", text.encode(errors="replace")) for name, text in texts.items()]


class DeadLetters:
    """Used by the thread of one task."""

    def __init__(self, config: Mapping[str, str], clients: ClientSettings, connector: str, task: int) -> None:
        self._topic = config["errors.deadletterqueue.topic.name"]
        self._replicas = int(config.get("errors.deadletterqueue.topic.replication.factor", "3"))
        self._has_context = config.get("errors.deadletterqueue.context.headers.enable", "false").lower() == "true"
        self._clients = clients
        self._connector, self._task = connector, task
        self._producer: Producer | None = None
        self._failures: list[Any] = []
        self.count = 0

    def report(self, failed: FailedRecord) -> None:
        """Send a record that was consumed from a topic; `flush` waits for it."""
        message = failed.record
        if message is None or not hasattr(message, "topic") or not callable(message.topic):
            return
        headers = list(message.headers() or [])
        if self._has_context:
            headers += context_headers(failed, self._connector, self._task)
        kind, timestamp = message.timestamp()
        producer = self._open()
        producer.produce(
            self._topic,
            key=message.key(),
            value=message.value(),
            headers=headers,
            timestamp=timestamp if kind else 0,
        )
        producer.poll(0)
        self.count += 1

    def flush(self) -> None:
        """Wait until all records are stored; before the offsets of the originals are committed."""
        if self._producer is None:
            return
        left = self._producer.flush(FLUSH_S)
        failures, self._failures = self._failures, []
        if failures:
            raise ConnectError(f"dead letters cannot be written to {self._topic}: {client_error(failures[0])}")
        if left:
            raise ConnectError(f"{left} dead letters could not be written to {self._topic} within {FLUSH_S:g} s")

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(1.0)
            self._producer = None

    def _open(self) -> Producer:
        from confluent_kafka import Producer as RdkafkaProducer

        if self._producer is not None:
            return self._producer
        self._create_topic()
        properties = self._clients.producer(f"connector-dlq-producer-{self._connector}-{self._task}")
        producer: Producer
        producer, _ = build(
            RdkafkaProducer,
            "producer",
            properties,
            report=log_report,
            title=f"dead letters of {self._connector}-{self._task}",
            extra={"on_delivery": self._note, "delivery.report.only.error": True},
        )
        self._producer = producer
        return producer

    def _note(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failures.append(error)

    def _create_topic(self) -> None:
        admin = Admin(self._clients.servers, self._clients.admin(f"connect-dlq-{self._connector}"))
        if self._topic in admin.topic_names():
            return
        replicas = min(self._replicas, admin.broker_count()) if self._replicas > 0 else 1
        try:
            admin.create_topic(self._topic, partitions=1, replication_factor=replicas, configs={})
        except ClientError as error:
            if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
