"""Many pipelines on one Spark driver: `python hosting_app.py KIND COUNT BOOTSTRAP FOLDER`, until it is ended.

Pipeline n reads `input-n` and writes `output-n`. A line is printed when all of them run.
"""

from __future__ import annotations

import signal
import sys

from moldau.streams import (
    BytesSerde,
    Consumed,
    KafkaStreams,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
    functions,
    value,
)

TEXT = StringSerde()


def topology(kind: str, number: int) -> Topology:
    builder = StreamsBuilder()
    target = f"output-{number}"
    if kind == "native":
        lines = builder.stream(f"input-{number}", Consumed.with_(TEXT, TEXT))
        lines.filter(value != "").map_values(functions.upper(value)).to(target, Produced.with_(TEXT, TEXT))
    else:
        lines = builder.stream(f"input-{number}", Consumed.with_(TEXT, BytesSerde()))
        counts = lines.group_by_key().count(Materialized.with_(TEXT, LongSerde()))
        counts.to_stream().to(target, Produced.with_(TEXT, LongSerde()))
    return builder.build()


def main(kind: str, count: str, bootstrap: str, folder: str) -> None:
    started = []
    for number in range(int(count)):
        config = {
            "application.id": f"hosted-{number}",
            "bootstrap.servers": bootstrap,
            "state.dir": folder,
            "auto.offset.reset": "earliest",
            "statestore.cache.max.bytes": "0",
            **({"moldau.latency": "realtime"} if kind == "realtime" else {}),
        }
        streams = KafkaStreams(topology(kind, number), config)
        streams.start()
        started.append(streams)
    print("running", flush=True)
    signal.sigwait({signal.SIGTERM})
    for streams in started:
        streams.close()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main(*sys.argv[1:])
