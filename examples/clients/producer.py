"""Send records to a topic: keys as text, values as JSON.

python examples/clients/producer.py --bootstrap-server localhost:9092
"""

from __future__ import annotations

import argparse

from moldau.client import JSON, STRING, ClientError, Delivery, Producer


def show(error: ClientError | None, delivery: Delivery) -> None:
    if error is None:
        print(f"stored in {delivery.topic_partition} at offset {delivery.offset}")
    else:
        print(f"not stored: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="payments")
    parser.add_argument("--records", type=int, default=10)
    options = parser.parse_args()

    # Leaving the block waits until every record is stored, or raises what went wrong.
    with Producer(options.bootstrap_server, key_serializer=STRING, value_serializer=JSON) as producer:
        for number in range(options.records):
            payment = {"number": number, "amount": 10 * number}
            producer.send(options.topic, payment, key=f"customer-{number % 3}", on_delivery=show)


if __name__ == "__main__":
    main()
