"""Orders in Avro, each joined with its customer, added up by the customer's country.

What is read needs no schema here: each record names its own, and the registry knows it. What is written gets one.
Orders and customers may gain fields while this runs.

moldau streams run examples/streams/spending_per_country.py:topology --application-id spending-per-country \
    --property schema.registry.url=http://localhost:8081
"""

from __future__ import annotations

from typing import Any

from moldau.streams import (
    AvroSerde,
    Consumed,
    Grouped,
    KafkaStreams,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
)

PURCHASE = {
    "type": "record",
    "name": "Purchase",
    "namespace": "shop",
    "fields": [{"name": "country", "type": "string"}, {"name": "amount", "type": "double"}],
}
SPENDING = {
    "type": "record",
    "name": "Spending",
    "namespace": "shop",
    "fields": [{"name": "orders", "type": "long"}, {"name": "amount", "type": "double"}],
}
TEXT, AS_WRITTEN = StringSerde(), AvroSerde()


def purchase(order: dict[str, Any], customer: dict[str, Any]) -> dict[str, Any]:
    return {"country": customer["country"], "amount": order["amount"]}


def added(country: str, one: dict[str, Any], so_far: dict[str, Any]) -> dict[str, Any]:
    return {"orders": so_far["orders"] + 1, "amount": so_far["amount"] + one["amount"]}


def topology() -> Topology:
    builder = StreamsBuilder()
    customers = builder.table("customers", Consumed.with_(TEXT, AS_WRITTEN))
    (
        builder.stream("orders", Consumed.with_(TEXT, AS_WRITTEN))
        .join(customers, purchase)
        .group_by(lambda customer, one: one["country"], Grouped.with_(TEXT, AvroSerde(PURCHASE)))
        .aggregate(
            lambda: {"orders": 0, "amount": 0.0},
            added,
            Materialized.as_("spending").with_key_serde(TEXT).with_value_serde(AvroSerde(SPENDING)),
        )
        .to_stream()
        .to("spending_per_country", Produced.with_(TEXT, AvroSerde(SPENDING)))
    )
    return builder.build()


if __name__ == "__main__":
    config = {
        "application.id": "spending-per-country",
        "bootstrap.servers": "localhost:9092",
        "schema.registry.url": "http://localhost:8081",
    }
    KafkaStreams(topology(), config).run()
