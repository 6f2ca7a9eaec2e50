"""Commit by hand, after a whole batch is safely processed.

    python examples/clients/manual_commit.py --bootstrap-server localhost:9092

A crash before the commit repeats the batch; a record is never skipped.
"""

from __future__ import annotations

import argparse

from moldau.client import STRING, Consumer, Record


def process(batch: list[Record[str, str]]) -> None:
    for record in batch:
        print(f"{record.topic_partition}@{record.offset} {record.value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="payments")
    parser.add_argument("--group", default="payments-by-hand")
    parser.add_argument("--max-records", type=int, default=10, help="end after so many")
    options = parser.parse_args()

    with Consumer(
        options.bootstrap_server,
        {"auto.offset.reset": "earliest", "enable.auto.commit": False},
        group=options.group,
        key_deserializer=STRING,
        value_deserializer=STRING,
    ) as consumer:
        consumer.subscribe([options.topic])
        left = options.max_records
        while left > 0:
            batch = consumer.poll_batch(max_records=left)
            process(batch)
            consumer.commit()
            left -= len(batch)


if __name__ == "__main__":
    main()
