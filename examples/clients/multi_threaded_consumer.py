"""Read a topic with several threads: each has a consumer of its own, because a consumer belongs to one thread.

    python examples/clients/multi_threaded_consumer.py --bootstrap-server localhost:9092 --threads 3

Ctrl-C wakes all of them up; each finishes its record, commits and leaves the group.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading

from moldau.client import Consumer, Record


class Reader(threading.Thread):
    """One member of the group."""

    def __init__(self, servers: str, group: str, topic: str, number: int) -> None:
        super().__init__(name=f"reader-{number}")
        self._topic = topic
        self.consumer: Consumer[str, str] = Consumer(servers, {"auto.offset.reset": "earliest"}, group=group)

    def run(self) -> None:
        with self.consumer:
            self.consumer.subscribe([self._topic])
            for record in self.consumer:
                self.process(record)

    def process(self, record: Record[str, str]) -> None:
        logging.info("%s %s@%d %s", self.name, record.topic_partition, record.offset, record.value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="payments")
    parser.add_argument("--group", default="payments-threads")
    parser.add_argument("--threads", type=int, default=3)
    options = parser.parse_args()
    # Lines of several threads; print would mix them up.
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)

    readers = [
        Reader(options.bootstrap_server, options.group, options.topic, number) for number in range(options.threads)
    ]

    def shut_down(*_: object) -> None:
        for reader in readers:
            reader.consumer.wakeup()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, shut_down)
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


if __name__ == "__main__":
    main()
