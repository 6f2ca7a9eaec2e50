"""The demo's Streams program: orders and turnover by product and five seconds, from topic to topic.

moldau streams run moldau.cli.demo.story.program:topology --application-id shop-sales \
    --property schema.registry.url=http://localhost:8081
"""

from __future__ import annotations

from typing import Any

from moldau.streams import (
    AvroSerde,
    BytesSerde,
    Consumed,
    Grouped,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindows,
    Topology,
    Windowed,
)

__all__ = ["APPLICATION", "ORDERS", "SALES", "topology"]

APPLICATION = "shop-sales"
ORDERS = "shop_orders"
SALES = "shop_sales"
WINDOW_MS = 5_000
GRACE_MS = 600_000


def _record(name: str, **fields: Any) -> AvroSerde:
    listed = [{"name": field, "type": kind} for field, kind in fields.items()]
    return AvroSerde({"type": "record", "name": name, "namespace": "shop", "fields": listed})


TEXT = StringSerde()
ORDER = _record("Order", product="string", cents="long", placed_ms="long")
TOTAL = _record("Total", orders="long", cents="long", newest_ms="long")
SALE = _record("Sale", product="string", window_start_ms="long", orders="long", cents="long", newest_ms="long")


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream(ORDERS, Consumed.with_(BytesSerde(), AvroSerde()))
        .map_values(lambda order: {name: order[name] for name in ("product", "cents", "placed_ms")})
        .group_by(lambda _, order: order["product"], Grouped.with_(TEXT, ORDER))
        .windowed_by(TimeWindows.of_size_and_grace(WINDOW_MS, GRACE_MS))
        .aggregate(
            lambda: {"orders": 0, "cents": 0, "newest_ms": 0},
            _added,
            Materialized.as_("sales").with_key_serde(TEXT).with_value_serde(TOTAL),
        )
        .to_stream()
        .map(_sale)
        .to(SALES, Produced.with_(TEXT, SALE))
    )
    return builder.build()


def _added(product: str, order: dict[str, Any], total: dict[str, Any]) -> dict[str, Any]:
    return {
        "orders": total["orders"] + 1,
        "cents": total["cents"] + order["cents"],
        "newest_ms": max(total["newest_ms"], order["placed_ms"]),
    }


def _sale(product: Windowed[str], total: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return product.key, {"product": product.key, "window_start_ms": product.window.start, **total}
