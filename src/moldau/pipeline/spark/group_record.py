"""What a group leaves behind with each batch, in one entry of Spark's state: its stamp, its cells, the stores in use.

Opening a map of Spark's state takes a worker as long as all it does for one record, so that there is none for these.
Start at `GroupRecord`.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moldau.pipeline.cores.stores.backends import MemoryBackend
from moldau.pipeline.spark.plan import Unit
from moldau.pipeline.spark.state import Backend

__all__ = ["RECORD_KEY", "STORE_PREFIX", "GroupRecord"]

RECORD_KEY = b"r"
STORE_PREFIX = b"s"
"""Keys of stores may be anything, so they all begin with this."""

_MARK_SIZE = 16


class GroupRecord(NamedTuple):
    """What is known of a group after a batch."""

    mark: bytes
    """Another one after each batch."""
    filled: frozenset[bytes]
    """The stores that something was ever put into; new tasks need not ask for what is in the others."""
    cells: Mapping[Unit, Mapping[bytes, bytes]]

    @classmethod
    def of(cls, backends: Iterable[Backend], cells: Mapping[Unit, MemoryBackend]) -> GroupRecord:
        """That of a batch which has just been done."""
        filled = frozenset(backend.identity for backend in backends if not backend.is_new)
        return cls(os.urandom(_MARK_SIZE), filled, {unit: backend.entries for unit, backend in cells.items()})

    @classmethod
    def read(cls, data: bytes | None) -> GroupRecord:
        """The last batch's; an empty one where there was none."""
        if data is None:
            return cls(b"", frozenset(), {})
        mark, filled, cells = pickle.loads(data)
        return cls(mark, frozenset(filled), {Unit(*unit): entries for unit, entries in cells.items()})

    def written(self) -> bytes:
        cells = {(unit.piece, unit.partition): dict(entries) for unit, entries in self.cells.items()}
        return pickle.dumps((self.mark, sorted(self.filled), cells))
