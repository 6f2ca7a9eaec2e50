"""Count alarms per machine and minute, and tell each count once, when nothing can change it any more.

moldau streams run examples/streams/alarms_per_minute.py:topology --application-id alarms-per-minute
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from moldau.streams import (
    BufferConfig,
    Consumed,
    JsonSerde,
    KafkaStreams,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Suppressed,
    TimeWindows,
    Topology,
    Windowed,
)

TEXT, JSON = StringSerde(), JsonSerde()
MINUTES = TimeWindows.of_size_and_grace(timedelta(minutes=1), timedelta(seconds=10))


def flat(machine: Windowed, alarms: int) -> tuple[str, dict[str, Any]]:
    """The minute moves from the key into the value, where every reader understands it."""
    return machine.key, {"from_ms": machine.window.start, "alarms": alarms}


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("alarms", Consumed.with_(TEXT, TEXT))
        .group_by_key()
        .windowed_by(MINUTES)
        .count(Materialized.as_("alarms-per-minute"))
        .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
        .to_stream()
        .map(flat)
        .to("alarms_per_minute", Produced.with_(TEXT, JSON))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "alarms-per-minute", "bootstrap.servers": "localhost:9092"}).run()
