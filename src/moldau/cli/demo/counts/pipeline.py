"""The demo's pipeline: visits counted by page and window, from topic to topic, exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.pipeline.ir.topology import Topology

__all__ = ["APPLICATION", "GRACE_MS", "INPUT", "OUTPUT", "visits_per_page"]

APPLICATION = "moldau-demo"
INPUT = "visits"
OUTPUT = "visits-per-page"
GRACE_MS = 1_000


def visits_per_page(window_ms: int) -> Topology:
    from moldau.streams import (
        Consumed,
        LongSerde,
        Produced,
        StreamsBuilder,
        StringSerde,
        TimeWindowedSerde,
        TimeWindows,
    )

    builder = StreamsBuilder()
    (
        builder.stream(INPUT, Consumed.with_(StringSerde(), StringSerde()))
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace(window_ms, GRACE_MS))
        .count()
        .to_stream()
        .to(OUTPUT, Produced.with_(TimeWindowedSerde(StringSerde(), window_ms), LongSerde()))
    )
    return builder.build()
