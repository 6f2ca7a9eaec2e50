"""A copy of the queryable stores' contents: one SQLite file, updated batch by batch.

A query of Spark's own state takes a second, of this file microseconds. Each batch is applied atomically and once: the
file stores the last batch's number, so a repeated batch changes nothing. `views` reads the file. Start at
`StoreDatabase.apply`.
"""

from __future__ import annotations

import sqlite3
import struct
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.pipeline.runtime.stores.queryable import QueryableStore, Shape

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Change", "StoreDatabase"]

WINDOW = struct.Struct(">qq")
"""Start and end of a row's window, in its only header."""

NO_WINDOW = (0, 0)
Change = tuple[bytes, int, int, bytes | None, int | None, int]
"""Key, window start and end, value, timestamp, partition."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    store TEXT NOT NULL, key BLOB NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    value BLOB NOT NULL, timestamp INTEGER, partition INTEGER NOT NULL, expires INTEGER,
    PRIMARY KEY (store, key, start, end)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_by_expiry ON entries (store, partition, expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS observed (
    store TEXT NOT NULL, partition INTEGER NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (store, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS applied (checkpoint TEXT NOT NULL, batch INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS fed (
    topic TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
"""


class StoreDatabase:
    """Writes the file; one per pipeline, used between `open` and `close`. `stores` are the queryable stores."""

    def __init__(self, path: Path, stores: Mapping[str, QueryableStore]) -> None:
        self.path = path
        self.stores = dict(stores)
        self._lock = threading.Lock()

    def open(self) -> None:
        """Open the file, and create it if it is missing."""
        self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(_SCHEMA)

    def last_batch(self, checkpoint: str) -> int | None:
        """The last applied batch of this checkpoint; None if there is none."""
        with self._lock:
            row = self._database.execute("SELECT batch FROM applied WHERE checkpoint = ?", (checkpoint,)).fetchone()
        return None if row is None else int(row[0])

    def clear(self) -> None:
        """Delete all entries, for a pipeline that starts from scratch."""
        with self._lock, self._database:
            self._database.execute("BEGIN")
            for table in ("entries", "observed", "applied", "fed"):
                self._database.execute(f"DELETE FROM {table}")

    def apply(self, checkpoint: str, batch: int, changes: Iterable[tuple[str, pa.Table]]) -> None:
        """Apply a batch's changes to each store; a batch that was applied before changes nothing."""
        last = self.last_batch(checkpoint)
        if last is not None and last >= batch:
            return
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            for name, rows in changes:
                if (store := self.stores.get(name)) is not None:
                    self._write(store, map(_change, rows.to_pylist()))
            self._database.execute("DELETE FROM applied")
            self._database.execute("INSERT INTO applied VALUES (?, ?)", (checkpoint, batch))

    def feed(self, changes: Mapping[str, Iterable[Change]], positions: Mapping[tuple[str, int], int]) -> None:
        """Apply changes that were read from changelog topics, and note the next offset of each partition."""
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            for name, of_store in changes.items():
                self._write(self.stores[name], of_store)
            rows = [(*place, offset) for place, offset in positions.items()]
            self._database.executemany("INSERT OR REPLACE INTO fed VALUES (?, ?, ?)", rows)

    def positions(self) -> dict[tuple[str, int], int]:
        """The next offset of each partition of a changelog topic."""
        with self._lock:
            rows = self._database.execute("SELECT topic, partition, next FROM fed").fetchall()
        return {(topic, partition): offset for topic, partition, offset in rows}

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _write(self, store: QueryableStore, changes: Iterable[Change]) -> None:
        # If an entry changed several times, only the last change counts.
        last = {(key, start, end): (value, time, partition) for key, start, end, value, time, partition in changes}
        kept = [(store.name, *place, *row, _moment(store, place)) for place, row in last.items() if row[0] is not None]
        gone = [(store.name, *place) for place, row in last.items() if row[0] is None]
        self._database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", kept)
        self._database.executemany("DELETE FROM entries WHERE store = ? AND key = ? AND start = ? AND end = ?", gone)
        if store.retention_ms is not None:
            latest: dict[int, int] = {}
            for place, (_, _, partition) in last.items():
                time = _moment(store, place) or 0
                latest[partition] = max(time, latest.get(partition, time))
            self._expire(store.name, store.retention_ms, latest)

    def _expire(self, store: str, retention_ms: int, latest: Mapping[int, int]) -> None:
        """Delete windows that are older than the partition's stream time minus the retention, as Kafka's stores do."""
        for partition, time in latest.items():
            (observed,) = self._database.execute(
                "INSERT INTO observed VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET time = max(time, excluded.time) RETURNING time",
                (store, partition, time),
            ).fetchone()
            self._database.execute(
                "DELETE FROM entries WHERE store = ? AND partition = ? AND expires <= ?",
                (store, partition, observed - retention_ms),
            )


def _moment(store: QueryableStore, place: tuple[bytes, int, int]) -> int | None:
    """The time from which retention counts: the end of a session, the start of any other window."""
    if store.retention_ms is None:
        return None
    return place[2] if store.shape is Shape.SESSION else place[1]


def _change(row: Mapping[str, Any]) -> Change:
    headers = row["headers"]
    start, end = WINDOW.unpack(headers[0]["value"]) if headers else NO_WINDOW
    return row["key"], start, end, row["value"], row["timestamp"], row["partition"] or 0
