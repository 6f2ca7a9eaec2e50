"""kafka-e2e-latency: how long a record takes from the producer through the broker to a consumer.

Records are sent, flushed and received one at a time. Start at `Trip.run`.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence

from moldau.cli.cluster_options import report_client_log
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.perf.statistics import percentile
from moldau.cli.tool import ToolError, run, say, time_to_close_s
from moldau.client.admin import Admin
from moldau.client.connection import build, load_properties, normalize_servers
from moldau.client.unsent_records import end_producer, flush_interruptibly
from moldau.client.waiting import close_within
from moldau.core.ids import TopicPartition

__all__ = ["PARSER", "Trip", "main"]

TIMEOUT_S = 60.0
POLL_S = 0.2
REPORT_EVERY = 1000
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
OLD_ORDER = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size", "command-config")

PARSER = Parser(
    "Measure how long single records take from a producer to a consumer.",
    [
        Option("bootstrap-server", "Where to reach the cluster.", "host:port"),
        Option("topic", "The topic to go through.", "topic"),
        Option("num-records", "How many records to send, one after the other.", "number", int),
        Option("producer-acks", "Acknowledgements to wait for: 1 or all.", "acks"),
        Option("record-size", "The size of each record in bytes.", "bytes", int),
        Option("record-key-size", "The size of each key in bytes; 0 for none.", "bytes", int, 0),
        Option("num-headers", "How many headers each record has.", "number", int, 0),
        Option("record-header-key-size", "The size of each header's name.", "bytes", int, 0),
        Option("record-header-size", "The size of each header's value.", "bytes", int, 0),
        Option("command-config", "A file of client properties.", "file"),
    ],
    epilog=(
        "The old form works too: kafka-e2e-latency localhost:9092 topic 10000 1 100 [properties file]\n"
        "(brokers, topic, records, acks, size)."
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _measure, argv)


def _measure(parsed: Parsed) -> None:
    for name, word in zip(OLD_ORDER, parsed.words, strict=False):
        if not parsed.has(name):
            option = parsed.options[name]
            try:
                parsed.found[name] = [option.type(word)]
            except ValueError:
                raise UsageError(f"Cannot parse argument '{word}' of option {name}") from None
    parsed.require(*OLD_ORDER[:-1])
    acks = parsed.value("producer-acks")
    if acks not in ("1", "all"):
        raise UsageError("Latency testing requires synchronous acknowledgement. Please use 1 or all")
    properties = load_properties(parsed.value("command-config")) if parsed.has("command-config") else {}
    properties["bootstrap.servers"] = normalize_servers(parsed.value("bootstrap-server"))
    headers = [
        (_letters(parsed.value("record-header-key-size")).decode(), _letters(parsed.value("record-header-size")))
        for _ in range(parsed.value("num-headers"))
    ]
    key_size = parsed.value("record-key-size")
    trip = Trip(properties, parsed.value("topic"), acks)
    trip.run(
        parsed.value("num-records"),
        value=_letters(parsed.value("record-size")),
        key=_letters(key_size) if key_size else None,
        headers=headers,
    )


def _letters(size: int) -> bytes:
    return bytes(random.Random(0).choices(LETTERS, k=size))


class Trip:
    """A producer, and a consumer at the end of every partition, of one topic, which is created if missing."""

    def __init__(self, properties: dict[str, str], topic: str, acks: str) -> None:
        from confluent_kafka import Consumer, Producer

        producing = {**properties, "acks": acks, "linger.ms": "0", "client.id": "e2e-latency-producer"}
        consuming = {
            **properties,
            "group.id": f"test-group-{random.randrange(100_000)}",
            "client.id": "e2e-latency-consumer",
            "enable.auto.commit": "false",
            "fetch.max.wait.ms": properties.get("fetch.max.wait.ms", "0"),
        }
        self.done = 0
        self._topic = topic
        self._admin = Admin(properties["bootstrap.servers"], properties, report=report_client_log)
        self._producer, _ = build(
            Producer, "producer", producing, report=report_client_log, title="Producer clientId=e2e-latency-producer"
        )
        self._consumer, _ = build(
            Consumer, "consumer", consuming, report=report_client_log, title="Consumer clientId=e2e-latency-consumer"
        )

    def run(
        self,
        records: int,
        *,
        value: bytes,
        key: bytes | None = None,
        headers: Sequence[tuple[str, str | bytes | None]] = (),
        quiet: bool = False,
    ) -> list[float]:
        """Send and receive each record; returns the sorted latencies in milliseconds."""
        self._stand_at_the_end()
        latencies = []
        try:
            for number in range(records):
                began = time.perf_counter()
                self._producer.produce(self._topic, value, key, headers=list(headers))
                flush_interruptibly(self._producer, timeout_s=TIMEOUT_S)
                self._await(value)
                latencies.append((time.perf_counter() - began) * 1000)
                self.done = number + 1
                if number % REPORT_EVERY == 0 and not quiet:
                    say(f"{number}\t{latencies[-1]}")
        finally:
            end_producer(self._producer, 0.0)
            close_within(self._consumer, time_to_close_s())
        ordered = sorted(latencies)
        if not quiet:
            say(f"Avg latency: {sum(ordered) / max(len(ordered), 1):.4f} ms")
            shown = [int(percentile(ordered, fraction)) for fraction in (0.5, 0.99, 0.999)]
            say("Percentiles: 50th = {}, 99th = {}, 99.9th = {}".format(*shown))
        return ordered

    def _stand_at_the_end(self) -> None:
        """Assign every partition at its current end, so that only our own records are read."""
        from confluent_kafka import TopicPartition as Position

        if self._topic not in self._admin.topic_names():
            say(f'Topic "{self._topic}" does not exist. Will create topic with 1 partition(s)')
            self._admin.create_topic(self._topic, partitions=1, replication_factor=1)
        count = self._admin.partition_counts()[self._topic]
        ends = self._admin.list_offsets({TopicPartition(self._topic, number): -1 for number in range(count)})
        self._consumer.assign([Position(p.topic, p.partition, offset) for p, offset in ends.items()])

    def _await(self, value: bytes) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            message = self._consumer.poll(POLL_S)
            if message is None or message.error() is not None:
                continue
            if message.value() != value:
                raise ToolError(
                    "The message read does not match the message sent: is somebody else writing to the topic?"
                )
            return
        raise ToolError(f"poll() timed out before finding a result (timeout:[{TIMEOUT_S * 1000:.0f}ms])")


if __name__ == "__main__":
    sys.exit(main())
