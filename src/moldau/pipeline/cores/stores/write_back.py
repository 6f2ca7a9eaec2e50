"""The write-back cache of a state backend: each key is read from the backend once, writes wait for a flush.

The store decides the form of cached values (`held`): an object where objects are immutable, bytes otherwise; two
functions convert it to the backend's bytes and back. Start at `WriteBack`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from moldau.pipeline.cores.stores.backends import StateBackend

__all__ = ["DEFAULT_CAPACITY", "WriteBack"]

DEFAULT_CAPACITY = 2_000_000
"""How many entries a store keeps in memory between flushes; beyond that, the oldest are evicted."""

_UNKNOWN = object()


class WriteBack:
    """Entries by key bytes; None means that the backend has no such entry."""

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
        """The held value of the key, or None."""
        held = self.entries.get(key, _UNKNOWN)
        return self._load(key) if held is _UNKNOWN else held

    def put(self, key: bytes, held: Any) -> None:
        """Set a held value, or delete the entry with None."""
        self.entries[key] = held
        self.dirty.add(key)

    def sorted_items(self) -> list[tuple[bytes, Any]]:
        """Every entry in byte order of keys; reads the whole backend the first time."""
        self.load_all()
        return sorted((item for item in self.entries.items() if item[1] is not None), key=lambda item: item[0])

    def load_all(self) -> None:
        """Read the whole backend into memory."""
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
        self._evict()
        return written

    def _load(self, key: bytes) -> Any:
        if self._is_complete:
            return None
        data = self._backend.get(key)
        held = None if data is None else self._decode(data)
        self.entries[key] = held
        return held

    def _evict(self) -> None:
        if len(self.entries) > self._capacity:
            for key in list(islice(self.entries, len(self.entries) // 2)):
                del self.entries[key]
            self._is_complete = False
