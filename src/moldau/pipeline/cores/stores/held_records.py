"""The store of unmatched records of a left or outer stream-stream join, which wait for their window to close.

Ordered by timestamp, then side (right before left), then key bytes, which is the order in which they are emitted. Start
at `HeldRecords`; when they are emitted is decided in `pipeline.cores.joins.stream_join`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from typing import Any, NamedTuple

from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.sized_pieces import join_pieces, pieces
from moldau.pipeline.cores.stores.store import Codec, Store, StoreChange

__all__ = ["LEFT", "RIGHT", "HeldRecord", "HeldRecords"]

RIGHT, LEFT = 0, 1

Position = tuple[int, int, bytes]
"""Timestamp, side, key."""

PREFIX = struct.Struct(">qB")


class HeldRecord(NamedTuple):
    """One unmatched record."""

    timestamp: int
    side: int
    key: bytes
    value: Any


class HeldRecords(Store):
    """Values by timestamp, side and key; several at one position are in order of arrival."""

    def __init__(self, name: str, backend: StateBackend, *, left: Codec, right: Codec) -> None:
        super().__init__(name)
        self._backend = backend
        self._encoders = {LEFT: left.encode_value, RIGHT: right.encode_value}
        self._decoders = {LEFT: left.decode_value, RIGHT: right.decode_value}
        self._order: tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]] = ([], [])
        self._values: dict[Position, list[bytes]] = {}
        self._dirty: set[Position] = set()
        for entry, data in backend.items():
            timestamp, side = PREFIX.unpack_from(entry)
            key = entry[PREFIX.size :]
            self._values[timestamp, side, key] = list(pieces(data))
            self._order[side].append((timestamp, key))
        for order in self._order:
            order.sort()

    def __len__(self) -> int:
        return len(self._values)

    def hold(self, side: int, key: bytes, value: Any, timestamp: int) -> None:
        """Hold a record until it is matched or emitted."""
        data = self._encoders[side](value)
        position = (timestamp, side, key)
        values = self._values.get(position)
        if values is None:
            values = self._values[position] = []
            order, place = self._order[side], (timestamp, key)
            if not order or order[-1] < place:
                order.append(place)
            else:
                insort(order, place)
        values.append(data)
        self._dirty.add(position)

    def release(self, side: int, key: bytes, timestamp: int) -> None:
        """Remove the records at a position, since they were matched."""
        position = (timestamp, side, key)
        if self._values and self._values.pop(position, None) is not None:
            order = self._order[side]
            del order[bisect_left(order, (timestamp, key))]
            self._dirty.add(position)

    def take_before(self, left_end: int, right_end: int) -> tuple[list[HeldRecord], int | None]:
        """Remove the left records older than one time and the right ones older than another, and return them in order.

        The second result is the timestamp of the record at which Kafka Streams would stop its search, None where
        nothing was held: it searches for closed windows again only after that record's window has closed.
        """
        if not self._values:
            return [], None
        ends = {LEFT: left_end, RIGHT: right_end}
        first_open = {side: bisect_left(self._order[side], (end, b"")) for side, end in ends.items()}
        stop = self._stop(first_open)
        closed = [
            (timestamp, side, key) for side, count in first_open.items() for timestamp, key in self._order[side][:count]
        ]
        for side, count in first_open.items():
            del self._order[side][:count]
        self._dirty.update(closed)
        taken = [
            HeldRecord(*position, self._decoders[position[1]](data))
            for position in sorted(closed)
            for data in self._values.pop(position)
        ]
        return taken, stop

    def flush(self) -> list[StoreChange]:
        """Write what changed; returns nothing, since the store cannot be queried."""
        for position in self._dirty:
            timestamp, side, key = position
            values = self._values.get(position)
            if values is None:
                self._backend.delete(PREFIX.pack(timestamp, side) + key)
            else:
                self._backend.put(PREFIX.pack(timestamp, side) + key, join_pieces(values))
        self._dirty.clear()
        return []

    def _stop(self, first_open: dict[int, int]) -> int:
        """The timestamp of the record that ends the search.

        That is the one after the first open record of each side, or the last one of all where a side has none open.
        """
        opened = [
            (self._order[side][index][0], side, self._order[side][index][1])
            for side, index in first_open.items()
            if index < len(self._order[side])
        ]
        if len(opened) < 2:
            return max(order[-1][0] for order in self._order if order)
        last = max(opened)
        if len(self._values[last]) > 1:
            return last[0]
        after = [successor for side in (LEFT, RIGHT) if (successor := self._successor(side, last)) is not None]
        return min(after)[0] if after else last[0]

    def _successor(self, side: int, position: Position) -> Position | None:
        """The first record of a side that comes after a position."""
        timestamp, other_side, key = position
        order = self._order[side]
        index = bisect_left(order, (timestamp, key if side == other_side else b""))
        while index < len(order):
            candidate = (order[index][0], side, order[index][1])
            if candidate > position:
                return candidate
            index += 1
        return None
