"""The jobs on moldau: `python moldau_app.py JOB BOOTSTRAP FOLDER [key=value ...]`, extra settings at the end."""

from __future__ import annotations

import sys

from moldau.streams import (
    BytesSerde,
    Consumed,
    Grouped,
    KafkaStreams,
    KStream,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    TimeWindowedSerde,
    TimeWindows,
    Topology,
    functions,
    value,
)

RAW, TEXT, NUMBER = BytesSerde(), StringSerde(), LongSerde()
WINDOW_MS = 10_000
UNCACHED = ("count", "windowed-count")
EXACTLY_ONCE = ("copy-eos", "count-eos")
REALTIME = ("copy-realtime", "count-realtime")


def topology(job: str) -> Topology:
    builder = StreamsBuilder()
    if job in ("copy", "copy-eos", "copy-realtime"):
        builder.stream("input", Consumed.with_(RAW, RAW)).to("output", Produced.with_(RAW, RAW))
    elif job == "map-filter":
        lines = builder.stream("input", Consumed.with_(TEXT, TEXT))
        lines.filter(value != "").map_values(functions.upper(value)).to("output", Produced.with_(TEXT, TEXT))
    elif job in ("count", "count-cached", "count-eos", "count-realtime"):
        lines = builder.stream("input", Consumed.with_(TEXT, RAW))
        counts = lines.group_by_key().count(Materialized.with_(TEXT, NUMBER))
        counts.to_stream().to("output", Produced.with_(TEXT, NUMBER))
    elif job == "mapped-count":
        lines = builder.stream("input", Consumed.with_(TEXT, TEXT)).map_values(str.upper)
        counts = lines.group_by_key().count(Materialized.with_(TEXT, NUMBER))
        counts.to_stream().to("output", Produced.with_(TEXT, NUMBER))
    elif job == "word-count":
        lines = builder.stream("input", Consumed.with_(TEXT, TEXT))
        words = lines.flat_map_values(str.split).group_by(lambda key, word: word, Grouped.with_(TEXT, TEXT))
        words.count(Materialized.with_(TEXT, NUMBER)).to_stream().to("output", Produced.with_(TEXT, NUMBER))
    elif job == "windowed-count":
        lines = builder.stream("input", Consumed.with_(TEXT, RAW))
        windows = lines.group_by_key().windowed_by(TimeWindows.of_size_with_no_grace(WINDOW_MS))
        counts = windows.count(Materialized.with_(TEXT, NUMBER))
        counts.to_stream().to("output", Produced.with_(TimeWindowedSerde(TEXT, WINDOW_MS), NUMBER))
    elif job == "join":
        _join(builder, builder.stream("input", Consumed.with_(TEXT, TEXT)))
    return builder.build()


def _join(builder: StreamsBuilder, lines: KStream) -> None:
    table = builder.table("table", Consumed.with_(TEXT, TEXT))
    lines.join(table, lambda line, row: line + row).to("output", Produced.with_(TEXT, TEXT))


def main(job: str, bootstrap: str, folder: str, *settings: str) -> None:
    config = {
        "application.id": f"moldau-{job}",
        "bootstrap.servers": bootstrap,
        "state.dir": folder,
        "auto.offset.reset": "earliest",
        **({"statestore.cache.max.bytes": "0"} if job in UNCACHED else {}),
        **({"processing.guarantee": "exactly_once_v2"} if job in EXACTLY_ONCE else {}),
        **({"moldau.latency": "realtime"} if job in REALTIME else {}),
        **dict(setting.split("=", 1) for setting in settings),
    }
    KafkaStreams(topology(job), config).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
