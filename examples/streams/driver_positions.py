"""Enrich positions: each position of a driver with that driver's profile, as it is at the moment.

moldau streams run examples/streams/driver_positions.py:topology --application-id driver-positions
"""

from __future__ import annotations

from typing import Any

from moldau.streams import Consumed, JsonSerde, KafkaStreams, Produced, StreamsBuilder, StringSerde, Topology

DRIVER, JSON = StringSerde(), JsonSerde()


def enriched(position: dict[str, Any], profile: dict[str, Any]) -> dict[str, Any]:
    return {**position, "driver": profile["name"], "make": profile["make"], "model": profile["model"]}


def topology() -> Topology:
    builder = StreamsBuilder()
    profiles = builder.table("driver_profiles", Consumed.with_(DRIVER, JSON))
    (
        builder.stream("driver_positions", Consumed.with_(DRIVER, JSON))
        .join(profiles, enriched)
        .to("driver_positions_enriched", Produced.with_(DRIVER, JSON))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "driver-positions", "bootstrap.servers": "localhost:9092"}).run()
