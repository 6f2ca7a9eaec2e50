"""`moldau perf`: measures producing, consuming and latency."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.perf.statistics import percentile
from moldau.cli.progress import live_line, render_progress
from moldau.cli.sub_commands import add_connection, command_parser, properties_of, run_command, screen_for
from moldau.cli.tool import ToolError

__all__ = ["main", "parser"]

DEFAULT_TOPIC = "moldau-perf"
MEBIBYTE = 1024 * 1024
PATIENCE_MS = 10_000
"""Consuming ends after this long without a record."""


def main(argv: Sequence[str]) -> int:
    return run_command(parser(), argv, lambda options: _VERBS[options.verb](options))


def parser() -> CommandParser:
    made = command_parser(
        "perf",
        "Measure how fast records go in, come out, and how long one takes there and back.",
        [
            "moldau perf produce -n 1000000 --size 100",
            "moldau perf consume -n 1000000",
            "moldau perf latency -n 5000 -o json",
        ],
    )
    produce = made.add_verb("produce", help="send records as fast as possible")
    produce.add_argument("--rate", type=float, default=-1, help="records a second at most")
    consume = made.add_verb("consume", help="read records as fast as possible")
    latency = made.add_verb("latency", help="one record at a time, there and back")
    for verb, default in ((produce, 1_000_000), (consume, 1_000_000), (latency, 10_000)):
        verb.add_argument("topic", nargs="?", default=DEFAULT_TOPIC, help=f"default: {DEFAULT_TOPIC}")
        verb.add_argument("-n", "--records", type=int, default=default, help=f"how many records (default: {default})")
        add_connection(verb)
    for verb in (produce, latency):
        verb.add_argument("--size", type=int, default=100, help="bytes of each record (default: 100)")
        verb.add_argument("--acks", choices=("1", "all"), default="all", help="how many replicas must confirm")
    return made


def _produce(options: argparse.Namespace) -> int:
    from moldau.cli.perf.payload import Payloads
    from moldau.cli.perf.producer import Run

    properties = {**properties_of(options), "acks": options.acks, "client.id": "moldau-perf"}
    run = Run(properties, options.topic, Payloads.of_size(options.size), records=options.records, rate=options.rate)
    with _progress_line("producing", lambda: run.stats.records, options.records):
        code = run.run()
    stats = run.stats
    facts = _rates(stats.records, stats.records * options.size, run.seconds)
    latencies = _percentiles(sorted(stats.latencies_ms))
    text = f"{_in_words(facts)}; latency {_latencies_in_words(latencies)}"
    screen_for(options).done(text, **facts, **latencies)
    return code


def _consume(options: argparse.Namespace) -> int:
    from moldau.cli.perf.consumer import Reading
    from moldau.client.following import BEGINNING

    properties = {
        "check.crcs": "true",
        **properties_of(options),
        "group.id": "moldau-perf",
        "client.id": "moldau-perf",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
    }
    reading = Reading(
        properties, [options.topic], is_member=False, wanted=options.records, timeout_ms=PATIENCE_MS, start=BEGINNING
    )
    with _progress_line("consuming", lambda: reading.records, options.records):
        reading.run()
    facts = _rates(reading.records, reading.bytes, reading.ended - reading.began)
    screen_for(options).done(_in_words(facts), **facts)
    if reading.records < options.records:
        raise ToolError(
            f"only {reading.records:,} of {options.records:,} records came, then none for {PATIENCE_MS // 1000} s; "
            f"{options.topic} may hold no more: moldau perf produce {options.topic} -n {options.records} sends some"
        )
    return 0


def _latency(options: argparse.Namespace) -> int:
    from moldau.cli.perf.latency import Trip

    trip = Trip(properties_of(options), options.topic, options.acks)
    with _progress_line("there and back", lambda: trip.done, options.records):
        ordered = trip.run(options.records, value=b"x" * options.size, quiet=True)
    facts = _percentiles(ordered)
    text = f"{len(ordered):,} records there and back: {_latencies_in_words(facts)}"
    screen_for(options).done(text, records=len(ordered), **facts)
    return 0


@contextlib.contextmanager
def _progress_line(what: str, done: Callable[[], int], wanted: int) -> Iterator[None]:
    """Show a progress line, and discard the output of Kafka's tools."""
    with (
        live_line(lambda seconds: f"{seconds:3.0f} s  {what} {render_progress(done(), wanted, seconds)}"),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        yield


def _rates(records: int, size: int, seconds: float) -> dict[str, float]:
    seconds = max(seconds, 1e-9)
    return {
        "records": records,
        "seconds": round(seconds, 3),
        "records_per_second": round(records / seconds, 1),
        "mib_per_second": round(size / seconds / MEBIBYTE, 2),
    }


def _in_words(facts: Mapping[str, float]) -> str:
    return (
        f"{facts['records']:,} records in {facts['seconds']:.2f} s: {facts['records_per_second']:,.0f} records/s, "
        f"{facts['mib_per_second']:,.1f} MiB/s"
    )


def _latencies_in_words(facts: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name.removesuffix('_ms')} {value:,.{0 if value >= 100 else 2}f} ms" for name, value in facts.items()
    )


def _percentiles(ordered: Sequence[float]) -> dict[str, float]:
    named = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
    return {name: round(percentile(ordered, fraction), 3) for name, fraction in named.items()}


_VERBS = {"produce": _produce, "consume": _consume, "latency": _latency}
