"""Where the state of a task lives between runs: bytes by bytes.

Stores keep what they work on in memory and write through to a backend when they are flushed. Spark's state is one
backend, `MemoryBackend` another. Start at `StateBackend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

__all__ = ["Backends", "MemoryBackend", "StateBackend"]


class StateBackend(Protocol):
    """A map that survives the task; reads may be slow, so stores ask for a key once."""

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever put: then there is nothing to ask for."""
        ...

    def get(self, key: bytes, /) -> bytes | None: ...

    def put(self, key: bytes, value: bytes, /) -> None: ...

    def delete(self, key: bytes, /) -> None: ...

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Every entry, in any order. Nothing is written while somebody iterates."""
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
