"""Read-only views of stores for tests: one view over all partitions of a store.

They have the methods of `KafkaStreams.store`. Start at `KeyValueReader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from moldau.pipeline.cores.failures import StateError
from moldau.pipeline.cores.records import ValueAndTimestamp, Windowed
from moldau.pipeline.cores.stores.key_value_store import KeyValueStore, TimestampedStore
from moldau.pipeline.cores.stores.session_store import SessionStore
from moldau.pipeline.cores.stores.store import Store
from moldau.pipeline.cores.stores.versioned_store import VersionedStore
from moldau.pipeline.cores.stores.window_store import LAST_TIME, WindowStore

__all__ = ["KeyValueReader", "SessionReader", "TimestampedReader", "VersionedReader", "WindowReader"]

AnyStore = TypeVar("AnyStore", bound=Store)


def _stores_of_kind(name: str, stores: Sequence[Store], kind: type[AnyStore]) -> list[AnyStore]:
    checked = [store for store in stores if isinstance(store, kind)]
    if len(checked) < len(stores):
        raise StateError(f"store {name!r} is a {type(stores[0]).__name__}, not a {kind.__name__}")
    return checked


class TimestampedReader:
    """Values with their timestamps, by key."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores: list[KeyValueStore] = list(_stores_of_kind(name, stores, TimestampedStore))

    def get(self, key: Any) -> Any:
        """The value of a key with its timestamp, or None."""
        return next((found for store in self._stores if (found := store.get(key)) is not None), None)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All entries, in the order of key bytes."""
        return iter(self._merge(store.all() for store in self._stores))

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """All entries, from the last key to the first."""
        return iter(self._merge(store.all() for store in self._stores)[::-1])

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Entries between two keys, both included; None leaves an end open."""
        return iter(self._merge(store.range(first, last) for store in self._stores))

    def reverse_range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Entries between two keys, both included, from `last` down to `first`."""
        return iter(self._merge(store.range(first, last) for store in self._stores)[::-1])

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """Entries whose key bytes start with `prefix`."""
        return iter(self._merge(store.prefix_scan(prefix) for store in self._stores))

    def approximate_num_entries(self) -> int:
        """The number of entries."""
        return sum(store.approximate_num_entries() for store in self._stores)

    def _merge(self, entries: Iterator[Iterator[tuple[Any, Any]]]) -> list[tuple[Any, Any]]:
        encode_key = self._stores[0].encode_key
        return sorted(chain.from_iterable(entries), key=lambda entry: encode_key(entry[0]))


class KeyValueReader(TimestampedReader):
    """Values by key, without timestamps."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores = _stores_of_kind(name, stores, KeyValueStore)

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        return _bare(super().get(key))

    def _merge(self, entries: Iterator[Iterator[tuple[Any, Any]]]) -> list[tuple[Any, Any]]:
        return [(key, _bare(value)) for key, value in super()._merge(entries)]


class VersionedReader:
    """Rows by key, current and past."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores = _stores_of_kind(name, stores, VersionedStore)

    def get(self, key: Any) -> ValueAndTimestamp | None:
        """The current row of a key, or None."""
        return next((found for store in self._stores if (found := store.get(key)) is not None), None)

    def get_as_of(self, key: Any, timestamp: int) -> ValueAndTimestamp | None:
        """The row that a key had at `timestamp`, or None."""
        return next((row for store in self._stores if (row := store.get_as_of(key, timestamp)) is not None), None)


class WindowReader:
    """Values by key and window, without timestamps."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores = _stores_of_kind(name, stores, WindowStore)

    def fetch_at(self, key: Any, start: int) -> Any:
        """The value of a key in the window that starts at `start`, in ms since 1970, or None.

        store.fetch_at("home", key.window.start)
        """
        return next((_bare(found) for store in self._stores if (found := store.fetch_at(key, start)) is not None), None)

    def fetch(self, key: Any, first: int = 0, last: int = LAST_TIME) -> Iterator[tuple[int, Any]]:
        """(Window start, value) of a key's windows that start between two times, both included."""
        return iter(self._of_key(key, first, last))

    def backward_fetch(self, key: Any, first: int = 0, last: int = LAST_TIME) -> Iterator[tuple[int, Any]]:
        """As `fetch`, from the latest window to the earliest."""
        return iter(self._of_key(key, first, last)[::-1])

    def fetch_key_range(self, low: Any, high: Any, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Entries with keys from `low` to `high` (None leaves an end open) and window starts from `first` to `last`."""
        return self._merge(store.fetch_key_range(low, high, first, last) for store in self._stores)

    def fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Entries with window starts from `first` to `last`, ordered by window start, then key bytes."""
        return self._merge(store.fetch_all(first, last) for store in self._stores)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """All entries, ordered by window start, then key bytes."""
        return self._merge(store.all() for store in self._stores)

    def _of_key(self, key: Any, first: int, last: int) -> list[tuple[int, Any]]:
        found = chain.from_iterable(store.fetch(key, first, last) for store in self._stores)
        return [(start, _bare(value)) for start, value in found]

    def _merge(self, entries: Iterator[Iterator[tuple[Windowed, Any]]]) -> Iterator[tuple[Windowed, Any]]:
        encode_key = self._stores[0].encode_key
        ordered = sorted(
            chain.from_iterable(entries), key=lambda entry: (entry[0].window.start, encode_key(entry[0].key))
        )
        return ((windowed, _bare(value)) for windowed, value in ordered)


class SessionReader:
    """Values by key and session."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores = _stores_of_kind(name, stores, SessionStore)

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of a key."""
        return chain.from_iterable(store.fetch(key) for store in self._stores)

    def find_sessions(self, key: Any, earliest_end: int, latest_start: int) -> Iterator[tuple[Windowed, Any]]:
        """Sessions of a key that end at or after `earliest_end` and start at or before `latest_start`, by end."""
        return chain.from_iterable(store.find_sessions(key, earliest_end, latest_start) for store in self._stores)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """The value of one session, or None."""
        return next((v for store in self._stores if (v := store.fetch_session(key, start, end)) is not None), None)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """All sessions, in the order of key bytes."""
        encode_key = self._stores[0].encode_key
        found = chain.from_iterable(store.all() for store in self._stores)
        return iter(sorted(found, key=lambda entry: (encode_key(entry[0].key), entry[0].window)))


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, ValueAndTimestamp) else value
