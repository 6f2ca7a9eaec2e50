"""A listener that fails: its records are tried again from retry topics, and end in the dead-letter topic.

    python examples/clients/dead_letters.py --bootstrap-server localhost:9092

Payments above 50 are refused here. Watch `payments-retry-0`, `payments-retry-1` and `payments-dlt`, whose headers say
what failed, where and why. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import logging
import sys

from moldau.client import JSON, STRING, Failure, ListenerApp, Received, RetryPolicy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="payments")
    parser.add_argument("--backoff-ms", type=int, default=1000)
    parser.add_argument("--max-letters", type=int, help="end after so many dead letters")
    options = parser.parse_args()
    # Lines of several threads; print would mix them up.
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)

    app = ListenerApp(options.bootstrap_server)
    letters = []

    @app.listener(
        options.topic,
        group="charging",
        concurrency=2,
        value_deserializer=JSON,
        retry=RetryPolicy(attempts=3, backoff_ms=options.backoff_ms),
    )
    def charge(record: Received[str, dict[str, int]]) -> None:
        assert record.value is not None
        logging.info("charging %s %d, attempt %d", record.key, record.value["amount"], record.attempt)
        if record.value["amount"] > 50:
            raise PermissionError(f"{record.value['amount']} is too much")

    @app.listener(f"{options.topic}-dlt", group="complaints", value_deserializer=STRING, retry=None)
    def complain(record: Received[str, str]) -> None:
        letters.append(record)
        failure = Failure.of(record)
        if failure is not None:
            origin, cause = failure.origin, f"{failure.error_class}: {failure.error_message}"
            place = f"{origin.topic}-{origin.partition}@{origin.offset}"
            logging.info("dead after %d attempts: %s, %s", failure.attempts, place, cause)
        if len(letters) == options.max_letters:
            app.stop()

    app.run()


if __name__ == "__main__":
    main()
