"""Single values that a task remembers between batches and restarts: stream times and the like."""

from __future__ import annotations

import json
from typing import Any

from moldau.pipeline.cores.stores.backends import StateBackend

__all__ = ["Cell", "opened_cell"]


class Cell:
    """One value that survives restarts; anything JSON can write."""

    __slots__ = ("_saved", "name", "value")

    value: Any

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value
        self._saved = value

    def flush(self, backend: StateBackend) -> None:
        """Write the value if it is another than last time."""
        if self.value != self._saved:
            backend.put(self.name.encode(), json.dumps(self.value).encode())
            self._saved = self.value


def opened_cell(name: str, default: Any, backend: StateBackend) -> Cell:
    """A cell as it was left, or with its default."""
    data = backend.get(name.encode())
    return Cell(name, default) if data is None else Cell(name, json.loads(data))
