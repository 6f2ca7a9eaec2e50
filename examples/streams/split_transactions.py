"""Split transactions: a record that holds several, separated by `|`, becomes a record for each. No state.

moldau streams run examples/streams/split_transactions.py:topology --application-id split-transactions
"""

from __future__ import annotations

from moldau.streams import Consumed, IntegerSerde, KafkaStreams, Produced, StreamsBuilder, StringSerde, Topology

ACCOUNT, TRANSACTION = IntegerSerde(), StringSerde()


def transactions_of(value: str) -> list[str]:
    return [transaction.strip() for transaction in value.split("|")]


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("delim_transactions_topic", Consumed.with_(ACCOUNT, TRANSACTION))
        .flat_map_values(transactions_of)
        .to("individual_transactions_topic", Produced.with_(ACCOUNT, TRANSACTION))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "split-transactions", "bootstrap.servers": "localhost:9092"}).run()
