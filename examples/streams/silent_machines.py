"""Report machines that have not been heard for a minute: a processor of one's own, with a store and a schedule.

moldau streams run examples/streams/silent_machines.py:topology --application-id silent-machines
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from moldau.streams import (
    Consumed,
    KafkaStreams,
    LongSerde,
    Produced,
    PunctuationType,
    Record,
    Stores,
    StreamsBuilder,
    StringSerde,
    Topology,
)

TEXT, NUMBER = StringSerde(), LongSerde()
LAST_HEARD = "last-heard"
SILENCE_MS = 60_000


class Watch:
    """Each partition has one of its own; what must survive a restart is in the store."""

    def init(self, context: Any) -> None:
        self._context = context
        self._last_heard = context.get_state_store(LAST_HEARD)
        context.schedule(timedelta(seconds=10), PunctuationType.STREAM_TIME, self.look_around)

    def process(self, record: Record) -> None:
        self._last_heard.put(record.key, record.timestamp)

    def look_around(self, now_ms: int) -> None:
        for machine, heard_ms in list(self._last_heard.all()):
            if now_ms - heard_ms >= SILENCE_MS:
                self._last_heard.delete(machine)
                self._context.forward(Record(machine, f"silent for {(now_ms - heard_ms) // 1000} s", now_ms))


def topology() -> Topology:
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value_store_builder(Stores.persistent_key_value_store(LAST_HEARD), TEXT, NUMBER))
    (
        builder.stream("heartbeats", Consumed.with_(TEXT, TEXT))
        .process(Watch, LAST_HEARD)
        .to("silent_machines", Produced.with_(TEXT, TEXT))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "silent-machines", "bootstrap.servers": "localhost:9092"}).run()
