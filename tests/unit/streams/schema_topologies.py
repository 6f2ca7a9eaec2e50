"""Small topologies over orders with a schema, and the registry inside the test that they use."""

from __future__ import annotations

import itertools
from typing import Any

from moldau.client.schema_registry import RegistryClient
from moldau.registry.mock import mock_registry
from moldau.serdes.schema_serde import SchemaSerde
from moldau.streams import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
)

TEXT = StringSerde()
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "customer", "type": "string"}, {"name": "amount", "type": "long"}],
}
TOTAL = {
    "type": "record",
    "name": "Total",
    "namespace": "shop",
    "fields": [{"name": "orders", "type": "long"}, {"name": "amount", "type": "long"}],
}
ORDER_JSON = {
    "title": "Order",
    "type": "object",
    "properties": {"customer": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["customer", "amount"],
}
TOTAL_JSON = {"title": "Total", "type": "object", "properties": {"orders": {"type": "integer"}}}
ORDER_PROTO = 'syntax = "proto3"; package shop; message Order { string customer = 1; int64 amount = 2; }'
TOTAL_PROTO = 'syntax = "proto3"; package shop; message Total { int64 orders = 1; int64 amount = 2; }'
_names = itertools.count()


def new_settings() -> dict[str, Any]:
    """An application with a registry that nobody else knows."""
    return {"application.id": "shop", "schema.registry.url": f"mock://test-{next(_names)}"}


def order(customer: str, amount: int) -> dict[str, Any]:
    return {"customer": customer, "amount": amount}


def totals(orders: SchemaSerde, total: SchemaSerde) -> Topology:
    """The orders of each customer beyond 10, added up."""
    builder = StreamsBuilder()
    (
        builder.stream("orders", Consumed.with_(TEXT, orders))
        .filter(lambda key, value: value["amount"] > 10)
        .group_by(lambda key, value: value["customer"], Grouped.with_(TEXT, orders))
        .aggregate(
            lambda: {"orders": 0, "amount": 0},
            lambda key, value, sum: {"orders": sum["orders"] + 1, "amount": sum["amount"] + value["amount"]},
            Materialized.as_("totals").with_key_serde(TEXT).with_value_serde(total),
        )
        .to_stream()
        .to("totals", Produced.with_(TEXT, total))
    )
    return builder.build()


def copied(results: SchemaSerde, change: Any = lambda value: value) -> Topology:
    builder = StreamsBuilder()
    values = builder.stream("in", Consumed.with_(TEXT, type(results)())).map_values(change)
    values.to("out", Produced.with_(TEXT, results))
    return builder.build()


def register(config: dict[str, Any], subject: str, serde: SchemaSerde) -> None:
    assert serde.options.schema is not None
    RegistryClient(config).register(subject, serde.schema_type, serde.options.schema)


def subjects(config: dict[str, Any]) -> set[str]:
    return set(mock_registry(config["schema.registry.url"]).ask("GET", "/subjects"))
