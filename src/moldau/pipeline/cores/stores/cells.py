"""Persistent scalars of a task, such as stream times."""

from __future__ import annotations

import json
from typing import Any

from moldau.pipeline.cores.stores.backends import StateBackend

__all__ = ["Cell", "open_cell"]


class Cell:
    """One value that survives restarts; it must be serializable as JSON."""

    __slots__ = ("_saved", "name", "value")

    value: Any

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value
        self._saved = value

    def flush(self, backend: StateBackend) -> None:
        """Write the value if it has changed since the last flush."""
        if self.value != self._saved:
            backend.put(self.name.encode(), json.dumps(self.value).encode())
            self._saved = self.value


def open_cell(name: str, default: Any, backend: StateBackend) -> Cell:
    """A cell with its stored value, or with its default."""
    data = backend.get(name.encode())
    return Cell(name, default) if data is None else Cell(name, json.loads(data))
