"""Stores of real-time pipelines: filled from their changelog topics, from where the file was left."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from moldau.client.admin import Admin
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.store_feed import StoreFeed, changelog_configs, changelog_topics
from moldau.pipeline.runtime.stores.database import StoreDatabase
from moldau.pipeline.runtime.stores.queryable import queryable_stores
from moldau.pipeline.runtime.stores.views import StoreViews
from moldau.streams import Consumed, LongSerde, Materialized, StreamsBuilder, StringSerde, TimeWindows, Topology
from moldau.testing import Broker

TEXT, NUMBER = StringSerde(), LongSerde()
COUNTS, MINUTES = "app-counts-changelog", "app-minutes-changelog"
MINUTE_MS = 60_000
LONG = struct.Struct(">q")


def topology() -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream("in", Consumed.with_(TEXT, TEXT)).group_by_key()
    grouped.count(Materialized.as_("counts").with_value_serde(NUMBER))
    grouped.count()
    windows = TimeWindows.of_size_with_no_grace(MINUTE_MS)
    grouped.windowed_by(windows).count(Materialized.as_("minutes").with_value_serde(NUMBER))
    return builder.build()


def test_only_stores_with_a_name_have_a_topic() -> None:
    assert changelog_topics(topology(), "app") == {COUNTS: ("counts", None), MINUTES: ("minutes", MINUTE_MS)}


def test_windows_leave_their_topic_and_keys_stay() -> None:
    stores = queryable_stores(topology())
    assert changelog_configs(stores["counts"]) == {"cleanup.policy": "compact"}
    assert changelog_configs(stores["minutes"])["cleanup.policy"] == "compact,delete"


class Followed:
    """A broker with the topics, and the file that follows them."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._clients = KafkaClients(bootstrap_servers=broker.bootstrap_servers)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        stores = queryable_stores(topology())
        self._database = StoreDatabase(folder / "stores.sqlite", stores)
        self._database.open()
        self._views = StoreViews(folder / "stores.sqlite", stores, "app")
        self._feed: StoreFeed | None = None

    def start(self, *, from_scratch: bool = False) -> None:
        self._feed = StoreFeed(self._clients, "app", self._database, changelog_topics(topology(), "app"))
        self._feed.start(from_scratch=from_scratch)

    def stop(self) -> None:
        if self._feed is not None:
            self._feed.close()

    def write(self, topic: str, key: bytes, count: int | None, **headers: bytes) -> None:
        value = None if count is None else LONG.pack(count)
        self._producer.produce(topic, value, key, headers=dict(headers))
        assert self._producer.flush(30) == 0

    def store(self, name: str) -> Any:
        return self._views.store(name)

    def close(self) -> None:
        self.stop()
        self._views.close()
        self._database.close()


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    with Broker() as broker:
        for topic in (COUNTS, MINUTES):
            Admin(broker.bootstrap_servers).create_topic(topic, partitions=2)
        made = Followed(broker, tmp_path)
        yield made
        made.close()


def until(reached: Any) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_keys_come_change_and_go(followed: Followed) -> None:
    followed.start()
    followed.write(COUNTS, b"a", 1, timestamp=LONG.pack(1234))
    until(lambda: followed.store("counts").get_with_timestamp("a") == (1, 1234))
    followed.write(COUNTS, b"a", 2)
    until(lambda: followed.store("counts").get("a") == 2)
    followed.write(COUNTS, b"a", None)
    until(lambda: followed.store("counts").get("a") is None)


def test_windows_are_read_from_the_end_of_the_key(followed: Followed) -> None:
    followed.start()
    followed.write(MINUTES, b"a" + LONG.pack(3 * MINUTE_MS), 5)
    until(lambda: followed.store("minutes").fetch_at("a", 3 * MINUTE_MS) == 5)
    ((windowed, count),) = followed.store("minutes").all()
    assert (windowed.key, windowed.window, count) == ("a", (3 * MINUTE_MS, 4 * MINUTE_MS), 5)


def test_a_restart_goes_on_where_the_file_ends(followed: Followed) -> None:
    followed.start()
    followed.write(COUNTS, b"a", 1)
    until(lambda: followed.store("counts").get("a") == 1)
    followed.stop()
    followed.write(COUNTS, b"b", 1)
    followed.start()
    until(lambda: followed.store("counts").get("b") == 1)
    assert followed.store("counts").get("a") == 1


def test_a_pipeline_without_state_does_not_take_over_what_an_earlier_one_wrote(followed: Followed) -> None:
    followed.write(COUNTS, b"old", 9)
    followed.start(from_scratch=True)
    followed.write(COUNTS, b"new", 1)
    until(lambda: followed.store("counts").get("new") == 1)
    assert followed.store("counts").get("old") is None
