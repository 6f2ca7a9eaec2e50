"""Tables that pull queries read: copies of the topics that hold them, kept up to date in one SQLite file.

A table is what its topic says: the newest record of each key, nothing after a tombstone. So every server can have a
copy of every table, whoever computes it, and one that was lost is read again. One consumer follows all topics; where it
stands is written with what it has read, in one transaction. Start at `TableCopies.follow`.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.core.ids import TopicPartition
from moldau.ksql.cluster import KafkaCluster, arrived, assign
from moldau.pipeline.cores.records import Headers

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

__all__ = ["SESSION_WINDOW_BYTES", "TIME_WINDOW_BYTES", "StoredRow", "TableCopies"]

READ_AT_ONCE = 5000
POLL_S = 0.1
RETRY_S = 1.0
EXPIRE_S = 60.0
"""How often windows that are out of their retention are looked for."""
TIME_WINDOW_BYTES, SESSION_WINDOW_BYTES = 8, 16

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    topic TEXT NOT NULL, key BLOB NOT NULL, window BLOB NOT NULL, value BLOB NOT NULL,
    timestamp INTEGER NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL,
    headers TEXT, PRIMARY KEY (topic, key, window)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS positions (
    topic TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
"""
_SELECT = "SELECT key, window, value, timestamp, partition, offset, headers FROM rows"
_logger = logging.getLogger("moldau.ksql")


class StoredRow(NamedTuple):
    """A row of a table, as the newest record of its key."""

    key: bytes
    value: bytes
    timestamp: int
    partition: int
    offset: int
    headers: Headers = ()


@dataclass(slots=True)
class _Followed:
    window_bytes: int
    partitions: int
    retention_ms: int | None = None
    latest_ms: dict[int, int] = field(default_factory=dict)
    """The largest time of each partition's records since windows were last looked for."""
    expired_at: float = 0.0


