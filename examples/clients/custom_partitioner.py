"""One key has a partition to itself: "OurBigKey" goes to partition 0, all others share the rest.

kafka-topics --bootstrap-server localhost:9092 --create --topic big --partitions 3
python examples/clients/custom_partitioner.py --bootstrap-server localhost:9092
"""

from __future__ import annotations

import argparse

from moldau.client import STRING, ClientError, Delivery, Producer, hashed_partition


def partition(  # noqa: PLR0917
    topic: str, key: object, key_bytes: bytes | None, value: object, value_bytes: bytes | None, partition_count: int
) -> int:
    if key_bytes is None or not isinstance(key, str):
        raise ValueError("every record needs a text as its key")
    if key == "OurBigKey":
        return 0
    return 1 + hashed_partition(key_bytes, partition_count - 1)


def show(error: ClientError | None, delivery: Delivery) -> None:
    print(error or delivery.topic_partition)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="big")
    options = parser.parse_args()

    with Producer(
        options.bootstrap_server, key_serializer=STRING, value_serializer=STRING, partitioner=partition
    ) as producer:
        for number in range(20):
            key = "OurBigKey" if number % 2 == 0 else f"key-{number}"
            producer.send(options.topic, f"value {number}", key=key, on_delivery=show)


if __name__ == "__main__":
    main()
