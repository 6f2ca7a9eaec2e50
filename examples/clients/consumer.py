"""Read a topic as a member of a group. Offsets are committed automatically.

    python examples/clients/consumer.py --bootstrap-server localhost:9092

Start it twice: the two share the partitions. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import signal

from moldau.client import JSON, STRING, Consumer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="payments")
    parser.add_argument("--group", default="payments-readers")
    parser.add_argument("--max-records", type=int, help="end after so many")
    options = parser.parse_args()

    with Consumer(
        options.bootstrap_server,
        {"auto.offset.reset": "earliest"},
        group=options.group,
        key_deserializer=STRING,
        value_deserializer=JSON,
    ) as consumer:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: consumer.wakeup())
        consumer.subscribe([options.topic])
        for count, record in enumerate(consumer, start=1):
            print(f"{record.topic_partition}@{record.offset} {record.key}: {record.value}")
            if count == options.max_records:
                break


if __name__ == "__main__":
    main()
