"""kafka-verifiable-producer: sends 0, 1, 2, ... and reports whether each was acknowledged. Start at `Numbers.run`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.cli.cluster_options import PRODUCER_CONFIG, report_client_log
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import INTERRUPTED_S, catch_stop_signals, log_line
from moldau.cli.verifiable.events import BROKERS, emit, run_verifiable
from moldau.client.connection import build, load_properties, normalize_servers
from moldau.client.errors import client_error, java_exception_prefix
from moldau.client.unsent_records import UnsentRecords, end_producer, flush_interruptibly

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["Numbers", "main"]

SOURCE = "org.apache.kafka.tools.VerifiableProducer"
POLL_S = 0.1
MAX_UNACKNOWLEDGED = 10_000
"""Each is reported when it fails, so a run that is ended while no broker answers has to print at most these."""

PARSER = Parser(
    "Send increasing numbers to a topic, and print for each whether it was acknowledged, as JSON.",
    [
        Option("topic", "The topic to send to.", "topic", is_required=True),
        BROKERS,
        Option("max-messages", "How many to send; -1 to go on until stopped.", "number", int, -1),
        Option("throughput", "Records a second at most; -1 for no limit.", "number", int, -1),
        Option("acks", "How many replicas must confirm: 0, 1, or -1 for all.", "acks", int, -1),
        Option("message-create-time", "The first record's timestamp; the next ones follow it.", "ms", int, -1),
        Option("value-prefix", "Put this number and a dot before each value.", "number", int),
        Option("repeating-keys", "Give records the keys 0, 1, ... up to this number, and again.", "number", int),
        PRODUCER_CONFIG,
    ],
    epilog="Example: kafka-verifiable-producer --bootstrap-server localhost:9092 --topic t --max-messages 10",
)


def main(argv: Sequence[str] | None = None) -> int:
    return run_verifiable(PARSER, _run, sys.argv[1:] if argv is None else argv)


def _run(parsed: Parsed) -> int:
    if parsed.value("acks") not in (-1, 0, 1):
        raise UsageError(f"argument --acks: invalid choice: '{parsed.value('acks')}' (choose from -1, 0, 1)")
    keys = parsed.value("repeating-keys")
    if keys is not None and keys < 1:
        raise UsageError("--repeating-keys must be at least 1")
    properties = {"acks": str(parsed.value("acks")), "retries": "0", "client.id": "verifiable-producer"}
    if parsed.has("producer.config"):
        properties |= load_properties(parsed.value("producer.config"))
    properties["bootstrap.servers"] = normalize_servers(parsed.value("bootstrap-server"))
    numbers = Numbers(
        properties,
        parsed.value("topic"),
        count=parsed.value("max-messages"),
        rate=parsed.value("throughput"),
        create_time_ms=parsed.value("message-create-time"),
        prefix=parsed.value("value-prefix"),
        keys=keys,
    )
    catch_stop_signals(numbers.stop)
    numbers.run()
    return 0


class Numbers:
    """One run of the producer, from the first number to the last acknowledgement."""

    def __init__(
        self,
        properties: dict[str, str],
        topic: str,
        *,
        count: int,
        rate: int,
        create_time_ms: int,
        prefix: int | None,
        keys: int | None,
    ) -> None:
        from confluent_kafka import Producer

        self._producer: Producer
        self._producer, _ = build(
            Producer, "producer", properties, report=report_client_log, title="Producer clientId=verifiable-producer"
        )
        self._topic = topic
        self._count = count
        self._rate = rate
        self._create_time_ms = create_time_ms
        self._prefix = prefix
        self._keys = keys
        self._stopped = False
        self._unsent = UnsentRecords()
        self._servers = properties["bootstrap.servers"]
        self._sent = self._acked = 0

    @property
    def unacknowledged(self) -> int:
        return len(self._producer)

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> None:
        began = time.monotonic()
        emit("startup_complete")
        while not self._stopped and (self._count < 0 or self._sent < self._count):
            self._send(self._sent, began)
            self._pace(began)
        if not flush_interruptibly(self._producer, is_over=lambda: self._stopped):
            self._give_up()
        emit("shutdown_complete")
        average = self._acked / max(time.monotonic() - began, 0.001)
        emit("tool_data", sent=self._sent, acked=self._acked, target_throughput=self._rate, avg_throughput=average)

    def _give_up(self) -> None:
        """End the producer while records are in flight; each dropped record is also reported as an event."""
        end_producer(self._producer, INTERRUPTED_S)
        for line in self._unsent.drain_lines(self._servers):
            log_line("WARN", line, SOURCE)

    def _send(self, number: int, began: float) -> None:
        key = str(number % self._keys) if self._keys is not None else None
        value = f"{self._prefix}.{number}" if self._prefix is not None else str(number)
        options: dict[str, Any] = {}
        if self._create_time_ms >= 0:
            options["timestamp"] = self._create_time_ms + round((time.monotonic() - began) * 1000)
        while self.unacknowledged >= MAX_UNACKNOWLEDGED:
            self._producer.poll(POLL_S)
            if self._stopped:
                return
        report = partial(self._delivered, key, value)
        self._producer.produce(self._topic, value, key, on_delivery=report, **options)
        self._sent += 1
        self._producer.poll(0)

    def _pace(self, began: float) -> None:
        if self._rate < 0:
            return
        # A rate of zero means: wait until stopped.
        while not self._stopped:
            ahead = began + self._sent / self._rate - time.monotonic() if self._rate else POLL_S
            if ahead <= 0:
                return
            self._producer.poll(min(ahead, POLL_S))

    def _delivered(self, key: str | None, value: str, error: Any, message: Any) -> None:
        if error is None:
            self._acked += 1
            place = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            emit("producer_send_success", key=key, value=value, **place)
            return
        self._unsent.notes(error, self._topic)
        failure = client_error(error)
        kind = java_exception_prefix(failure).removesuffix(": ") or "org.apache.kafka.common.KafkaException"
        emit(
            "producer_send_error",
            key=key,
            value=value,
            topic=self._topic,
            exception=f"class {kind}",
            message=str(failure),
        )


if __name__ == "__main__":
    sys.exit(main())
