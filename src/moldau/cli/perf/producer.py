"""kafka-producer-perf-test: how fast records can be sent, and how long each takes. Start at `Run.run`.

A callback for every record would distort the result. Up to `SAMPLE_ALL_BELOW` records a second each record is
timed, above that one in `SAMPLE_EVERY`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from moldau.cli.cluster_options import PRODUCER_CONFIG, pairs, report_client_log
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.perf.payload import Payloads
from moldau.cli.perf.statistics import ProducerStats
from moldau.cli.tool import INTERRUPTED_S, ToolError, run, say
from moldau.client.connection import build, load_properties, normalize_servers
from moldau.client.unsent_records import flush_interruptibly
from moldau.client.waiting import interruptible

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["PARSER", "Run", "main"]

SAMPLE_EVERY = 16
SAMPLE_ALL_BELOW = 20_000
BURST = 256

PARSER = Parser(
    "Send records as fast as possible, or at a given rate, and report rate and latency.",
    [
        Option("topic", "The topic to send to.", "topic", is_required=True),
        Option("num-records", "How many records to send.", "number", int, is_required=True),
        Option("throughput", "Records a second at most; -1 for no limit.", "number", float, -1),
        Option("record-size", "The size of each record in bytes.", "bytes", int),
        Option("payload-file", "A file with values, one of which is taken at random for each record.", "file"),
        Option("payload-delimiter", "What separates values in the file.", "text", str, "\\n"),
        Option("payload-monotonic", "Send 0, 1, 2, ..."),
        Option("bootstrap-server", "Where to reach the cluster.", "host:port", aliases=("broker-list",)),
        Option(
            "producer-props",
            "Producer properties, several after one another: acks=1 linger.ms=20.",
            "name=value ...",
            takes_many=True,
            aliases=("command-property",),
        ),
        PRODUCER_CONFIG,
        Option("print-metrics", "Print the client's own figures at the end."),
        Option("transactional-id", "Send in transactions under this id.", "id"),
        Option("transaction-duration-ms", "How long a transaction lasts before it is committed.", "ms", int),
        Option("warmup-records", "Leave this many records at the start out of the figures.", "number", int, 0),
        Option("reporting-interval", "How often to report.", "ms", int, 5000),
    ],
    epilog=(
        "Example: kafka-producer-perf-test --topic perf --num-records 1000000 --record-size 100 --throughput -1 "
        "--producer-props bootstrap.servers=localhost:9092"
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _measure, argv)


def _measure(parsed: Parsed) -> int:
    payloads = _payloads(parsed)
    properties = load_properties(parsed.value("producer.config")) if parsed.has("producer.config") else {}
    properties |= pairs(parsed.values("producer-props"))
    if parsed.has("bootstrap-server"):
        properties["bootstrap.servers"] = parsed.value("bootstrap-server")
    if "bootstrap.servers" not in properties:
        raise UsageError("At least one of --bootstrap-server, --command-property, --producer-props is needed")
    properties["bootstrap.servers"] = normalize_servers(properties["bootstrap.servers"])
    properties.setdefault("client.id", "perf-producer-client")
    if parsed.has("transactional-id") or parsed.has("transaction-duration-ms"):
        properties["transactional.id"] = parsed.value("transactional-id") or "performance-producer-default"
    duration_ms = parsed.value("transaction-duration-ms") or 3000
    return Run(
        properties,
        parsed.value("topic"),
        payloads,
        records=parsed.value("num-records"),
        rate=parsed.value("throughput"),
        warmup=parsed.value("warmup-records"),
        report_s=parsed.value("reporting-interval") / 1000,
        transaction_s=duration_ms / 1000 if "transactional.id" in properties else None,
        prints_metrics=parsed.has("print-metrics"),
    ).run()


def _payloads(parsed: Parsed) -> Payloads:
    given = [name for name in ("record-size", "payload-file", "payload-monotonic") if parsed.has(name)]
    if len(given) != 1:
        raise UsageError("One of --record-size, --payload-file or --payload-monotonic is needed, and only one")
    if parsed.has("record-size"):
        return Payloads.of_size(parsed.value("record-size"))
    if parsed.has("payload-file"):
        return Payloads.from_file(parsed.value("payload-file"), parsed.value("payload-delimiter"))
    return Payloads.monotonic()


class Run:
    """One measurement, from the first record to the last acknowledgement."""

    def __init__(
        self,
        properties: dict[str, str],
        topic: str,
        payloads: Payloads,
        *,
        records: int,
        rate: float = -1,
        warmup: int = 0,
        report_s: float = 5.0,
        transaction_s: float | None = None,
        prints_metrics: bool = False,
    ) -> None:
        from confluent_kafka import Producer

        extra: dict[str, Any] = {"statistics.interval.ms": 1000, "stats_cb": self._keep} if prints_metrics else {}
        self._producer: Producer
        title = f"Producer clientId={properties.get('client.id', '')}"
        self._producer, _ = build(Producer, "producer", properties, report=report_client_log, title=title, extra=extra)
        self._topic = topic
        self._servers = properties["bootstrap.servers"]
        self._is_over = False
        self._payloads = payloads
        self._records = records
        self._rate = rate
        self._warmup = warmup
        self._report_s = report_s
        self._transaction_s = transaction_s
        self.stats = ProducerStats(payloads.average_size, 0.0)
        self.seconds = 0.0
        self._metrics = ""
        self._failed = 0
        self._sample_every = 1 if 0 < rate <= SAMPLE_ALL_BELOW else SAMPLE_EVERY

    def run(self) -> int:
        try:
            return self._run()
        except KeyboardInterrupt:
            self._give_up()
            raise

    def _give_up(self) -> None:
        flush_interruptibly(self._producer, timeout_s=INTERRUPTED_S)
        if left := len(self._producer):
            text = f"{left} records were not acknowledged by the broker at {self._servers}, and may not be stored"
            print(text, file=sys.stderr, flush=True)
            self._is_over = True
            self._producer.purge()
            self._producer.poll(0)

    def _run(self) -> int:
        self._begin_transactions()
        if self._warmup:
            self._send(self._warmup, ProducerStats(self._payloads.average_size, time.monotonic()), is_quiet=True)
        self.stats = stats = ProducerStats(self._payloads.average_size, time.monotonic())
        self._send(self._records - self._warmup, stats)
        ended = time.monotonic()
        self.seconds = ended - stats.began
        say(stats.total(ended))
        if self._metrics:
            say(self._metrics)
        if self._failed:
            print(f"{self._failed} or more records were not acknowledged", file=sys.stderr)
        return 1 if self._failed else 0

    def _send(self, total: int, stats: ProducerStats, *, is_quiet: bool = False) -> None:
        """Queue records in bursts, not faster than the rate; then wait for all acknowledgements."""
        queued = 0
        next_report = stats.began + self._report_s
        transaction_began = time.monotonic()
        while queued < total:
            queued += self._burst(min(self._burst_size(), total - queued), stats)
            self._producer.poll(0)
            now = time.monotonic()
            stats.acknowledged(max(queued - len(self._producer), stats.records))
            if now >= next_report and not is_quiet:
                say(stats.close_window(now))
                next_report += self._report_s
            if self._transaction_s is not None and now - transaction_began >= self._transaction_s:
                self._commit(starts_next=queued < total)
                transaction_began = now
            self._pace(queued, stats.began)
        if self._transaction_s is not None:
            self._commit(starts_next=is_quiet)
        flush_interruptibly(self._producer)
        stats.acknowledged(queued - self._failed)

    def _burst_size(self) -> int:
        """The number of records in 10 ms at the requested rate, so that the rate is even; at most `BURST`."""
        return BURST if self._rate <= 0 else max(1, min(BURST, int(self._rate / 100)))

    def _burst(self, size: int, stats: ProducerStats) -> int:
        producer, topic, only = self._producer, self._topic, self._payloads.only
        every = self._sample_every

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self._fail(error)
            else:
                stats.latency(message.latency() * 1000)

        for number in range(size):
            value = only if only is not None else self._payloads.next()
            while True:
                try:
                    if number % every:
                        producer.produce(topic, value)
                    else:
                        producer.produce(topic, value, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.01)
        return size

    def _pace(self, queued: int, began: float) -> None:
        if self._rate > 0:
            due = began + queued / self._rate
            # A poll returns early when an acknowledgement arrives.
            while (ahead := due - time.monotonic()) > 0.0005:
                self._producer.poll(ahead)

    def _fail(self, error: Any) -> None:
        if not self._failed and not self._is_over:
            print(f"Error when sending a record: {error.str()}", file=sys.stderr)
        self._failed += 1

    def _begin_transactions(self) -> None:
        from confluent_kafka import KafkaException

        if self._transaction_s is None:
            return
        try:
            interruptible(self._producer.init_transactions)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise ToolError(f"a transaction cannot be started: {error.args[0].str()}") from None

    def _commit(self, *, starts_next: bool) -> None:
        from confluent_kafka import KafkaException

        try:
            interruptible(self._producer.commit_transaction)
            if starts_next:
                self._producer.begin_transaction()
        except KafkaException as error:
            raise ToolError(f"the transaction failed: {error.args[0].str()}") from None

    def _keep(self, metrics: str) -> None:
        self._metrics = metrics


if __name__ == "__main__":
    sys.exit(main())
