"""Count vehicles by make: a table of driver profiles, grouped by the make of their vehicle.

A driver who changes to another make leaves the one count and enters the other; one who is deleted leaves.

moldau streams run examples/streams/vehicle_makes.py:topology --application-id vehicle-makes
"""

from __future__ import annotations

from moldau.streams import (
    Consumed,
    Grouped,
    JsonSerde,
    KafkaStreams,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
)

TEXT, JSON = StringSerde(), JsonSerde()


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.table("driver_profiles", Consumed.with_(TEXT, JSON))
        .group_by(lambda driver, profile: (profile["make"], profile), Grouped.with_(TEXT, JSON))
        .count(Materialized.as_("vehicle-makes-tally"))
        .to_stream()
        .to("vehicle_makes_tally_topic", Produced.with_(TEXT, LongSerde()))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "vehicle-makes", "bootstrap.servers": "localhost:9092"}).run()
