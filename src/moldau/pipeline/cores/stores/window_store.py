"""Window stores: one value per key and window start.

Windows expire by retention, see `window_rows`. Start at `TimestampedWindowStore`, in which windowed tables are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.pipeline.cores.records import ValueAndTimestamp, Window, Windowed
from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.cells import Cell
from moldau.pipeline.cores.stores.sized_pieces import join_pieces, pieces
from moldau.pipeline.cores.stores.store import Codec, Store, StoreChange
from moldau.pipeline.cores.stores.store_values import Holding, TimestampedHolding, split_timestamp
from moldau.pipeline.cores.stores.window_rows import WindowRows

__all__ = ["DuplicatesWindowStore", "TimestampedWindowStore", "WindowStore"]

LAST_TIME = 2**63 - 1


class WindowStore(Store):
    """The window store of the Processor API."""

    def __init__(
        self,
        name: str,
        backend: StateBackend,
        codec: Codec,
        *,
        observed: Cell,
        retention_ms: int,
        window_size_ms: int,
        shown_ms: int | None = None,
    ) -> None:
        super().__init__(name)
        self.encode_key = codec.encode_key
        self.decode_key = codec.decode_key
        self.window_size_ms = window_size_ms
        self.holding = self._holding(codec)
        self.rows = WindowRows(
            backend,
            write=self.holding.write,
            read=self.holding.read,
            observed=observed,
            retention_ms=retention_ms,
            shown_ms=shown_ms,
        )

    def _holding(self, codec: Codec) -> Holding:
        return Holding(codec)

    def put(self, key: Any, value: Any, window_start: int) -> None:
        """Set the value of a key in the window with this start; None deletes it. Expired windows are ignored."""
        held = None if value is None else self.holding.hold(value)
        self.rows.put(window_start, self.encode_key(key), held)

    def fetch_at(self, key: Any, start: int) -> Any:
        """The value of a key in the window with this start, or None."""
        held = self.rows.get(start, self.encode_key(key))
        return None if held is None else self.holding.give(held)

    def fetch(self, key: Any, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """Start and value of a key's windows that start between two times, both included."""
        found = self.rows.of_key(self.encode_key(key), first, last)
        return ((start, self.holding.give(held)) for start, held in found)

    def backward_fetch(self, key: Any, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """The same from the latest to the earliest."""
        return iter(list(self.fetch(key, first, last))[::-1])

    def fetch_key_range(self, low: Any, high: Any, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Entries of keys between two, both included (None leaves an end open), that start between two times."""
        low_bytes = None if low is None else self.encode_key(low)
        high_bytes = None if high is None else self.encode_key(high)
        return (
            self._entry(start, key, held)
            for start, key, held in self.rows.between(first, last)
            if (low_bytes is None or low_bytes <= key) and (high_bytes is None or key <= high_bytes)
        )

    def fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Entries of all keys whose windows start between two times, both included; by time, then key."""
        return (self._entry(*found) for found in self.rows.between(first, last))

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """Every visible entry; by time, then key."""
        return self.fetch_all(0, LAST_TIME)

    def flush(self) -> list[StoreChange]:
        """Write what changed to the backend."""
        written = self.rows.flush()
        return (
            [self._change(self.window(start), key, data) for start, key, data in written] if self.is_queryable else []
        )

    def window(self, start: int) -> Window:
        """The window with this start."""
        return Window(start, min(start + self.window_size_ms, LAST_TIME))

    def _entry(self, start: int, key: bytes, held: Any) -> tuple[Windowed, Any]:
        return Windowed(self.decode_key(key), self.window(start)), self.holding.give(held)

    def _change(self, window: Window, key: bytes, data: bytes | None) -> StoreChange:
        return StoreChange(key, data, None, window)


class TimestampedWindowStore(WindowStore):
    """A window store whose values are `ValueAndTimestamp`; cores use `row` and `put_row`."""

    holding: TimestampedHolding

    def _holding(self, codec: Codec) -> Holding:
        return TimestampedHolding(codec)

    def get(self, key: Windowed) -> ValueAndTimestamp | None:
        """The row of a windowed key, for other nodes that read the table."""
        row: ValueAndTimestamp | None = self.fetch_at(key.key, key.window.start)
        return row

    def row(self, start: int, key_bytes: bytes) -> ValueAndTimestamp | None:
        """As `fetch_at`, by the key's bytes."""
        held = self.rows.get(start, key_bytes)
        return None if held is None else self.holding.give(held)

    def put_row(self, start: int, key_bytes: bytes, value: Any, timestamp: int) -> bool:
        """As `put`, by the key's bytes; false where the window is too old to be written."""
        held = None if value is None else self.holding.hold_row(value, timestamp)
        return self.rows.put(start, key_bytes, held)

    def _change(self, window: Window, key: bytes, data: bytes | None) -> StoreChange:
        if data is None:
            return StoreChange(key, None, None, window)
        return StoreChange(key, *split_timestamp(data), window)


class _ListHolding(Holding):
    """Several serialized values of one key and window, in order of arrival."""

    def hold(self, value: Any) -> Any:
        return (self._encode(value),)

    def give(self, held: Any) -> Any:
        return [self._decode(data) for data in held]

    def write(self, held: Any) -> bytes:
        return join_pieces(held)

    def read(self, data: bytes) -> Any:
        return tuple(pieces(data))


class DuplicatesWindowStore(WindowStore):
    """A window store that keeps every value of a key and window; null values are ignored."""

    def _holding(self, codec: Codec) -> Holding:
        return _ListHolding(codec)

    def put(self, key: Any, value: Any, window_start: int) -> None:
        """Add a value."""
        if value is not None:
            key_bytes = self.encode_key(key)
            before = self.rows.get(window_start, key_bytes) or ()
            self.rows.put(window_start, key_bytes, before + self.holding.hold(value))

    def fetch_at(self, key: Any, start: int) -> Any:
        """The first value of a key in the window with this start, or None."""
        values = super().fetch_at(key, start)
        return None if values is None else values[0]

    def fetch(self, key: Any, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """Start and value of a key's windows between two times, one after the other."""
        return ((start, value) for start, values in super().fetch(key, first, last) for value in values)

    def fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Entries of all keys whose windows start between two times."""
        return ((windowed, value) for windowed, values in super().fetch_all(first, last) for value in values)

    def fetch_key_range(self, low: Any, high: Any, first: int, last: int) -> Iterator[tuple[Windowed, Any]]:
        """Entries of keys between two, whose windows start between two times."""
        found = super().fetch_key_range(low, high, first, last)
        return ((windowed, value) for windowed, values in found for value in values)
