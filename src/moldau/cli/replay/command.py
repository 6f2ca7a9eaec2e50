"""kafka-replay-log-producer: copies a topic, from its beginning to its end, into another. Start at `Copy.run`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.cluster_options import ZOOKEEPER, bootstrap_servers, pairs, report_client_log
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.tool import INTERRUPTED_S, ToolError, run, say, time_to_close_s, warn_about_stray_words
from moldau.client.admin import Admin
from moldau.client.connection import build, load_properties
from moldau.client.following import BEGINNING
from moldau.client.unsent_records import UnsentRecords, end_producer, flush_interruptibly
from moldau.client.waiting import close_within

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

__all__ = ["Copy", "main"]

POLL_S = 0.2
BATCH = 1000

PARSER = Parser(
    "Copy the records a topic holds into another one: keys, values, headers and timestamps.",
    [
        Option(
            "bootstrap-server",
            "Where to reach the cluster.",
            "host:port",
            aliases=("broker-list",),
        ),
        ZOOKEEPER,
        Option("inputtopic", "The topic to read.", "topic", is_required=True),
        Option("outputtopic", "The topic to write.", "topic", is_required=True),
        Option("messages", "How many records to copy; -1 for all.", "number", int, -1),
        Option("threads", "Accepted for compatibility; one is enough.", "number", int, 1, is_hidden=True),
        Option("reporting-interval", "How often to tell how far it is.", "ms", int, 5000),
        Option("property", "A property of the producer, such as acks=1. May be repeated.", "name=value"),
        Option("command-config", "A file of client properties, for example for TLS and SASL.", "file"),
        Option("sync", "Wait for each record before the next."),
    ],
    epilog=(
        "Example: kafka-replay-log-producer --bootstrap-server localhost:9092 --inputtopic orders --outputtopic copy"
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _run, argv)


def _run(parsed: Parsed) -> int:
    source, target = parsed.value("inputtopic"), parsed.value("outputtopic")
    if source == target:
        raise UsageError("--inputtopic and --outputtopic must differ: a topic copied into itself has no end")
    shared = load_properties(parsed.value("command-config")) if parsed.has("command-config") else {}
    shared["bootstrap.servers"] = bootstrap_servers(parsed)
    warn_about_stray_words(parsed, parsed.words_after("bootstrap-server"))
    copy = Copy(
        shared,
        pairs(parsed.values("property")),
        source,
        target,
        limit=parsed.value("messages"),
        is_sync=parsed.has("sync"),
        report_s=parsed.value("reporting-interval") / 1000,
    )
    return copy.run()


class Copy:
    """One copy: the committed records of the source, up to the end of each partition when it is reached."""

    def __init__(
        self,
        shared: dict[str, str],
        producing: dict[str, str],
        source: str,
        target: str,
        *,
        limit: int,
        is_sync: bool,
        report_s: float,
    ) -> None:
        from confluent_kafka import Consumer, Producer

        reading = {
            **shared,
            "group.id": "replay-log-producer",
            "client.id": "replay-log-producer",
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
        }
        self._consumer: Consumer
        self._consumer, _ = build(
            Consumer,
            "consumer",
            reading,
            report=report_client_log,
            title="Consumer clientId=replay-log-producer",
            extra={"enable.partition.eof": True},
        )
        self._producer: Producer
        self._producer, _ = build(
            Producer,
            "producer",
            {"client.id": "replay-log-producer", **shared, **producing},
            report=report_client_log,
            title="Producer clientId=replay-log-producer",
        )
        self._shared = shared
        self._source = source
        self._target = target
        self._limit = limit
        self._is_sync = is_sync
        self._report_s = report_s
        self._read = 0
        self._failed: Any = None
        self._unsent = UnsentRecords()

    def run(self) -> int:
        try:
            try:
                self._copy()
            except Exception:
                flush_interruptibly(self._producer)
                raise
            flush_interruptibly(self._producer)
        except KeyboardInterrupt:
            end_producer(self._producer, INTERRUPTED_S)
            for line in self._unsent.drain_lines(self._shared["bootstrap.servers"]):
                report_client_log("WARN", line)
            raise
        finally:
            close_within(self._consumer, time_to_close_s())
        if self._failed is not None:
            raise ToolError(f"records could not be written to {self._target}: {self._failed.str()}")
        say(f"Replayed {self._read} messages from {self._source} to {self._target}")
        return 0

    def _copy(self) -> None:
        unfinished = self._assign()
        next_report = time.monotonic() + self._report_s
        while unfinished and self._failed is None and self._read != self._limit:
            wanted = BATCH if self._limit < 0 else min(BATCH, self._limit - self._read)
            for message in self._consumer.consume(wanted, POLL_S):
                error = message.error()
                if error is None:
                    self._send(message)
                elif error.name() == "_PARTITION_EOF":
                    unfinished.discard(message.partition() or 0)
                else:
                    raise ToolError(f"{self._source} cannot be read: {error.str()}")
            if time.monotonic() >= next_report:
                print(f"{self._read} messages so far", file=sys.stderr, flush=True)
                next_report += self._report_s

    def _assign(self) -> set[int]:
        from confluent_kafka import TopicPartition as Position

        counts = Admin(self._shared["bootstrap.servers"], self._shared, report=report_client_log).partition_counts()
        if self._source not in counts:
            raise ToolError(f"there is no topic {self._source}")
        partitions = range(counts[self._source])
        self._consumer.assign([Position(self._source, number, BEGINNING) for number in partitions])
        return set(partitions)

    def _send(self, message: Any) -> None:
        kind, timestamp = message.timestamp()
        options: dict[str, Any] = {"timestamp": timestamp} if kind and timestamp >= 0 else {}
        self._read += 1
        while True:
            try:
                self._producer.produce(
                    self._target,
                    message.value(),
                    message.key(),
                    headers=message.headers(),
                    on_delivery=self._delivered,
                    **options,
                )
                break
            except BufferError:
                self._producer.poll(POLL_S)
        self._producer.poll(0)
        if self._is_sync:
            flush_interruptibly(self._producer)

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None and not self._unsent.notes(error, self._target) and self._failed is None:
            self._failed = error


if __name__ == "__main__":
    sys.exit(main())
