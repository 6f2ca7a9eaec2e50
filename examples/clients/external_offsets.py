"""Keep offsets next to the results, in SQLite: both change in one transaction, so every record counts exactly once.

    python examples/clients/external_offsets.py --bootstrap-server localhost:9092 --database totals.db

Kill it whenever you like and start it again: the totals stay right.
"""

from __future__ import annotations

import argparse

from moldau.client import JSON, STRING, Consumer, SeekToStored, SqliteOffsetStore

ADD = """INSERT INTO totals VALUES (?, ?)
         ON CONFLICT (customer) DO UPDATE SET amount = amount + excluded.amount"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--topic", default="payments")
    parser.add_argument("--group", default="payments-totals")
    parser.add_argument("--database", default="totals.db")
    parser.add_argument("--max-records", type=int, default=10, help="end after so many")
    options = parser.parse_args()

    with (
        SqliteOffsetStore(options.database, group=options.group) as store,
        Consumer(
            options.bootstrap_server,
            {"auto.offset.reset": "earliest", "enable.auto.commit": False},
            group=options.group,
            key_deserializer=STRING,
            value_deserializer=JSON,
        ) as consumer,
    ):
        store.database.execute("CREATE TABLE IF NOT EXISTS totals (customer TEXT PRIMARY KEY, amount INTEGER)")
        consumer.subscribe([options.topic], listener=SeekToStored(store))
        for count, record in enumerate(consumer, start=1):
            amount = record.value["amount"] if record.value else 0
            with store.transaction(record) as database:
                database.execute(ADD, (record.key, amount))
            if count == options.max_records:
                break
        for customer, amount in store.database.execute("SELECT customer, amount FROM totals ORDER BY customer"):
            print(f"{customer}: {amount}")


if __name__ == "__main__":
    main()
