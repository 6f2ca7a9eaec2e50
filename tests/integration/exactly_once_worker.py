"""A worker to be killed: copies orders to invoices with `moldau.client.ExactlyOnce`, for `exactly_once`.

Arguments: bootstrap servers, the worker's name, and `key=value` pairs for its consumer. Exit code 3 tells that the
cluster holds another worker for the one of this name, so that this one can only be started again. A worker must expect
that after a long sleep, and a static member also when it or the broker dies while the group is changing (KIP-345).
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

from moldau.client import STRING, ClientError, ExactlyOnce, FencedError, ProducerRecord, Record

__all__ = ["FENCED", "GROUP", "INVOICES", "ORDERS"]

ORDERS, INVOICES, GROUP = "orders", "invoices", "billing"
FENCED = 3
IMPATIENT = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 10}


def invoice(order: Record[str, str]) -> Iterator[ProducerRecord[str, str]]:
    """The number of the order, and where it was found, under the order's key."""
    yield ProducerRecord(topic=INVOICES, key=order.key, value=f"{order.value} {order.partition} {order.offset}")


def main() -> int:
    servers, name, *pairs = sys.argv[1:]
    worker = ExactlyOnce(
        invoice,
        [ORDERS],
        group=GROUP,
        transactional_id=name,
        servers=servers,
        properties=IMPATIENT,
        consumer_properties={"client.id": name, **dict(pair.split("=", 1) for pair in pairs)},
        producer_properties={"transaction.timeout.ms": 10_000, "linger.ms": 1},
        key_deserializer=STRING,
        value_deserializer=STRING,
        key_serializer=STRING,
        value_serializer=STRING,
        max_records=25,
    )
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    try:
        with worker:
            worker.run()
    except ClientError as error:
        print(f"{name}: {error}", flush=True)
        # librdkafka's consumer tells a fatal error's code only in words.
        if isinstance(error, FencedError) or "instance" in str(error):
            return FENCED
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
