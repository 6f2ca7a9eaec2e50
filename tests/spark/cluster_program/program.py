"""A user's program for a cluster: four applications, with a module of their own beside them.

    python program.py BOOTSTRAP STATE_DIR APPLICATION... [KEY=VALUE...]

runs applications by their names until SIGTERM, with any further settings. It is a script, not a module of the tests:
what it imports is found beside it, and must reach Spark's workers from there.
"""

from __future__ import annotations

import sys

from pricing import Rates, with_tax

from moldau.streams import (
    Consumed,
    Grouped,
    Joined,
    KafkaStreams,
    LongSerde,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindows,
    Topology,
)

TEXT, LONG = StringSerde(), LongSerde()
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
RATES = Rates({"books": 7, "music": 19})


def priced() -> Topology:
    """Lambdas and functions without state."""
    builder = StreamsBuilder()
    (
        builder.stream("orders", Consumed.with_(TEXT, TEXT))
        .filter(lambda customer, order: not order.startswith("free"))
        .map_values(lambda order: with_tax(order, RATES))
        .to("priced", Produced.with_(TEXT, TEXT))
    )
    return builder.build()


def per_minute() -> Topology:
    """Every change of a count in windows: state in Python."""
    builder = StreamsBuilder()
    (
        builder.stream("orders", Consumed.with_(TEXT, TEXT))
        .group_by_key(Grouped.with_(TEXT, TEXT))
        .windowed_by(TimeWindows.of_size_and_grace(MINUTE_MS, HOUR_MS))
        .count()
        .to_stream(lambda windowed, count: f"{windowed.key}@{windowed.window.start // MINUTE_MS}")
        .to("per-minute", Produced.with_(TEXT, LONG))
    )
    return builder.build()


def addressed() -> Topology:
    """Orders with their customers' names."""
    builder = StreamsBuilder()
    customers = builder.table("customers", Consumed.with_(TEXT, TEXT))
    (
        builder.stream("orders", Consumed.with_(TEXT, TEXT))
        .join(customers, lambda order, name: f"{order} for {name}", joined=Joined.with_(TEXT, TEXT, TEXT))
        .to("addressed", Produced.with_(TEXT, TEXT))
    )
    return builder.build()


def totals() -> Topology:
    """A count that Spark does by itself."""
    builder = StreamsBuilder()
    (
        builder.stream("orders", Consumed.with_(TEXT, TEXT))
        .group_by_key(Grouped.with_(TEXT, TEXT))
        .count()
        .to_stream()
        .to("totals", Produced.with_(TEXT, LONG))
    )
    return builder.build()


APPLICATIONS = {"priced": priced, "per-minute": per_minute, "addressed": addressed, "totals": totals}
SETTINGS: dict[str, dict[str, str]] = {
    "per-minute": {"statestore.cache.max.bytes": "0"},
    "addressed": {"processing.guarantee": "exactly_once_v2"},
}


def main() -> None:
    bootstrap, state_dir, *words = sys.argv[1:]
    given = dict(word.split("=", 1) for word in words if "=" in word)
    config = {"bootstrap.servers": bootstrap, "state.dir": state_dir, **given}
    running = [
        KafkaStreams(APPLICATIONS[name](), {**config, **SETTINGS.get(name, {}), "application.id": name})
        for name in words
        if "=" not in name
    ]
    for one in running:
        one.start()
    for one in running:
        one.wait()


if __name__ == "__main__":
    main()
