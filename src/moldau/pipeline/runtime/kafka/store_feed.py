"""Keeps the stores of a real-time pipeline up to date: reads their changelog topics, where Spark writes every change.

In real-time mode no batch passes through the driver, so that a store can be queried only through what was written. It
is a moment behind, and goes back for a moment when records are written again after a failure. The store's file notes
how far it was read, so that a restart goes on there. Start at `StoreFeed`.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from moldau.client.waiting import close_within
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.ir.windows import TimeWindow
from moldau.pipeline.runtime.kafka.clients import CLOSE_S, KafkaClients
from moldau.pipeline.runtime.stores.database import NO_WINDOW, Change, StoreDatabase
from moldau.pipeline.runtime.stores.queryable import QueryableStore
from moldau.pipeline.spark.native.realtime import LATE_MS, realtime_aggregates
from moldau.pipeline.spark.sections import changelog_topic

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

__all__ = ["StoreFeed", "changelog_configs", "changelog_topics"]

logger = logging.getLogger("moldau.streams")

AT_ONCE = 5000
POLL_S = 0.1
PAUSE_S = 1.0
LATENCY_MS = "10"
LONG = struct.Struct(">q")


def changelog_topics(topology: Topology, application_id: str) -> dict[str, tuple[str, int | None]]:
    """The changelog topics of stores that can be queried: for each the store's name, and its windows' size."""
    return {
        f"{application_id}-{changelog_topic(node)}": (
            node.table.store,
            node.window.size_ms if isinstance(node.window, TimeWindow) else None,
        )
        for node in realtime_aggregates(topology)
        if node.table.is_queryable
    }


def changelog_configs(store: QueryableStore) -> dict[str, str]:
    """The settings of a store's changelog topic: keys stay, windows go when they are old."""
    if store.retention_ms is None:
        return {"cleanup.policy": "compact"}
    return {"cleanup.policy": "compact,delete", "retention.ms": str(store.retention_ms + LATE_MS)}


class StoreFeed:
    """Reads from `start` until `close`, in a thread."""

    def __init__(
        self,
        clients: KafkaClients,
        group_id: str,
        database: StoreDatabase,
        topics: Mapping[str, tuple[str, int | None]],
    ) -> None:
        """`topics` are those of `changelog_topics`; the group is named to brokers, but not joined."""
        self._clients = clients
        self._group_id = group_id
        self._database = database
        self._topics = topics
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *, from_scratch: bool) -> None:
        """Go on where the file ends; with `from_scratch` only what is written from now on counts."""
        if not self._topics:
            return
        consumer = self._clients.new_consumer(self._group_id, {"fetch.max.wait.ms": LATENCY_MS})
        try:
            self._assign(consumer, from_scratch)
        except BaseException:
            close_within(consumer, CLOSE_S)
            raise
        self._thread = threading.Thread(target=self._run, args=(consumer,), name="store-feed", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _assign(self, consumer: Consumer, from_scratch: bool) -> None:
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        known = self._database.positions()
        places = []
        for topic in self._topics:
            for partition in consumer.list_topics(topic, timeout=CLOSE_S).topics[topic].partitions:
                place = TopicPartition(topic, partition)
                first, end = consumer.get_watermark_offsets(place, timeout=CLOSE_S)
                place.offset = end if from_scratch else max(known.get((topic, partition), OFFSET_BEGINNING), first)
                places.append(place)
        if from_scratch:
            self._database.feed({}, {(place.topic, place.partition): place.offset for place in places})
        consumer.assign(places)

    def _run(self, consumer: Consumer) -> None:
        try:
            while not self._stop.is_set():
                self._apply(consumer.consume(AT_ONCE, timeout=POLL_S))
        except Exception as error:
            logger.warning("stores are not followed any more: %s", error)
        finally:
            close_within(consumer, CLOSE_S)

    def _apply(self, messages: Iterable[Message]) -> None:
        changes: dict[str, list[Change]] = {}
        positions: dict[tuple[str, int], int] = {}
        for message in messages:
            if (error := message.error()) is not None:
                logger.debug("while stores are followed: %s", error)
                self._stop.wait(PAUSE_S)
                continue
            topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
            store, size_ms = self._topics[topic]
            changes.setdefault(store, []).append(_change(message, partition, size_ms))
            positions[topic, partition] = offset + 1
        if positions:
            self._database.feed(changes, positions)


def _change(message: Message, partition: int, size_ms: int | None) -> Change:
    key, (start, end) = message.key() or b"", NO_WINDOW
    if size_ms is not None:
        (start,) = LONG.unpack_from(key, len(key) - LONG.size)
        key, end = key[: -LONG.size], start + size_ms
    time = dict(message.headers() or ()).get("timestamp")
    timestamp = LONG.unpack(time)[0] if isinstance(time, bytes) else message.timestamp()[1]
    return key, start, end, message.value(), timestamp, partition
