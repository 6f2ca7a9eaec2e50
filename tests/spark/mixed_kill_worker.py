"""The application that `mixed_kill` kills: a native count between Python functions, native sinks beside Python ones.

python -m tests.spark.mixed_kill_worker BOOTSTRAP STATE_DIR
"""

from __future__ import annotations

import sys

from tests.spark.kill_worker import CLICKS, COUNTS, ORDERS, PAYMENTS, RECEIPTS

from moldau.streams import Consumed, Grouped, Produced, StreamsBuilder, StringSerde, Topology, functions, value
from moldau.streams.kafka_streams import KafkaStreams

TEXT = StringSerde()
TEXTS, TO_TEXT = Consumed.with_(TEXT, TEXT), Produced.with_(TEXT, TEXT)


def topology() -> Topology:
    """Clicks are counted by Spark with Python on both sides; orders are natively copied, payments by a function."""
    builder = StreamsBuilder()
    shouted = builder.stream(CLICKS, TEXTS).map_values(lambda text: text.upper())
    counted = shouted.group_by_key(Grouped.with_(TEXT, TEXT)).count().to_stream()
    counted.map_values(str).to(COUNTS, TO_TEXT)
    builder.stream(ORDERS, TEXTS).map_values(functions.upper(value)).to(RECEIPTS, TO_TEXT)
    builder.stream(PAYMENTS, TEXTS).map_values(lambda text: text.lower()).to(RECEIPTS, TO_TEXT)
    return builder.build()


def main() -> None:
    bootstrap, state_dir = sys.argv[1:3]
    KafkaStreams(
        topology(),
        {
            "application.id": "mixed-kill-test",
            "bootstrap.servers": bootstrap,
            "state.dir": state_dir,
            "processing.guarantee": "exactly_once_v2",
            "moldau.batch.max.records": 2_000,
            "spark.driver.memory": "512m",
        },
    ).run()


if __name__ == "__main__":
    main()
