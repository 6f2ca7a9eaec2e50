"""The application that `test_realtime_kill` kills: the totals of `realtime_topologies` in real-time mode.

python -m tests.spark.realtime_program BOOTSTRAP STATE_DIR STORE_SERVER
"""

from __future__ import annotations

import sys

from tests.spark.realtime_topologies import totals

from moldau.streams.kafka_streams import KafkaStreams


def main() -> None:
    bootstrap, state_dir, server = sys.argv[1:4]
    config = {
        "application.id": "tills",
        "bootstrap.servers": bootstrap,
        "state.dir": state_dir,
        "application.server": server,
        "moldau.latency": "realtime",
        "commit.interval.ms": "5000",
        "spark.driver.memory": "512m",
    }
    KafkaStreams(totals(), config).run()


if __name__ == "__main__":
    main()