class TableCopies:
    """A thread follows the topics; any thread may read."""

    def __init__(self, path: Path, cluster: KafkaCluster) -> None:
        self._path = path
        self._cluster = cluster
        self._topics: dict[str, _Followed] = {}
        self._positions: dict[tuple[str, int], int] = {}
        self._complete: set[str] = set()
        self._dropped: set[str] = set()
        """Topics whose copies are to be deleted: a topic may be made and followed anew under the same name."""
        self._lock = threading.Lock()
        self._has_moved = threading.Condition(self._lock)
        self._has_changed = threading.Event()
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._readers = threading.local()

    def start(self) -> None:
        """Open the file and begin to follow."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open().close()
        self._thread = threading.Thread(target=self._run, name="table-copies", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop following."""
        self._is_stopping.set()
        self._has_changed.set()
        if self._thread is not None:
            self._thread.join(5.0)

    @property
    def followed(self) -> frozenset[str]:
        """The topics that are copied."""
        with self._lock:
            return frozenset(self._topics)

    def follow(self, topic: str, partitions: int, window_bytes: int = 0, retention_ms: int | None = None) -> None:
        """Keep a copy of a topic; keys end with `window_bytes` that tell their window.

        Windows go when they are `retention_ms` behind the latest record of their partition.
        """
        with self._lock:
            self._topics[topic] = _Followed(window_bytes, partitions, retention_ms)
        self._has_changed.set()

    def forget(self, topic: str) -> None:
        """Drop the copy of a topic, because its table is gone."""
        with self._lock:
            self._topics.pop(topic, None)
            self._complete.discard(topic)
            self._dropped.add(topic)
            for place in [place for place in self._positions if place[0] == topic]:
                del self._positions[place]
        self._has_changed.set()

    # Reading

    def rows_of_key(self, topic: str, key: bytes) -> list[StoredRow]:
        """The rows of a key: one, or one per window in the order of their start."""
        sql = f"{_SELECT} WHERE topic = ? AND key = ?"
        return [_stored(row) for row in self._reader().execute(sql, (topic, key))]

    def rows_in_range(self, topic: str, low: bytes, high: bytes | None) -> Iterable[StoredRow]:
        """The rows of the keys from `low` to `high`, both included, by key and window."""
        end, bounds = ("", (topic, low)) if high is None else (" AND key <= ?", (topic, low, high))
        for row in self._reader().execute(f"{_SELECT} WHERE topic = ? AND key >= ?{end}", bounds):
            yield _stored(row)

    def all_rows(self, topic: str) -> Iterable[StoredRow]:
        """All rows, by key and window."""
        for row in self._reader().execute(f"{_SELECT} WHERE topic = ?", (topic,)):
            yield _stored(row)

    def position(self, topic: str, partition: int) -> int:
        """Up to which offset a partition is in the copy."""
        with self._lock:
            return self._positions.get((topic, partition), 0)

    def is_complete(self, topic: str) -> bool:
        """Whether the copy was once all that is in the topic; from then on it is as late as its consumer."""
        with self._lock:
            return topic in self._complete

    def wait_until(self, topic: str, ends: Mapping[str, int], timeout_s: float) -> bool:
        """Wait until what was in the topic up to these offsets is in the copy; False after the timeout."""

        def is_there() -> bool:
            return all(self._positions.get((topic, int(number)), 0) >= end for number, end in ends.items())

        with self._has_moved:
            is_complete = self._has_moved.wait_for(is_there, timeout_s)
            if is_complete:
                self._complete.add(topic)
            return is_complete

    def _reader(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if found is None:
            found = self._readers.connection = self._open()
        return found

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(_SCHEMA)
        return database

    # Following

    def _run(self) -> None:
        database = self._open()
        try:
            while not self._is_stopping.is_set():
                try:
                    self._follow(database)
                except Exception:
                    _logger.exception("copying tables failed, will retry")
                    self._is_stopping.wait(RETRY_S)
        finally:
            database.close()

    def _follow(self, database: sqlite3.Connection) -> None:
        """Follow the topics that are wanted now, until others are."""
        self._has_changed.clear()
        with self._lock:
            topics = dict(self._topics)
            dropped, self._dropped = self._dropped, set()
        _drop_others(database, topics.keys() - dropped)
        if not topics:
            self._has_changed.wait()
            return
        consumer = self._cluster.new_consumer("ksql-table-copies")
        try:
            self._assign(consumer, database, topics)
            while not self._has_changed.is_set():
                messages = arrived(consumer, READ_AT_ONCE, POLL_S)
                if messages:
                    self._store(database, topics, messages)
                _expire(database, topics, time.monotonic())
        finally:
            consumer.close()

    def _assign(self, consumer: Consumer, database: sqlite3.Connection, topics: Mapping[str, _Followed]) -> None:
        from confluent_kafka import OFFSET_BEGINNING

        known = {
            (topic, partition): position
            for topic, partition, position in database.execute("SELECT topic, partition, next FROM positions")
        }
        with self._has_moved:
            self._positions = dict(known)
            self._has_moved.notify_all()
        places = [
            TopicPartition(topic, number) for topic, followed in topics.items() for number in range(followed.partitions)
        ]
        assign(consumer, {place: known.get(place, OFFSET_BEGINNING) for place in places})

    def _store(self, database: sqlite3.Connection, topics: Mapping[str, _Followed], messages: list[Message]) -> None:
        rows: list[tuple[Any, ...]] = []
        gone: list[tuple[Any, ...]] = []
        moved: dict[tuple[str, int], int] = {}
        changes: dict[tuple[str, bytes], Message] = {}
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if topic is None or partition is None or offset is None:
                continue  # an error about no record, such as a broker that is away
            if message.error() is not None:
                if offset >= 0:  # the end of a partition tells where it is
                    moved[topic, partition] = max(offset, moved.get((topic, partition), 0))
                continue
            moved[topic, partition] = offset + 1
            key = message.key()
            if key is not None:
                changes[topic, key] = message  # only the last one of a key counts
        for (topic, key), message in changes.items():
            split = len(key) - topics[topic].window_bytes
            place = (topic, key[:split], key[split:])
            value = message.value()
            if value is None:
                gone.append(place)
            else:
                headers = _headers_text(message)
                partition, time_ms = message.partition(), message.timestamp()[1]
                rows.append((*place, value, time_ms, partition, message.offset(), headers))
                if topics[topic].retention_ms is not None and partition is not None:
                    latest = topics[topic].latest_ms
                    latest[partition] = max(time_ms, latest.get(partition, 0))
        database.execute("BEGIN")
        database.executemany("DELETE FROM rows WHERE topic = ? AND key = ? AND window = ?", gone)
        database.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        database.executemany(
            "INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", [(*place, at) for place, at in moved.items()]
        )
        database.execute("COMMIT")
        with self._has_moved:
            current = {place: at for place, at in moved.items() if self._topics.get(place[0]) is topics[place[0]]}
            self._positions.update(current)
            self._has_moved.notify_all()


def _expire(database: sqlite3.Connection, topics: Mapping[str, _Followed], now_s: float) -> None:
    """Delete windows that are out of their retention.

    As in Kafka's stores, the start of time windows and the end of sessions count: the first eight bytes of both.
    """
    for topic, followed in topics.items():
        if followed.retention_ms is None or not followed.window_bytes or now_s < followed.expired_at + EXPIRE_S:
            continue
        followed.expired_at = now_s
        for partition, latest_ms in followed.latest_ms.items():
            oldest_ms = max(0, latest_ms - followed.retention_ms)
            database.execute(
                "DELETE FROM rows WHERE topic = ? AND partition = ? AND window < ?",
                (topic, partition, oldest_ms.to_bytes(8)),
            )
        followed.latest_ms.clear()


def _drop_others(database: sqlite3.Connection, topics: Set[str]) -> None:
    """Delete the copies of topics that nobody follows any more."""
    known = [topic for (topic,) in database.execute("SELECT DISTINCT topic FROM positions")]
    for topic in known:
        if topic not in topics:
            database.execute("BEGIN")
            database.execute("DELETE FROM rows WHERE topic = ?", (topic,))
            database.execute("DELETE FROM positions WHERE topic = ?", (topic,))
            database.execute("COMMIT")


def _stored(row: tuple[bytes, bytes, bytes, int, int, int, str | None]) -> StoredRow:
    key, window, value, timestamp, partition, offset, headers = row
    return StoredRow(key + window, value, timestamp, partition, offset, _headers(headers))


def _headers_text(message: Message) -> str | None:
    """A record's headers as JSON; None for most records, which have none."""
    headers: Headers = tuple(message.headers() or ())  # type: ignore[arg-type]
    return json.dumps([[name, None if value is None else value.hex()] for name, value in headers]) if headers else None


def _headers(text: str | None) -> Headers:
    if text is None:
        return ()
    return tuple((name, None if value is None else bytes.fromhex(value)) for name, value in json.loads(text))
