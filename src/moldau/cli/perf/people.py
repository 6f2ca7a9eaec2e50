"""`moldau perf`: measure producing, consuming and latency, for people."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Sequence

from moldau.cli.command_line import CommandParser
from moldau.cli.people import add_connection, command_parser, properties_of, run_command, screen_for
from moldau.cli.perf.statistics import percentile

__all__ = ["main", "parser"]

DEFAULT_TOPIC = "moldau-perf"
MEBIBYTE = 1024 * 1024


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
    screen = screen_for(options)
    if not screen.is_json:
        return run.run()
    with contextlib.redirect_stdout(io.StringIO()):
        code = run.run()
    stats = run.stats
    ordered = sorted(stats.latencies_ms)
    screen.document(
        {
            "records": stats.records,
            "seconds": round(run.seconds, 3),
            "records_per_second": round(stats.records / run.seconds, 1),
            "mib_per_second": round(stats.records * options.size / run.seconds / MEBIBYTE, 2),
            **_percentiles(ordered),
        }
    )
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
        properties, [options.topic], is_member=False, wanted=options.records, timeout_ms=10_000, start=BEGINNING
    )
    screen = screen_for(options)
    with contextlib.redirect_stdout(io.StringIO()) if screen.is_json else contextlib.nullcontext():
        reading.run()
    seconds = reading.ended - reading.began
    facts = {
        "records": reading.records,
        "seconds": round(seconds, 3),
        "records_per_second": round(reading.records / seconds, 1),
        "mib_per_second": round(reading.bytes / seconds / MEBIBYTE, 2),
    }
    screen.done(
        f"{reading.records} records in {seconds:.2f} s, {facts['records_per_second']} records/sec "
        f"({facts['mib_per_second']} MiB/sec)",
        **facts,
    )
    return 0 if reading.records >= options.records else 1


def _latency(options: argparse.Namespace) -> int:
    from moldau.cli.perf.latency import Trip

    screen = screen_for(options)
    trip = Trip(properties_of(options), options.topic, options.acks)
    with contextlib.redirect_stdout(io.StringIO()) if screen.is_json else contextlib.nullcontext():
        ordered = trip.run(options.records, value=b"x" * options.size, quiet=True)
    facts = _percentiles(ordered)
    words = ", ".join(f"{name.removesuffix('_ms')} {value} ms" for name, value in facts.items())
    screen.done(f"{len(ordered)} records: {words}", records=len(ordered), **facts)
    return 0


def _percentiles(ordered: Sequence[float]) -> dict[str, float]:
    named = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
    return {name: round(percentile(ordered, fraction), 3) for name, fraction in named.items()}


_VERBS = {"produce": _produce, "consume": _consume, "latency": _latency}
