"""The jobs in the Streams DSL: `python dsl_app.py JOB BOOTSTRAP FOLDER SOURCE OUTPUT [TABLE ...]`.

Written as its users would: expressions where the DSL has them, functions elsewhere.
"""

from __future__ import annotations

import sys
from typing import Any

from moldau.pipeline.ir.types import Primitive, Struct
from moldau.streams import (
    Consumed,
    JsonSerde,
    KafkaStreams,
    KStream,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindowedSerde,
    TimeWindows,
    functions,
    value,
)

TEXT, NUMBER, ANY = StringSerde(), LongSerde(), JsonSerde()
ORDER = JsonSerde(
    data_type=Struct(
        (
            ("ITEM", Primitive.STRING),
            ("PRICE", Primitive.INTEGER),
            ("QUANTITY", Primitive.BIGINT),
            ("NOTE", Primitive.STRING),
        )
    )
)
MINUTE_MS = 60_000


def build(job: str, source: str, output: str, tables: list[str]) -> StreamsBuilder:
    builder = StreamsBuilder()
    orders = builder.stream(source, Consumed.with_(TEXT, ORDER))
    if job == "filter":
        orders.filter(value["PRICE"] < 500).to(output, Produced.with_(TEXT, ORDER))
    elif job == "project":
        shown = functions.struct(
            ITEM=functions.upper(value["ITEM"]),
            TOTAL=value["PRICE"] * value["QUANTITY"],
            LABEL=functions.concat(value["ITEM"], "!"),
        )
        orders.map_values(shown).to(output, Produced.with_(TEXT, ANY))
    elif job in ("count", "count-cached"):
        counts = orders.group_by_key().count(Materialized.with_(TEXT, NUMBER))
        counts.to_stream().to(output, Produced.with_(TEXT, NUMBER))
    elif job == "tumbling":
        windows = orders.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(MINUTE_MS))
        counts = windows.count(Materialized.with_(TEXT, NUMBER))
        counts.to_stream().to(output, Produced.with_(TimeWindowedSerde(TEXT, MINUTE_MS), NUMBER))
    else:
        joined(builder, orders, tables).to(output, Produced.with_(TEXT, ANY))
    return builder


def joined(builder: StreamsBuilder, orders: KStream, tables: list[str]) -> KStream:
    def first(order: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        return {"ITEM": order["ITEM"], "PRICE": order["PRICE"], "NAME": row["NAME"]}

    def second(order: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        return {"ITEM": order["ITEM"], "NAME": order["NAME"], "LEVEL": row["LEVEL"]}

    for table, function in zip(tables, (first, second), strict=False):
        orders = orders.join(builder.table(table, Consumed.with_(TEXT, ANY)), function)
    return orders


def main(job: str, bootstrap: str, folder: str, source: str, output: str, *tables: str) -> None:
    config = {
        "application.id": f"dsl-{job}",
        "bootstrap.servers": bootstrap,
        "state.dir": folder,
        "auto.offset.reset": "earliest",
        "processing.guarantee": "exactly_once_v2",
        **({} if job == "count-cached" else {"statestore.cache.max.bytes": "0"}),
    }
    KafkaStreams(build(job, source, output, list(tables)).build(), config).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
