"""Count words: lines of text in, a running count per word out.

moldau streams run examples/streams/word_count.py:topology --application-id word-count
"""

from __future__ import annotations

import re

from moldau.streams import (
    Consumed,
    Grouped,
    KafkaStreams,
    LongSerde,
    Materialized,
    Produced,
    StreamsBuilder,
    StringSerde,
    Topology,
)

TEXT = StringSerde()


def words_of(line: str) -> list[str]:
    return re.findall(r"\w+", line.lower())


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("TextLinesTopic", Consumed.with_(TEXT, TEXT))
        .flat_map_values(words_of)
        .group_by(lambda key, word: word, Grouped.with_(TEXT, TEXT))
        .count(Materialized.as_("Counts").with_key_serde(TEXT))
        .to_stream()
        .to("WordsWithCountsTopic", Produced.with_(TEXT, LongSerde()))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "word-count", "bootstrap.servers": "localhost:9092"}).run()
