"""kafka-console-consumer: prints a topic's records as they arrive.

Without `--group` all partitions are read directly (`client.following`); with it, the consumer joins the
group as a normal member. Start at `Printer.run`.
"""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.cli.cluster_options import bootstrap_servers, report_client_log
from moldau.cli.console.consumer_options import PARSER, Plan
from moldau.cli.console.formatter import Formatter
from moldau.cli.moments import parse_duration_ms
from moldau.cli.options import Parsed, Parser
from moldau.cli.tool import (
    CLOSE_S,
    INTERRUPTED_S,
    ToolError,
    catch_stop_signals,
    forget_output,
    log_line,
    run,
    warn_about_stray_words,
)
from moldau.cli.topics.selection import INTERNAL_TOPICS
from moldau.client.connection import build
from moldau.client.errors import ClientError
from moldau.client.following import Follower, start_offsets_at
from moldau.client.waiting import close_within
from moldau.core.errors import MoldauError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

__all__ = ["Printer", "Wording", "consume", "main"]

NETWORK_LOG = "org.apache.kafka.clients.NetworkClient"
SOURCE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
POLL_S = 0.1
BATCH = 10_000
JOIN_PATIENCE_S = 3.0


def main(
    argv: Sequence[str] | None = None,
    *,
    formatter: Formatter | None = None,
    parser: Parser = PARSER,
    default_formatter: str | None = None,
) -> int:
    """Run the tool; `formatter` overrides the options, `default_formatter` is used if they name none."""
    body = partial(consume, formatter=formatter, default_formatter=default_formatter)
    return run(parser, body, argv, report=_report)


def _report(error: MoldauError) -> None:
    print(error, file=sys.stderr)


class Wording:
    """The messages on stderr, beside the records: here in Kafka's wording, which scripts search for."""

    def timed_out(self, timeout_ms: int) -> None:
        text = "Error processing message, terminating consumer process: "
        log_line("ERROR", f"{text}org.apache.kafka.common.errors.TimeoutException", SOURCE)

    def reader_left(self) -> None:
        print("Unable to write to standard out, closing consumer.", file=sys.stderr)

    def missing(self, topics: dict[str, str], client_id: str) -> None:
        names = ", ".join(f"{topic}={reason}" for topic, reason in sorted(topics.items()))
        log_line("WARN", f"[Consumer clientId={client_id}] Error while fetching metadata : {{{names}}}", NETWORK_LOG)

    def ended(self, count: int) -> None:
        print(f"Processed a total of {count} messages", file=sys.stderr, flush=True)


def consume(
    parsed: Parsed,
    *,
    formatter: Formatter | None = None,
    default_formatter: str | None = None,
    wording: Wording | None = None,
) -> int:
    """Print the records that a command line selects; returns the exit code."""
    wording = wording or Wording()
    if parsed.has("zookeeper") and not parsed.has("bootstrap-server"):
        parsed.found["bootstrap-server"] = [bootstrap_servers(parsed)]
    plan = Plan.of(parsed, default_formatter=default_formatter)
    if formatter is not None:
        plan = replace(plan, formatter=formatter)
    warn_about_stray_words(parsed, parsed.words_after("bootstrap-server"))
    printer = Printer(plan, wording)
    catch_stop_signals(printer.stop)
    try:
        return printer.run()
    finally:
        wording.ended(printer.count)


def _reader_has_left() -> bool:
    """Whether our output is a pipe whose reader has closed it, as with `| head`: a write would fail too late."""
    poll = select.poll()
    try:
        poll.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        return False  # stdout is not a file, as in a test
    return any(events & select.POLLERR for _, events in poll.poll(0))


