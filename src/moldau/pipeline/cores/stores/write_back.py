"""The cache in front of a state backend: reads ask the backend once per key, writes wait for a flush.

What the cache holds is up to the store above it (`held`): an object where objects are immutable, bytes otherwise; two
functions turn it into a backend's bytes and back. Start at `WriteBack`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from moldau.pipeline.cores.stores.backends import StateBackend

__all__ = ["DEFAULT_CAPACITY", "WriteBack"]

DEFAULT_CAPACITY = 2_000_000
"""How many entries a store keeps in memory between flushes; beyond it, it forgets those it has known longest."""

_UNKNOWN = object()


class WriteBack:
    """Entries by key bytes; None stands for an entry known to be absent."""

    __slots__ = ("_backend", "_capacity", "_decode", "_encode", "_is_complete", "dirty", "entries")

    def __init__(
        self,
        backend: StateBackend,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes], Any],
        capacity: int = DEFAULT_CAPACITY,
    ) -> None:
        self.entries: dict[bytes, Any] = {}
        self.dirty: set[bytes] = set()
        self._backend = backend
        self._encode = encode
        self._decode = decode
        self._capacity = capacity
        self._is_complete = backend.is_new

    def get(self, key: bytes) -> Any:
        """What is held for the key, or None."""
        held = self.entries.get(key, _UNKNOWN)
        return self._load(key) if held is _UNKNOWN else held

    def put(self, key: bytes, held: Any) -> None:
        """Hold a value, or with None delete the entry."""
        self.entries[key] = held
        self.dirty.add(key)

    def sorted_items(self) -> list[tuple[bytes, Any]]:
        """Every entry in byte order of keys; reads the whole backend the first time."""
        self.load_all()
        return sorted((item for item in self.entries.items() if item[1] is not None), key=lambda item: item[0])

    def load_all(self) -> None:
        """Bring everything the backend knows into memory."""
        if self._is_complete:
            return
        entries = self.entries
        for key, data in self._backend.items():
            if key not in entries:
                entries[key] = self._decode(data)
        self._is_complete = True

    def flush(self) -> list[tuple[bytes, bytes | None]]:
        """Write what changed to the backend, and return it."""
        if not self.dirty:
            return []
        backend, entries, encode = self._backend, self.entries, self._encode
        written: list[tuple[bytes, bytes | None]] = []
        for key in self.dirty:
            held = entries[key]
            if held is None:
                backend.delete(key)
                del entries[key]
                written.append((key, None))
            else:
                data = encode(held)
                backend.put(key, data)
                written.append((key, data))
        self.dirty.clear()
        self._forget_what_is_too_much()
        return written

    def _load(self, key: bytes) -> Any:
        if self._is_complete:
            return None
        data = self._backend.get(key)
        held = None if data is None else self._decode(data)
        self.entries[key] = held
        return held

    def _forget_what_is_too_much(self) -> None:
        if len(self.entries) > self._capacity:
            for key in list(islice(self.entries, len(self.entries) // 2)):
                del self.entries[key]
            self._is_complete = False
