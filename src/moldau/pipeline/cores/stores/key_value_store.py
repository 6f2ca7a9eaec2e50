"""Key-value stores: plain ones, and those with a timestamp per value.

Keys are compared, and iterate, as serialized bytes. Start at `TimestampedStore`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from moldau.pipeline.cores.records import ValueAndTimestamp
from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.store import Codec, Store, StoreChange
from moldau.pipeline.cores.stores.store_values import Holding, TimestampedHolding, split_timestamp
from moldau.pipeline.cores.stores.write_back import WriteBack

__all__ = ["KeyValueStore", "TimestampedStore"]


class KeyValueStore(Store):
    """The key-value store of the Processor API."""

    def __init__(self, name: str, backend: StateBackend, codec: Codec) -> None:
        super().__init__(name)
        self.encode_key = codec.encode_key
        self.decode_key = codec.decode_key
        self.holding = self._holding(codec)
        self.cache = WriteBack(backend, self.holding.write, self.holding.read)

    def _holding(self, codec: Codec) -> Holding:
        return Holding(codec)

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        held = self.cache.get(self.encode_key(key))
        return None if held is None else self.holding.give(held)

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; None deletes it."""
        self.cache.put(self.encode_key(key), None if value is None else self.holding.hold(value))

    def delete(self, key: Any) -> Any:
        """Remove a key and return the value it had."""
        old = self.get(key)
        self.put(key, None)
        return old

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value unless there is one; returns the previous value."""
        old = self.get(key)
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set many."""
        for key, value in entries:
            self.put(key, value)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """A snapshot of every entry, in byte order of keys."""
        return self._given_items(self.cache.sorted_items())

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """Every entry from the last key to the first."""
        return self._given_items(self.cache.sorted_items()[::-1])

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Entries from `first` to `last`, both included; None leaves an end open."""
        return self._given_items(self._between(first, last))

    def reverse_range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """The same from `last` down to `first`."""
        return self._given_items(self._between(first, last)[::-1])

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """Entries whose key bytes start with this prefix."""
        return self._given_items([item for item in self.cache.sorted_items() if item[0].startswith(prefix)])

    def approximate_num_entries(self) -> int:
        """How many entries there are."""
        return len(self.cache.sorted_items())

    def flush(self) -> list[StoreChange]:
        """Write what changed to the backend."""
        written = self.cache.flush()
        return [self._change(key, data) for key, data in written] if self.is_queryable else []

    def _change(self, key: bytes, data: bytes | None) -> StoreChange:
        return StoreChange(key, data, None, None)

    def _between(self, first: Any, last: Any) -> list[tuple[bytes, Any]]:
        low = None if first is None else self.encode_key(first)
        high = None if last is None else self.encode_key(last)
        return [
            item
            for item in self.cache.sorted_items()
            if (low is None or low <= item[0]) and (high is None or item[0] <= high)
        ]

    def _given_items(self, items: list[tuple[bytes, Any]]) -> Iterator[tuple[Any, Any]]:
        return ((self.decode_key(key), self.holding.give(held)) for key, held in items)


class TimestampedStore(KeyValueStore):
    """A store whose values are `ValueAndTimestamp`; tables are stored in it.

    Cores, which have the key's bytes anyway, use `row` and `put_row`.
    """

    holding: TimestampedHolding

    def _holding(self, codec: Codec) -> Holding:
        return TimestampedHolding(codec)

    def row(self, key_bytes: bytes) -> ValueAndTimestamp | None:
        """As `get`, by the key's bytes."""
        held = self.cache.get(key_bytes)
        return None if held is None else self.holding.give(held)

    def put_row(self, key_bytes: bytes, value: Any, timestamp: int) -> None:
        """As `put`, by the key's bytes; a null value deletes the row."""
        self.cache.put(key_bytes, None if value is None else self.holding.hold_row(value, timestamp))

    def _change(self, key: bytes, data: bytes | None) -> StoreChange:
        return StoreChange(key, None, None, None) if data is None else StoreChange(key, *split_timestamp(data), None)
