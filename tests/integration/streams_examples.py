"""The programs of `examples/streams`, each with records to pipe in and the results they must give.

Used by the tests that run them in memory and by those that run them on Spark. Start at `EXAMPLES`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from moldau.client import prepared_serde
from moldau.streams import (
    AvroSerde,
    DoubleSerde,
    IntegerSerde,
    JsonSerde,
    LongSerde,
    Serde,
    StringSerde,
    TimeWindowedSerde,
    Topology,
    TopologyTestDriver,
    Window,
    Windowed,
)

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "streams"
TEXT, NUMBER, JSON = StringSerde(), LongSerde(), JsonSerde()
BASE_MS = 1_000_000_020_000
"""When the input begins: at a full minute, and not at zero, which clients take for "now"."""
Piped = tuple[str, Any, Any, int]
"""Topic, key, value, milliseconds since the beginning."""


@dataclass(frozen=True)
class Example:
    """A program of the folder; `outputs` is topic -> key and value pairs in order."""

    program: str
    serdes: dict[str, tuple[Serde, Serde]]
    piped: list[Piped]
    outputs: dict[str, list[tuple[Any, Any]]]

    def with_registry(self, url: str) -> Example:
        """The same with serdes that know this registry, for those who call them without a test driver."""
        config = {"schema.registry.url": url}
        known = {
            topic: (prepared_serde(key, config, "key"), prepared_serde(value, config, "value"))
            for topic, (key, value) in self.serdes.items()
        }
        return replace(self, serdes=known)

    def topology(self) -> Topology:
        spec = importlib.util.spec_from_file_location(f"example_{self.program}", FOLDER / f"{self.program}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        build: Callable[[], Topology] = module.topology
        return build()

    def run(self, engine: str) -> dict[str, list[tuple[Any, Any]]]:
        """Pipe the input in, and give what came out."""
        # Every change is to be seen, however many records a batch has.
        config = {"statestore.cache.max.bytes": "0", "schema.registry.url": f"mock://{self.program}"}
        with TopologyTestDriver(self.topology(), config, engine=engine) as driver:
            topics = {topic: driver.create_input_topic(topic, *self.serdes[topic]) for topic, *_ in self.piped}
            for topic, key, value, timestamp in self.piped:
                topics[topic].pipe_input(key, value, BASE_MS + timestamp)
            return {
                topic: driver.create_output_topic(topic, *self.serdes[topic]).read_key_values_to_list()
                for topic in self.outputs
            }


def profile(name: str, make: str, model: str) -> dict[str, str]:
    return {"name": name, "make": make, "model": model}


def tweet(likes: int, *hashtags: str) -> dict[str, Any]:
    return {"FavoriteCount": likes, "HashtagEntities": [{"Text": hashtag} for hashtag in hashtags]}


def minute(hashtag: str, start_ms: int) -> Windowed:
    return Windowed(hashtag, Window(BASE_MS + start_ms, BASE_MS + start_ms + 60_000))


def avro(record: str, **fields: str) -> AvroSerde:
    listed = [{"name": field, "type": kind} for field, kind in fields.items()]
    return AvroSerde({"type": "record", "name": record, "fields": listed})


EXAMPLES = [
    Example(
        "word_count",
        {"TextLinesTopic": (TEXT, TEXT), "WordsWithCountsTopic": (TEXT, NUMBER)},
        [
            ("TextLinesTopic", None, "Hello Kafka Streams", 0),
            ("TextLinesTopic", None, "all streams lead to Kafka", 1),
        ],
        {
            "WordsWithCountsTopic": [
                ("hello", 1), ("kafka", 1), ("streams", 1),
                ("all", 1), ("streams", 2), ("lead", 1), ("to", 1), ("kafka", 2),
            ]
        },
    ),
    Example(
        "split_transactions",
        {
            "delim_transactions_topic": (IntegerSerde(), TEXT),
            "individual_transactions_topic": (IntegerSerde(), TEXT),
        },
        [("delim_transactions_topic", 7, "coffee 3.20 | bread 2.10", 0), ("delim_transactions_topic", 8, "tea 2", 1)],
        {"individual_transactions_topic": [(7, "coffee 3.20"), (7, "bread 2.10"), (8, "tea 2")]},
    ),
    Example(
        "account_activity",
        {"delim_transactions_topic": (IntegerSerde(), TEXT), "acct_activity_tally_topic": (IntegerSerde(), NUMBER)},
        [
            ("delim_transactions_topic", 7, "coffee 3.20 | bread 2.10", 0),
            ("delim_transactions_topic", 8, "tea 2", 1),
            ("delim_transactions_topic", 7, "cake 4", 2),
        ],
        {"acct_activity_tally_topic": [(7, 1), (7, 2), (8, 1), (7, 3)]},
    ),
    Example(
        "fahrenheit",
        {"temp_readings": (TEXT, DoubleSerde()), "temp_readings_fahr": (TEXT, DoubleSerde())},
        [("temp_readings", "75001", 20.0, 0), ("temp_readings", "11000", -40.0, 1)],
        {"temp_readings_fahr": [("75001", 68.0), ("11000", -40.0)]},
    ),
    Example(
        "driver_positions",
        {"driver_profiles": (TEXT, JSON), "driver_positions": (TEXT, JSON), "driver_positions_enriched": (TEXT, JSON)},
        [
            ("driver_positions", "d1", {"lat": 50.0, "lon": 14.4}, 0),
            ("driver_profiles", "d1", profile("Ada", "Skoda", "Octavia"), 1),
            ("driver_positions", "d1", {"lat": 50.1, "lon": 14.4}, 2),
            ("driver_profiles", "d1", profile("Ada", "Tatra", "613"), 3),
            ("driver_positions", "d1", {"lat": 50.2, "lon": 14.4}, 4),
        ],
        {
            "driver_positions_enriched": [
                ("d1", {"lat": 50.1, "lon": 14.4, "driver": "Ada", "make": "Skoda", "model": "Octavia"}),
                ("d1", {"lat": 50.2, "lon": 14.4, "driver": "Ada", "make": "Tatra", "model": "613"}),
            ]
        },
    ),
    Example(
        "vehicle_makes",
        {"driver_profiles": (TEXT, JSON), "vehicle_makes_tally_topic": (TEXT, NUMBER)},
        [
            ("driver_profiles", "d1", profile("Ada", "Skoda", "Octavia"), 0),
            ("driver_profiles", "d2", profile("Ben", "Skoda", "Fabia"), 1),
            ("driver_profiles", "d1", profile("Ada", "Tatra", "613"), 2),
            ("driver_profiles", "d2", None, 3),
        ],
        {"vehicle_makes_tally_topic": [("Skoda", 1), ("Skoda", 2), ("Skoda", 1), ("Tatra", 1), ("Skoda", 0)]},
    ),
    Example(
        "spending_per_country",
        {
            "customers": (TEXT, avro("Customer", name="string", country="string")),
            "orders": (TEXT, avro("Order", item="string", amount="double")),
            "spending_per_country": (TEXT, AvroSerde()),
        },
        [
            ("customers", "ann", {"name": "Ann", "country": "CZ"}, 0),
            ("customers", "bob", {"name": "Bob", "country": "SK"}, 1),
            ("orders", "ann", {"item": "tea", "amount": 2.5}, 2),
            ("orders", "bob", {"item": "tea", "amount": 3.0}, 3),
            ("orders", "cid", {"item": "tea", "amount": 9.0}, 4),
            ("orders", "ann", {"item": "cup", "amount": 7.5}, 5),
        ],
        {
            "spending_per_country": [
                ("CZ", {"orders": 1, "amount": 2.5}),
                ("SK", {"orders": 1, "amount": 3.0}),
                ("CZ", {"orders": 2, "amount": 10.0}),
            ]
        },
    ),
    Example(
        "alarms_per_minute",
        {"alarms": (TEXT, TEXT), "alarms_per_minute": (TEXT, JSON)},
        [
            ("alarms", "press", "hot", 1_000),
            ("alarms", "press", "hot", 59_000),
            ("alarms", "press", "hot", 61_000),
            ("alarms", "press", "late, but within the grace", 30_000),
            ("alarms", "press", "hot", 70_000),
            ("alarms", "press", "too late", 30_000),
        ],
        {"alarms_per_minute": [("press", {"from_ms": BASE_MS, "alarms": 3})]},
    ),
    Example(
        "silent_machines",
        {"heartbeats": (TEXT, TEXT), "silent_machines": (TEXT, TEXT)},
        [
            ("heartbeats", "press", "up", 0),
            ("heartbeats", "saw", "up", 5_000),
            ("heartbeats", "press", "up", 50_000),
            ("heartbeats", "press", "up", 75_000),
            ("heartbeats", "press", "up", 95_000),
        ],
        {"silent_machines": [("saw", "silent for 70 s")]},
    ),
    Example(
        "trending_hashtags",
        {
            "twitter_tweets": (TEXT, JSON),
            "popular_tweets": (TEXT, JSON),
            "hashtags_per_minute": (TimeWindowedSerde(TEXT, 60_000), NUMBER),
        },
        [
            ("twitter_tweets", "1", tweet(11, "DeFi", "bsc"), 1_000),
            ("twitter_tweets", "2", tweet(10, "defi"), 59_000),
            ("twitter_tweets", "3", tweet(0), 60_000),
            ("twitter_tweets", "4", tweet(500, "defi"), 61_000),
        ],
        {
            "popular_tweets": [("1", tweet(11, "DeFi", "bsc")), ("4", tweet(500, "defi"))],
            "hashtags_per_minute": [
                (minute("defi", 0), 1), (minute("bsc", 0), 1), (minute("defi", 0), 2), (minute("defi", 60_000), 1),
            ],
        },
    ),
]  # fmt: skip
