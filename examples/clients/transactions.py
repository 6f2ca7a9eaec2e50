"""Consume, process, produce, exactly once: the outputs and the consumed offsets are committed together.

    python examples/clients/transactions.py --bootstrap-server localhost:9092

Read the outputs with `kafka-console-consumer --isolation-level read_committed`. Ctrl-C ends it after the batch at hand.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator

from moldau.client import JSON, STRING, ExactlyOnce, ProducerRecord, Record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--source", default="payments")
    parser.add_argument("--target", default="receipts")
    parser.add_argument("--max-records", type=int, help="end after so many")
    options = parser.parse_args()

    def receipt(record: Record[str, dict[str, int]]) -> Iterator[ProducerRecord[str, dict[str, object]]]:
        if record.value is not None:
            value: dict[str, object] = {"paid": record.value["amount"], "number": record.value["number"]}
            yield ProducerRecord(topic=options.target, key=record.key, value=value)

    with ExactlyOnce(
        receipt,
        [options.source],
        group="receipts",
        transactional_id="receipts-1",
        servers=options.bootstrap_server,
        key_deserializer=STRING,
        value_deserializer=JSON,
        key_serializer=STRING,
        value_serializer=JSON,
    ) as receipts:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: receipts.stop())
        if options.max_records is None:
            receipts.run()
            return
        done = 0
        while done < options.max_records:
            done += receipts.run_once()
        print(f"{done} records processed")


if __name__ == "__main__":
    main()
