"""kafka-consumer-perf-test: how fast records can be read. Start at `Reading.run`."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from moldau.cli.cluster_options import BROKERS, CONSUMER_CONFIG, pairs, report_client_log
from moldau.cli.options import Option, Parsed, Parser, UsageError
from moldau.cli.perf.java_dates import render_date
from moldau.cli.tool import run, say, time_to_close_s
from moldau.cli.topics.selection import topic_pattern
from moldau.client.connection import build, load_properties, normalize_servers
from moldau.client.following import BEGINNING, END, Follower
from moldau.client.waiting import close_within

if TYPE_CHECKING:
    from confluent_kafka import Consumer

__all__ = ["PARSER", "Reading", "main"]

MEBIBYTE = 1024 * 1024
BATCH = 10_000
POLL_S = 0.1

PARSER = Parser(
    "Read records as fast as possible and report the rate.",
    [
        BROKERS,
        Option("topic", "The topic to read.", "topic"),
        Option("include", "A regular expression: read all topics it matches.", "regex", aliases=("whitelist",)),
        Option("num-records", "How many records to read.", "number", int, is_required=True, aliases=("messages",)),
        Option("group", "Read as a member of this group; without it partitions are read directly.", "group"),
        Option("fetch-size", "The most bytes of one fetch.", "bytes", int, MEBIBYTE),
        Option("from-latest", "Begin with new records instead of the oldest."),
        Option("socket-buffer-size", "The size of the socket's receive buffer.", "bytes", int, 2 * MEBIBYTE),
        Option("timeout", "Give up when no record came for this long.", "ms", int, 10_000),
        Option("show-detailed-stats", "Report while reading, not only at the end."),
        Option("reporting-interval", "How often to report then.", "ms", int, 5000),
        Option("date-format", "How times are shown.", "format", str, "yyyy-MM-dd HH:mm:ss:SSS"),
        Option("hide-header", "Leave the line of column names out."),
        Option("print-metrics", "Print the client's own figures at the end."),
        Option(
            "consumer-property",
            "A property of the consumer. May be repeated.",
            "name=value",
            aliases=("command-property",),
        ),
        CONSUMER_CONFIG,
        Option("threads", "Accepted for compatibility.", "number", int, is_hidden=True),
        Option("num-fetch-threads", "Accepted for compatibility.", "number", int, is_hidden=True),
    ],
    epilog="Example: kafka-consumer-perf-test --bootstrap-server localhost:9092 --topic perf --num-records 1000000",
)

_RATES = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
_TOTALS = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"


def main(argv: Sequence[str] | None = None) -> int:
    return run(PARSER, _measure, argv)


def _measure(parsed: Parsed) -> int:
    properties = load_properties(parsed.value("consumer.config")) if parsed.has("consumer.config") else {}
    properties |= pairs(parsed.values("consumer-property"))
    properties["bootstrap.servers"] = normalize_servers(parsed.value("bootstrap-server"))
    group = parsed.value("group") or properties.get("group.id")
    properties["group.id"] = group or f"perf-consumer-{random.randrange(100_000)}"
    if group is None:
        # There is no group, so no coordinator would accept our offsets: a commit would only delay the end.
        properties["enable.auto.commit"] = "false"
    properties.setdefault("client.id", "perf-consumer-client")
    properties.setdefault("receive.buffer.bytes", str(parsed.value("socket-buffer-size")))
    properties.setdefault("max.partition.fetch.bytes", str(parsed.value("fetch-size")))
    properties.setdefault("auto.offset.reset", "latest" if parsed.has("from-latest") else "earliest")
    # The Java consumer checks by default; doing the same keeps the results comparable.
    properties.setdefault("check.crcs", "true")
    reading = Reading(
        properties,
        _topics(parsed),
        is_member=group is not None,
        wanted=parsed.value("num-records"),
        timeout_ms=parsed.value("timeout"),
        start=END if parsed.has("from-latest") else BEGINNING,
        report_ms=parsed.value("reporting-interval") if parsed.has("show-detailed-stats") else None,
        date_format=parsed.value("date-format"),
        prints_metrics=parsed.has("print-metrics"),
    )
    if not parsed.has("hide-header"):
        first = "time, threadId" if parsed.has("show-detailed-stats") else "start.time, end.time"
        say(f"{first}, {_TOTALS}, {_RATES}")
    reading.run()
    if not parsed.has("show-detailed-stats"):
        say(reading.total_line())
    if reading.metrics:
        say(reading.metrics)
    return 0


def _topics(parsed: Parsed) -> list[str] | re.Pattern[str]:
    if parsed.has("topic") == parsed.has("include"):
        raise UsageError("Exactly one of --topic and --include is needed")
    return [parsed.value("topic")] if parsed.has("topic") else topic_pattern(parsed.value("include"))


@dataclass(slots=True)
class _Count:
    records: int = 0
    bytes: int = 0


class Reading:
    """One measurement, from joining or assigning to the last record."""

    def __init__(
        self,
        properties: dict[str, str],
        topics: list[str] | re.Pattern[str],
        *,
        is_member: bool,
        wanted: int,
        timeout_ms: int,
        start: int,
        report_ms: int | None = None,
        date_format: str = "yyyy-MM-dd HH:mm:ss:SSS",
        prints_metrics: bool = False,
    ) -> None:
        from confluent_kafka import Consumer

        title = f"Consumer clientId={properties['client.id']}, groupId={properties['group.id']}"
        # Large batches from librdkafka's queue cost less than single records.
        extra: dict[str, Any] = {"queued.min.messages": 1_000_000, "queued.max.messages.kbytes": 262_144}
        if prints_metrics:
            extra |= {"statistics.interval.ms": 500, "stats_cb": self._keep}
        self.metrics = ""
        self._consumer: Consumer
        self._consumer, _ = build(Consumer, "consumer", properties, report=report_client_log, title=title, extra=extra)
        self._topics = topics
        self._is_member = is_member
        self._wanted = wanted
        self._timeout_s = timeout_ms / 1000
        self._start = start
        self._report_ms = report_ms
        self._date_format = date_format
        self._count = _Count()
        self._reported = _Count()
        self._assigned_at: float | None = None
        self.began = self.ended = time.time()

    @property
    def records(self) -> int:
        return self._count.records

    @property
    def bytes(self) -> int:
        return self._count.bytes

    def run(self) -> None:
        self.began = time.time()
        follower = self._attach()
        try:
            self._read(follower)
        finally:
            self.ended = time.time()
            close_within(self._consumer, time_to_close_s())
        if self._count.records < self._wanted:
            say(
                "WARNING: Exiting before consuming the expected number of messages: "
                f"timeout ({self._timeout_s * 1000:.0f} ms) exceeded. You can use the --timeout option "
                "to increase the timeout."
            )

    def total_line(self) -> str:
        elapsed_ms = max(self.ended - self.began, 0.001) * 1000
        joined_ms = ((self._assigned_at or self.began) - self.began) * 1000
        head = f"{self._date(self.began)}, {self._date(self.ended)}"
        return f"{head}, {_figures(self._count, elapsed_ms, joined_ms)}"

    def _attach(self) -> Follower | None:
        if not self._is_member:
            return Follower(self._consumer, self._topics, start=self._start)
        names = self._topics if isinstance(self._topics, list) else [f"^{self._topics.pattern}$"]
        self._consumer.subscribe(names, on_assign=self._on_assigned)
        return None

    def _on_assigned(self, consumer: Consumer, partitions: list[Any]) -> None:
        self._assigned_at = time.time()

    def _keep(self, metrics: str) -> None:
        self.metrics = metrics

    def _read(self, follower: Follower | None) -> None:
        last_arrival = time.monotonic()
        next_report = time.time() + (self._report_ms or 0) / 1000
        while self._count.records < self._wanted and time.monotonic() - last_arrival < self._timeout_s:
            if follower is not None:
                follower.refresh_if_due()
                if self._assigned_at is None and follower.assigned:
                    self._assigned_at = time.time()
            messages = self._consumer.consume(BATCH, 0)
            if not messages:
                first = self._consumer.poll(POLL_S)
                messages = [first] if first is not None else []
            if messages:
                self._take(messages)
                last_arrival = time.monotonic()
            if self._report_ms is not None and time.time() >= next_report:
                self._report_window(next_report)
                next_report += self._report_ms / 1000

    def _take(self, messages: list[Any]) -> None:
        size = records = 0
        for message in messages:
            if message.error() is None:
                records += 1
                size += len(message)
                key = message.key()
                if key is not None:
                    size += len(key)
        self._count.records += records
        self._count.bytes += size

    def _report_window(self, end: float) -> None:
        assert self._report_ms is not None
        window = _Count(self._count.records - self._reported.records, self._count.bytes - self._reported.bytes)
        total_mb = self._count.bytes / MEBIBYTE
        seconds = self._report_ms / 1000
        megabytes_s, records_s = window.bytes / MEBIBYTE / seconds, window.records / seconds
        say(
            f"{self._date(end)}, 0, {total_mb:.4f}, {megabytes_s:.4f}, {self._count.records}, {records_s:.4f}, "
            f"0, {self._report_ms}, {megabytes_s:.4f}, {records_s:.4f}"
        )
        self._reported = _Count(self._count.records, self._count.bytes)

    def _date(self, seconds: float) -> str:
        return render_date(datetime.fromtimestamp(seconds), self._date_format)


def _figures(count: _Count, elapsed_ms: float, joined_ms: float) -> str:
    """The totals for the whole time, then for the time without joining."""
    fetch_ms = max(elapsed_ms - joined_ms, 1.0)
    megabytes = count.bytes / MEBIBYTE
    return (
        f"{megabytes:.4f}, {megabytes / elapsed_ms * 1000:.4f}, {count.records}, "
        f"{count.records / elapsed_ms * 1000:.4f}, {joined_ms:.0f}, {fetch_ms:.0f}, "
        f"{megabytes / fetch_ms * 1000:.4f}, {count.records / fetch_ms * 1000:.4f}"
    )


if __name__ == "__main__":
    sys.exit(main())
