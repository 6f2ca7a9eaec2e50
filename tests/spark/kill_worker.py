"""The application that `streams_kill` kills: a count in windows and a join of two streams, exactly once.

Every change is emitted, so that each output can be told from every other.

    python -m tests.spark.kill_worker BOOTSTRAP STATE_DIR
"""

from __future__ import annotations

import sys

from moldau.streams import (
    Consumed,
    Grouped,
    JoinWindows,
    Produced,
    StreamJoined,
    StreamsBuilder,
    StringSerde,
    TimeWindows,
    Topology,
)
from moldau.streams.kafka_streams import KafkaStreams

APPLICATION = "kill-test"
CLICKS, ORDERS, PAYMENTS = "clicks", "orders", "payments"
COUNTS, RECEIPTS = "counts", "receipts"
WINDOW_MS = 2_000
TEXT = StringSerde()


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream(CLICKS, Consumed.with_(TEXT, TEXT))
        .group_by_key(Grouped.with_(TEXT, TEXT))
        .windowed_by(TimeWindows.of_size_and_grace(WINDOW_MS, 3_600_000))
        .count()
        .to_stream(lambda windowed, count: windowed.key)
        .map_values_with_key(lambda key, count: str(count))
        .to(COUNTS, Produced.with_(TEXT, TEXT))
    )
    orders = builder.stream(ORDERS, Consumed.with_(TEXT, TEXT))
    payments = builder.stream(PAYMENTS, Consumed.with_(TEXT, TEXT))
    windows = JoinWindows.of_time_difference_and_grace(60_000, 3_600_000)
    orders.join(
        payments, lambda order, payment: f"{order} {payment}", windows, joined=StreamJoined.with_(TEXT, TEXT, TEXT)
    ).to(RECEIPTS, Produced.with_(TEXT, TEXT))
    return builder.build()


def main() -> None:
    bootstrap, state_dir = sys.argv[1:3]
    KafkaStreams(
        topology(),
        {
            "application.id": APPLICATION,
            "bootstrap.servers": bootstrap,
            "state.dir": state_dir,
            "processing.guarantee": "exactly_once_v2",
            # Executors of a cluster live for seconds here: the thorough compiler would take most of their time.
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "statestore.cache.max.bytes": 0,
            # Small batches: more moments at which to be killed.
            "moldau.batch.max.records": 2_000,
            "spark.driver.memory": "512m",
        },
    ).run()


if __name__ == "__main__":
    main()
