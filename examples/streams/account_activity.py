"""Count transactions per account: the records of `split_transactions`, counted by their key.

moldau streams run examples/streams/account_activity.py:topology --application-id account-activity
"""

from __future__ import annotations

from moldau.streams import (
    Consumed,
    Grouped,
    IntegerSerde,
    KafkaStreams,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
)

ACCOUNT, TRANSACTION = IntegerSerde(), StringSerde()


def transactions_of(value: str) -> list[str]:
    return [transaction.strip() for transaction in value.split("|")]


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("delim_transactions_topic", Consumed.with_(ACCOUNT, TRANSACTION))
        .flat_map_values(transactions_of)
        .group_by_key(Grouped.with_(ACCOUNT, TRANSACTION))
        .count(Materialized.as_("transactions-by-account"))
        .to_stream()
        .to("acct_activity_tally_topic", Produced.with_(ACCOUNT, LongSerde()))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "account-activity", "bootstrap.servers": "localhost:9092"}).run()
