"""Stores as tests look at them: one view over the partitions of a store, read only.

Start at `KeyValueReader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from moldau.pipeline.cores.failures import StateError
from moldau.pipeline.cores.key_value_store import KeyValueStore, TimestampedStore
from moldau.pipeline.cores.records import ValueAndTimestamp, Windowed
from moldau.pipeline.cores.session_store import SessionStore
from moldau.pipeline.cores.store import Store
from moldau.pipeline.cores.window_store import WindowStore

__all__ = ["KeyValueReader", "SessionReader", "TimestampedReader", "WindowReader"]

AnyStore = TypeVar("AnyStore", bound=Store)


def _checked(name: str, stores: Sequence[Store], kind: type[AnyStore]) -> list[AnyStore]:
    checked = [store for store in stores if isinstance(store, kind)]
    if len(checked) < len(stores):
        raise StateError(f"store {name!r} is a {type(stores[0]).__name__}, not a {kind.__name__}")
    return checked


class TimestampedReader:
    """Values with their timestamps, by key."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores: list[KeyValueStore] = list(_checked(name, stores, TimestampedStore))

    def get(self, key: Any) -> Any:
        """What a key has, or None."""
        return next((found for store in self._stores if (found := store.get(key)) is not None), None)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Every entry, by key bytes."""
        return self._merged(store.all() for store in self._stores)

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Entries between two keys, both included."""
        return self._merged(store.range(first, last) for store in self._stores)

    def approximate_num_entries(self) -> int:
        """How many entries there are."""
        return sum(store.approximate_num_entries() for store in self._stores)

    def _merged(self, entries: Iterator[Iterator[tuple[Any, Any]]]) -> Iterator[tuple[Any, Any]]:
        encode_key = self._stores[0].encode_key
        return iter(sorted(chain.from_iterable(entries), key=lambda entry: encode_key(entry[0])))


class KeyValueReader(TimestampedReader):
    """Values by key, without timestamps."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores = _checked(name, stores, KeyValueStore)

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        return _bare(super().get(key))

    def _merged(self, entries: Iterator[Iterator[tuple[Any, Any]]]) -> Iterator[tuple[Any, Any]]:
        return ((key, _bare(value)) for key, value in super()._merged(entries))


class WindowReader:
    """Values by key and window, without timestamps."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores = _checked(name, stores, WindowStore)

    def fetch_at(self, key: Any, start: int) -> Any:
        """The value of a key in the window that starts then, or None."""
        return next((_bare(found) for store in self._stores if (found := store.fetch_at(key, start)) is not None), None)

    def fetch(self, key: Any, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """Start and value of a key's windows that start between two times, both included."""
        found = chain.from_iterable(store.fetch(key, first, last) for store in self._stores)
        return ((start, _bare(value)) for start, value in found)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Every entry, by window start, then key bytes."""
        encode_key = self._stores[0].encode_key
        found = chain.from_iterable(store.all() for store in self._stores)
        ordered = sorted(found, key=lambda entry: (entry[0].window.start, encode_key(entry[0].key)))
        return ((windowed, _bare(value)) for windowed, value in ordered)


class SessionReader:
    """Values by session."""

    def __init__(self, name: str, stores: Sequence[Store]) -> None:
        self._stores = _checked(name, stores, SessionStore)

    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]:
        """All sessions of a key."""
        return chain.from_iterable(store.fetch(key) for store in self._stores)

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        """The value of one session, or None."""
        return next((v for store in self._stores if (v := store.fetch_session(key, start, end)) is not None), None)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Every session, by key bytes."""
        encode_key = self._stores[0].encode_key
        found = chain.from_iterable(store.all() for store in self._stores)
        return iter(sorted(found, key=lambda entry: (encode_key(entry[0].key), entry[0].window)))


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, ValueAndTimestamp) else value
