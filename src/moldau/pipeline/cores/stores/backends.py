"""State backends: persistent maps from bytes to bytes, which hold the state of a task.

Stores cache entries in memory and write them to a backend when they are flushed. Spark's state is one backend,
`MemoryBackend` another. Start at `StateBackend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

__all__ = ["Backends", "MemoryBackend", "StateBackend"]


class StateBackend(Protocol):
    """A map that survives the task; reads may be slow, so stores read each key once."""

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever put, so that reads can be skipped."""
        ...

    def get(self, key: bytes, /) -> bytes | None: ...

    def put(self, key: bytes, value: bytes, /) -> None: ...

    def delete(self, key: bytes, /) -> None: ...

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Every entry, in any order. Callers do not write while they iterate."""
        ...


Backends = Callable[[str], StateBackend]
"""The backend of a store, by the store's name."""


class MemoryBackend:
    """A backend that is a dictionary."""

    def __init__(self, entries: Mapping[bytes, bytes] | None = None) -> None:
        self.entries: dict[bytes, bytes] = dict(entries or {})

    @property
    def is_new(self) -> bool:
        return not self.entries

    def get(self, key: bytes, /) -> bytes | None:
        return self.entries.get(key)

    def put(self, key: bytes, value: bytes, /) -> None:
        self.entries[key] = value

    def delete(self, key: bytes, /) -> None:
        self.entries.pop(key, None)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(self.entries.items())
