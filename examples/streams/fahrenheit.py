"""Convert temperatures: readings by postal code in degrees Celsius in, in degrees Fahrenheit out.

moldau streams run examples/streams/fahrenheit.py:topology --application-id fahrenheit
"""

from __future__ import annotations

from moldau.streams import Consumed, DoubleSerde, KafkaStreams, Produced, StreamsBuilder, StringSerde, Topology, value

POSTAL_CODE, DEGREES = StringSerde(), DoubleSerde()


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("temp_readings", Consumed.with_(POSTAL_CODE, DEGREES))
        # An expression and not a lambda: Spark computes it by itself, without calling Python.
        .map_values(value * 9 / 5 + 32)
        .to("temp_readings_fahr", Produced.with_(POSTAL_CODE, DEGREES))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "fahrenheit", "bootstrap.servers": "localhost:9092"}).run()