class Printer:
    """Reads and prints until the plan's limits are reached, a signal arrives, or the output pipe is closed."""

    def __init__(self, plan: Plan, wording: Wording) -> None:
        from confluent_kafka import Consumer

        self.count = 0
        self._plan = plan
        self._wording = wording
        self._stopped = False
        self._is_member = False
        self._warned: dict[str, str] = {}
        title = f"Consumer clientId={plan.properties['client.id']}, groupId={plan.properties['group.id']}"
        self._consumer: Consumer
        self._consumer, translated = build(Consumer, "consumer", plan.properties, report=report_client_log, title=title)
        self._duration = translated.own.get("auto.offset.reset")
        self._follower = self._follow(translated.settings) if plan.group is None else None
        if self._follower is None:
            self._subscribe()

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> int:
        """Print until the end; returns the exit code, 0 for every expected end."""
        try:
            self._read()
        except BrokenPipeError:
            self._wording.reader_left()
            forget_output()
        finally:
            self._close()
        if self._plan.prints_events:
            print(f'{{"timestamp":{time.time_ns() // 1_000_000},"name":"shutdown_complete"}}', flush=True)
        return 0

    def _close(self) -> None:
        if not close_within(self._consumer, INTERRUPTED_S if self._stopped else CLOSE_S) and self._plan.group:
            text = f"group {self._plan.group}: no broker answered, so it was left without a commit"
            log_line("WARN", text, SOURCE)

    def _read(self) -> None:
        last_arrival = joining_since = time.monotonic()
        while not self._stopped:
            if self._follower is not None:
                self._warn_about(self._follower.refresh_if_due())
            wanted = BATCH if self._plan.max_messages is None else min(BATCH, self._plan.max_messages - self.count)
            if wanted <= 0:
                return
            first = self._consumer.poll(POLL_S)
            now = time.monotonic()
            if first is not None:
                self._print([first, *self._consumer.consume(wanted - 1, 0)] if wanted > 1 else [first])
                last_arrival = now
            elif _reader_has_left():
                raise BrokenPipeError
            elif self._plan.timeout_ms is not None and (now - last_arrival) * 1000 >= self._plan.timeout_ms:
                self._wording.timed_out(self._plan.timeout_ms)
                return
            elif self._follower is None and not self._is_member and now - joining_since > JOIN_PATIENCE_S:
                self._check_that_groups_exist()
                joining_since = float("inf")

    def _print(self, messages: list[Any]) -> None:
        render = self._plan.formatter
        lines = []
        for message in messages:
            error = message.error()
            if error is not None:
                self._handle(error)
                continue
            try:
                lines.append(render(message))
            except (ValueError, UnicodeError) as problem:
                self._flush(lines)
                place = f"record {message.offset()} of {message.topic()}-{message.partition()}"
                log_line("ERROR", f"Error processing message, {place}: {problem}", SOURCE)
                if not self._plan.skips_errors:
                    self._stopped = True
                    return
                lines = []
            self.count += 1
        self._flush(lines)

    @staticmethod
    def _flush(lines: list[bytes]) -> None:
        if lines:
            sys.stdout.buffer.write(b"".join(lines))
            sys.stdout.buffer.flush()

    def _handle(self, error: Any) -> None:
        """Log a temporary error, which librdkafka retries; raise a fatal error or a lost position."""
        if error.fatal() or error.name() in ("_AUTO_OFFSET_RESET", "_FATAL"):
            raise ToolError(error.str())
        log_line("WARN", error.str(), SOURCE)

    # Without a group

    def _follow(self, settings: dict[str, str]) -> Follower:
        plan = self._plan
        if settings.get("auto.offset.reset") == "error":
            raise ToolError(
                "Undefined offset with no reset policy: auto.offset.reset=none needs a --group with offsets"
            )
        may_create = settings.get("allow.auto.create.topics", "true").lower() == "true"
        follower = Follower(
            self._consumer,
            plan.topics,
            start=plan.start,
            only_partition=plan.partition,
            skipped=self._skipped(),
            may_create=may_create,
            is_over=lambda: self._stopped,
        )
        if self._duration is not None:
            partitions, _ = follower.partitions()
            since = int(time.time() * 1000) - parse_duration_ms(self._duration.partition(":")[2])
            start = start_offsets_at(self._consumer, sorted(partitions), since)
            follower = Follower(self._consumer, plan.topics, start=start, skipped=self._skipped())
        return follower

    def _skipped(self) -> frozenset[str]:
        is_shown = self._plan.properties.get("exclude.internal.topics", "true").lower() == "false"
        return frozenset() if is_shown else INTERNAL_TOPICS

    def _warn_about(self, missing: dict[str, str]) -> None:
        """Report missing topics and reasons, when they change; the lookup continues."""
        # If no broker answers, the client itself logs it.
        if missing and missing != self._warned and "" not in missing:
            self._wording.missing(missing, self._plan.properties["client.id"])
        self._warned = missing

    # With a group

    def _subscribe(self) -> None:
        topics = self._plan.topics
        names = topics if isinstance(topics, list) else [f"^{topics.pattern}$"]
        self._consumer.subscribe(names, on_assign=self._on_assigned)

    def _on_assigned(self, consumer: Consumer, partitions: list[Any]) -> None:
        self._is_member = True

    def _check_that_groups_exist(self) -> None:
        """Raise if the broker has no consumer groups: waiting longer to join would not help."""
        from moldau.client.admin import Admin
        from moldau.protocol.api import ApiKey

        servers = self._plan.properties["bootstrap.servers"]
        admin = Admin(servers, {}, timeout_ms=2000, is_over=lambda: self._stopped)
        try:
            with admin.wire() as client:
                has_groups = ApiKey.JOIN_GROUP in client.api_versions()
        except ClientError:
            return
        if not has_groups:
            raise ToolError(
                f"group '{self._plan.group}' cannot be joined: this broker has no consumer groups "
                "(COORDINATOR_NOT_AVAILABLE). Leave --group out to read without one"
            )


if __name__ == "__main__":
    sys.exit(main())
