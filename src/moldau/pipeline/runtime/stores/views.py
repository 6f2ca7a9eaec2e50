"""Read-only views of a running pipeline's stores: by key, range or window, in microseconds.

A view shows the state after the last committed batch, and does not change during a read. Method names are those of
Kafka's read-only stores. Start at `StoreViews.store`.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from moldau.pipeline.cores.records import ValueAndTimestamp
from moldau.pipeline.cores.serialization import decoder, encoder
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.pipeline.runtime.errors import StreamsError
from moldau.pipeline.runtime.stores.queryable import QueryableStore, Shape
from moldau.serdes.windowed import Window, Windowed

__all__ = ["KeyValueView", "SessionView", "StoreViews", "UnknownStoreError", "View", "WindowView"]

FIRST_TIME, LAST_TIME = 0, 2**63 - 1


class UnknownStoreError(StreamsError):
    """There is no store of this name, or it is not queryable."""


class View(Hinting):
    """Base class of all views: the store, and rows of its file."""

    def __init__(self, views: StoreViews, store: QueryableStore) -> None:
        topic = views.changelog_topic(store.name)
        self.name = store.name
        self.topic = topic
        """The topic name that serdes with schemas use for the store."""
        self.shape = store.shape
        self.key_serde = store.table.key_serde
        self.encode_key = encoder(store.table.key_serde, topic)
        self.decode_key = decoder(store.table.key_serde, topic)
        self.decode_value = decoder(store.table.value_serde, topic)
        self._views = views

    def approximate_num_entries(self) -> int:
        """The number of entries."""
        return int(next(self._rows("SELECT count(*) FROM entries WHERE store = ?"))[0])

    def _rows(self, query: str, *arguments: Any) -> Iterator[tuple[Any, ...]]:
        return self._views.connection().execute(query, (self.name, *arguments))

    def _windowed_entries(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Windowed, Any]]:
        for key, start, end, value in rows:
            yield Windowed(self.decode_key(key), Window(start, end)), self.decode_value(value)

    def _bounds(self, first: Any, last: Any) -> tuple[str, list[bytes]]:
        """The SQL condition for keys between two, both included; None leaves an end open."""
        conditions, arguments = "", []
        for sign, bound in ((">=", first), ("<=", last)):
            if bound is not None:
                conditions += f" AND key {sign} ?"
                arguments.append(self.encode_key(bound))
        return conditions, arguments


class KeyValueView(View):
    """Values by key."""

    hints: ClassVar[dict[str, str]] = {"fetch": "this is a key-value store: use get(key), or range(first, last)"}

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        found = self.get_with_timestamp(key)
        return None if found is None else found.value

    def get_with_timestamp(self, key: Any) -> ValueAndTimestamp | None:
        """The value of a key and the time of its last change, or None."""
        rows = self._rows("SELECT value, timestamp FROM entries WHERE store = ? AND key = ?", self.encode_key(key))
        row = next(rows, None)
        return None if row is None else ValueAndTimestamp(self.decode_value(row[0]), -1 if row[1] is None else row[1])

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Entries from `first` to `last`, both included, in byte order of keys; None leaves an end open."""
        return self._entries("ASC", first, last)

    def reverse_range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Entries from `last` down to `first`."""
        return self._entries("DESC", first, last)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Every entry, in byte order of keys."""
        return self._entries("ASC", None, None)

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """Every entry from the last key to the first."""
        return self._entries("DESC", None, None)

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """Entries whose key bytes begin with `prefix`."""
        rows = self._rows("SELECT key, value FROM entries WHERE store = ? AND key >= ? ORDER BY key", prefix)
        for key, value in rows:
            if not key.startswith(prefix):
                return
            yield self.decode_key(key), self.decode_value(value)

    def _entries(self, order: str, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        conditions, arguments = self._bounds(first, last)
        query = f"SELECT key, value FROM entries WHERE store = ?{conditions} ORDER BY key {order}"
        for key, value in self._rows(query, *arguments):
            yield self.decode_key(key), self.decode_value(value)


class WindowView(View):
    """Values by key and window."""

    hints: ClassVar[dict[str, str]] = dict.fromkeys(
        ("get", "range"), "this is a window store: use fetch(key), fetch_at(key, start) or fetch_all(first, last)"
    )

    def fetch_at(self, key: Any, start: int) -> Any:
        """The value of a key in the window with this start, or None."""
        query = "SELECT value FROM entries WHERE store = ? AND key = ? AND start = ?"
        row = next(self._rows(query, self.encode_key(key), start), None)
        return None if row is None else self.decode_value(row[0])

    def fetch(self, key: Any, first: int = FIRST_TIME, last: int = LAST_TIME) -> Iterator[tuple[int, Any]]:
        """Start and value of a key's windows that start between two times, both included."""
        return self._entries_of_key("ASC", key, first, last)

    def backward_fetch(self, key: Any, first: int = FIRST_TIME, last: int = LAST_TIME) -> Iterator[tuple[int, Any]]:
        """The same from the latest window to the earliest."""
        return self._entries_of_key("DESC", key, first, last)

    def fetch_key_range(self, low: Any, high: Any, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Entries of keys between two, both included (None leaves an end open), that start between two times."""
        conditions, arguments = self._bounds(low, high)
        query = (
            f"SELECT key, start, end, value FROM entries WHERE store = ?{conditions} "
            "AND start >= ? AND start <= ? ORDER BY start, key"
        )
        return self._windowed_entries(self._rows(query, *arguments, first, last))

    def fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Entries of all keys whose windows start between two times, both included; by time, then key."""
        return self.fetch_key_range(None, None, first, last)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Every entry; by time, then key."""
        return self.fetch_all(FIRST_TIME, LAST_TIME)

    def _entries_of_key(self, order: str, key: Any, first: int, last: int) -> Iterator[tuple[int, Any]]:
        query = (
            "SELECT start, value FROM entries WHERE store = ? AND key = ? AND start >= ? AND start <= ? "
            f"ORDER BY start {order}"
        )
        for start, value in self._rows(query, self.encode_key(key), first, last):
            yield start, self.decode_value(value)


class SessionView(View):
    """Values by key and session."""

    hints: ClassVar[dict[str, str]] = dict.fromkeys(
        ("get", "range"), "this is a session store: use fetch(key) or find_sessions(key, earliest_end, latest_start)"
    )

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of a key."""
        return self.find_sessions(key, FIRST_TIME, LAST_TIME)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """The value of one session, or None."""
        query = "SELECT value FROM entries WHERE store = ? AND key = ? AND start = ? AND end = ?"
        row = next(self._rows(query, self.encode_key(key), start, end), None)
        return None if row is None else self.decode_value(row[0])

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        """A key's sessions that end no earlier and start no later than these times."""
        query = (
            "SELECT key, start, end, value FROM entries WHERE store = ? AND key = ? AND end >= ? AND start <= ? "
            "ORDER BY end, start"
        )
        return self._windowed_entries(self._rows(query, self.encode_key(key), earliest_end, latest_start))

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Every session, by key bytes."""
        query = "SELECT key, start, end, value FROM entries WHERE store = ? ORDER BY key, end, start"
        return self._windowed_entries(self._rows(query))


_VIEWS: Mapping[Shape, type[View]] = {
    Shape.KEY_VALUE: KeyValueView,
    Shape.WINDOW: WindowView,
    Shape.SESSION: SessionView,
}


class StoreViews:
    """All stores of one pipeline. May be used by any thread."""

    def __init__(self, path: Path, stores: Mapping[str, QueryableStore], application_id: str) -> None:
        self._path = path
        self._stores = stores
        self._application_id = application_id
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []

    @property
    def names(self) -> list[str]:
        return sorted(self._stores)

    def store(self, name: str) -> Any:
        """The view of a store, of the class for its shape; raises `UnknownStoreError`."""
        if (store := self._stores.get(name)) is None:
            known = ", ".join(self.names) or "none"
            raise UnknownStoreError(
                f"there is no store {name!r} to ask; stores with a name of their own are: {known}. "
                "Give a table one with Materialized.as_(name)"
            )
        return _VIEWS[store.shape](self, store)

    def changelog_topic(self, store: str) -> str:
        """The topic name that serdes with schemas use for a store."""
        return f"{self._application_id}-{store}-changelog"

    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            if not self._path.exists():
                raise StreamsError("the pipeline has not started yet, so its stores hold nothing")
            location = f"{self._path.absolute().as_uri()}?mode=ro"
            connection = sqlite3.connect(location, uri=True, isolation_level=None, check_same_thread=False)
            self._local.connection = connection
            self._opened.append(connection)
        return connection

    def close(self) -> None:
        """Close every thread's connection; a view that is used afterwards opens it again."""
        self._local = threading.local()
        while self._opened:
            self._opened.pop().close()
