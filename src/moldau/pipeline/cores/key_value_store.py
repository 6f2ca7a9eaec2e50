"""Stores of one value per key: plain ones, and those that keep each value's timestamp beside it.

Keys are compared, and iterate, as serialized bytes. A store never shares a mutable object with its user: such values
are serialized at once. Start at `TimestampedStore`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from moldau.pipeline.cores.records import ValueAndTimestamp
from moldau.pipeline.cores.serialization import Decode, Encode
from moldau.pipeline.cores.store import Codec, Store, StoreChange
from moldau.pipeline.cores.write_back import WriteBack

__all__ = ["KeyValueStore", "TimestampedStore"]

_TIMESTAMP = struct.Struct(">q")
_new_tuple = tuple.__new__


class KeyValueStore(Store):
    """What processors know as a key-value store."""

    def __init__(self, name: str, backend: Any, codec: Codec) -> None:
        super().__init__(name)
        self.encode_key: Encode = codec.encode_key
        self.decode_key: Decode = codec.decode_key
        self._codec = codec
        self._cache = WriteBack(backend, self._to_bytes, self._from_bytes)

    # What is held in memory: the value where it is plain, else its bytes.

    def _to_bytes(self, held: Any) -> bytes:
        return self._codec.encode_value(held) if self._codec.is_plain else held

    def _from_bytes(self, data: bytes) -> Any:
        return self._codec.decode_value(data) if self._codec.is_plain else data

    def _hold(self, value: Any) -> Any:
        data = self._codec.encode_value(value)
        return value if self._codec.is_plain else data

    def _given(self, held: Any) -> Any:
        return held if self._codec.is_plain else self._codec.decode_value(held)

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        held = self._cache.get(self.encode_key(key))
        return None if held is None else self._given(held)

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; None deletes it."""
        self._cache.put(self.encode_key(key), None if value is None else self._hold(value))

    def delete(self, key: Any) -> Any:
        """Remove a key and return the value it had."""
        old = self.get(key)
        self.put(key, None)
        return old

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """Set the value unless there is one; returns the one there was."""
        old = self.get(key)
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """Set many."""
        for key, value in entries:
            self.put(key, value)

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Every entry, as it is now, in byte order of keys."""
        return self._given_items(self._cache.sorted_items())

    def reverse_all(self) -> Iterator[tuple[Any, Any]]:
        """Every entry from the last key to the first."""
        return self._given_items(self._cache.sorted_items()[::-1])

    def range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """Entries from `first` to `last`, both included; None leaves an end open."""
        return self._given_items(self._between(first, last))

    def reverse_range(self, first: Any, last: Any) -> Iterator[tuple[Any, Any]]:
        """The same from `last` down to `first`."""
        return self._given_items(self._between(first, last)[::-1])

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """Entries whose key bytes begin with these."""
        return self._given_items([item for item in self._cache.sorted_items() if item[0].startswith(prefix)])

    def approximate_num_entries(self) -> int:
        """How many entries there are."""
        return len(self._cache.sorted_items())

    def flush(self) -> list[StoreChange]:
        """Write what changed to the backend."""
        return [self._change(key, data) for key, data in self._cache.flush()]

    def _change(self, key: bytes, data: bytes | None) -> StoreChange:
        return StoreChange(key, data, None, None)

    def _between(self, first: Any, last: Any) -> list[tuple[bytes, Any]]:
        low = None if first is None else self.encode_key(first)
        high = None if last is None else self.encode_key(last)
        return [
            item
            for item in self._cache.sorted_items()
            if (low is None or low <= item[0]) and (high is None or item[0] <= high)
        ]

    def _given_items(self, items: list[tuple[bytes, Any]]) -> Iterator[tuple[Any, Any]]:
        return ((self.decode_key(key), self._given(held)) for key, held in items)


class TimestampedStore(KeyValueStore):
    """A store whose values are `ValueAndTimestamp`; what tables are kept in."""

    def __init__(self, name: str, backend: Any, codec: Codec) -> None:
        super().__init__(name, backend, codec)
        self._is_plain = codec.is_plain

    def _to_bytes(self, held: Any) -> bytes:
        value, timestamp = held
        return _TIMESTAMP.pack(timestamp) + (self._codec.encode_value(value) if self._is_plain else value)

    def _from_bytes(self, data: bytes) -> Any:
        value = self._codec.decode_value(data[8:]) if self._is_plain else data[8:]
        return ValueAndTimestamp(value, _TIMESTAMP.unpack_from(data)[0])

    def _hold(self, value: Any) -> Any:
        return self._held(value[0], value[1])

    def _held(self, value: Any, timestamp: int) -> Any:
        data = self._codec.encode_value(value)
        return _new_tuple(ValueAndTimestamp, (value if self._is_plain else data, timestamp))

    def _given(self, held: Any) -> Any:
        return held if self._is_plain else ValueAndTimestamp(self._codec.decode_value(held[0]), held[1])

    def row(self, key_bytes: bytes) -> ValueAndTimestamp | None:
        """As `get`, by the key's bytes."""
        held = self._cache.get(key_bytes)
        if held is None or self._is_plain:
            return held  # type: ignore[no-any-return]
        return ValueAndTimestamp(self._codec.decode_value(held[0]), held[1])

    def put_row(self, key_bytes: bytes, value: Any, timestamp: int) -> None:
        """As `put`, by the key's bytes; a null value deletes the row."""
        self._cache.put(key_bytes, None if value is None else self._held(value, timestamp))

    def _change(self, key: bytes, data: bytes | None) -> StoreChange:
        if data is None:
            return StoreChange(key, None, None, None)
        return StoreChange(key, data[8:], _TIMESTAMP.unpack_from(data)[0], None)
