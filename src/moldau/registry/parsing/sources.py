"""LRU cache of parsed schemas by text and references.

Parsing is the expensive part of every request with a schema, so the same text with the same references is parsed once
while it is cached. Thread-safe. Start at `ParsedSources.parse`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from moldau.schemas.schema import ParsedSchema, parse

__all__ = ["ParsedSources", "Source"]

MAX_CHARACTERS = 16 * 1024 * 1024
"""Maximum total length of the cached schemas' texts; the parsed schemas take about ten times as much."""


class Source(NamedTuple):
    """Everything a parsed schema depends on; the cache key."""

    schema_type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()
    """Names and texts of all direct and indirect references, each after its own references."""
    is_new: bool = True
    """Whether its defaults are validated; those of a stored schema are not."""


class ParsedSources:
    def __init__(self, capacity: int = 2000) -> None:
        self._capacity = capacity
        self._characters = 0
        self._kept: OrderedDict[Source, ParsedSchema] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, source: Source) -> bool:
        return source in self._kept

    def parse(self, source: Source) -> ParsedSchema:
        """The parsed schema, from the cache if possible; raises `SchemaError`."""
        with self._lock:
            parsed = self._kept.get(source)
            if parsed is not None:
                self._kept.move_to_end(source)
                return parsed
        parsed = parse(source.schema_type, source.text, dict(source.references), validate=source.is_new)
        with self._lock:
            self._keep(source, parsed)
        return parsed

    def _keep(self, source: Source, parsed: ParsedSchema) -> None:
        if source not in self._kept:
            self._characters += len(source.text)
        self._kept[source] = parsed
        while len(self._kept) > self._capacity or (self._characters > MAX_CHARACTERS and len(self._kept) > 1):
            gone, _ = self._kept.popitem(last=False)
            self._characters -= len(gone.text)
