"""Trending topics: tweets with more than ten likes, and how often each hashtag was used in each minute.

moldau streams run examples/streams/trending_hashtags.py:topology --application-id trending-hashtags
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

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
    TimeWindowedSerde,
    TimeWindows,
    Topology,
)

TEXT, JSON = StringSerde(), JsonSerde()
MINUTE = timedelta(minutes=1)
LIKES = 10


def is_popular(key: str | None, tweet: dict[str, Any]) -> bool:
    return int(tweet.get("FavoriteCount") or 0) > LIKES


def hashtags_of(tweet: dict[str, Any]) -> list[str]:
    return [entity["Text"].lower() for entity in tweet.get("HashtagEntities") or ()]


def topology() -> Topology:
    builder = StreamsBuilder()
    tweets = builder.stream("twitter_tweets", Consumed.with_(TEXT, JSON))
    tweets.filter(is_popular).to("popular_tweets", Produced.with_(TEXT, JSON))
    (
        tweets.flat_map_values(hashtags_of)
        .group_by(lambda key, hashtag: hashtag, Grouped.with_(TEXT, TEXT))
        .windowed_by(TimeWindows.of_size_and_grace(MINUTE, timedelta(seconds=10)))
        .count(Materialized.as_("hashtags-per-minute"))
        .to_stream()
        .to("hashtags_per_minute", Produced.with_(TimeWindowedSerde(TEXT, 60_000), LongSerde()))
    )
    return builder.build()


if __name__ == "__main__":
    KafkaStreams(topology(), {"application.id": "trending-hashtags", "bootstrap.servers": "localhost:9092"}).run()
