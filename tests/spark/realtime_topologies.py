"""Topologies for real-time mode: several aggregations in one, with and without windows. Start at `totals`."""

from __future__ import annotations

from moldau.pipeline.ir.types import Primitive, Struct
from moldau.streams import (
    Consumed,
    Grouped,
    JsonSerde,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindowedSerde,
    TimeWindows,
    Topology,
    aggregate,
    functions,
    key,
    value,
)

__all__ = ["MINUTE_MS", "OUTPUTS", "SALES", "WINDOWED_OUTPUTS", "totals", "windowed", "with_and_without_windows"]

TEXT, NUMBER = StringSerde(), LongSerde()
SALE = JsonSerde(Struct((("shop", Primitive.STRING), ("euros", Primitive.BIGINT))))
MEAN = JsonSerde(Struct(tuple((name, Primitive.BIGINT) for name in ("sum", "count", "least"))))
SALES = "sales"
OUTPUTS = ("count", "sum", "min", "max", "mean", "large")
WINDOWED_OUTPUTS = ("per-minute", "moving")
MINUTE_MS = 60_000


def totals() -> Topology:
    """Count, sum, minimum, maximum and mean, by two keys, and a sink that gets only some of the changes."""
    builder = StreamsBuilder()
    sales = builder.stream(SALES, Consumed.with_(TEXT, SALE))
    counts = sales.group_by_key().count(Materialized.as_("counts").with_key_serde(TEXT).with_value_serde(NUMBER))
    counts.to_stream().to("count", Produced.with_(TEXT, NUMBER))
    counts.to_stream().filter(value > 2).map_values_with_key(key + "!").to("large", Produced.with_(TEXT, TEXT))
    euros = sales.map_values(value["euros"]).group_by_key(Grouped.with_(TEXT, NUMBER))
    euros.reduce(aggregate + value, Materialized.with_(TEXT, NUMBER)).to_stream().to(
        "sum", Produced.with_(TEXT, NUMBER)
    )
    least = euros.reduce(functions.least(aggregate, value), Materialized.with_(TEXT, NUMBER))
    least.to_stream().to("min", Produced.with_(TEXT, NUMBER))
    by_shop = sales.filter(value["euros"] > 0).group_by(value["shop"], Grouped.with_(TEXT, SALE))
    most = by_shop.aggregate(
        lambda: {"sum": 0, "count": 0, "least": 1000},
        functions.struct(
            sum=aggregate["sum"] + value["euros"],
            count=aggregate["count"] + 1,
            least=functions.least(aggregate["least"], value["euros"]),
        ),
        Materialized.as_("means").with_key_serde(TEXT).with_value_serde(MEAN),
    )
    most.to_stream().to("mean", Produced.with_(TEXT, MEAN))
    greatest = euros.reduce(functions.greatest(aggregate, value), Materialized.with_(TEXT, NUMBER))
    greatest.to_stream().to("max", Produced.with_(TEXT, NUMBER))
    return builder.build()


def windowed() -> Topology:
    """A count in tumbling windows, whose store can be queried, and a sum in hopping ones."""
    builder = StreamsBuilder()
    sales = builder.stream(SALES, Consumed.with_(TEXT, SALE))
    minutes = TimeWindows.of_size_and_grace(MINUTE_MS, 10 * MINUTE_MS)
    per_minute = (
        sales.group_by_key()
        .windowed_by(minutes)
        .count(Materialized.as_("minutes").with_key_serde(TEXT).with_value_serde(NUMBER))
    )
    per_minute.to_stream().to("per-minute", Produced.with_(TimeWindowedSerde(TEXT, MINUTE_MS), NUMBER))
    moving = TimeWindows.of_size_and_grace(3 * MINUTE_MS, 10 * MINUTE_MS).advance_by(MINUTE_MS)
    euros = sales.map_values(value["euros"]).group_by_key(Grouped.with_(TEXT, NUMBER)).windowed_by(moving)
    sums = euros.reduce(aggregate + value, Materialized.with_(TEXT, NUMBER))
    sums.to_stream().to("moving", Produced.with_(TimeWindowedSerde(TEXT, 3 * MINUTE_MS), NUMBER))
    return builder.build()


def with_and_without_windows() -> Topology:
    """A count in tumbling windows beside one for all times, and a sink for some of the records."""
    builder = StreamsBuilder()
    sales = builder.stream(SALES, Consumed.with_(TEXT, SALE))
    sales.filter(value["euros"] > 20).to("dear", Produced.with_(TEXT, SALE))
    grouped = sales.group_by_key()
    minutes = grouped.windowed_by(TimeWindows.of_size_and_grace(MINUTE_MS, MINUTE_MS))
    per_minute = minutes.count(Materialized.with_(TEXT, NUMBER))
    per_minute.to_stream().to("per-minute", Produced.with_(TimeWindowedSerde(TEXT, MINUTE_MS), NUMBER))
    grouped.count(Materialized.with_(TEXT, NUMBER)).to_stream().to("count", Produced.with_(TEXT, NUMBER))
    return builder.build()
