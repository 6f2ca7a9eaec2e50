"""Answers that are given again for as long as nothing has changed. Start at `KeptAnswers`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from starlette.responses import Response

__all__ = ["KeptAnswer", "KeptAnswers"]

MAX_BYTES = 64 * 1024 * 1024
"""Of requests and answers together; beyond it all are forgotten, which costs less than knowing the oldest."""
MAX_ENTRY_BYTES = 256 * 1024
ENTRY_OVERHEAD_BYTES = 1024


class KeptAnswer(NamedTuple):
    token: Hashable
    path: str
    response: Response


class KeptAnswers:
    """Answers by request. Each goes with a token of the moment it was made; another token makes it stale."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, KeptAnswer] = {}
        self._bytes = 0

    def find(self, request: Hashable) -> KeptAnswer | None:
        return self._kept.get(request)

    def keep(self, request: Hashable, answer: KeptAnswer, size: int) -> None:
        """`size` is what the request and the answer take, roughly."""
        if size > MAX_ENTRY_BYTES:
            return
        if request not in self._kept:
            self._bytes += size + ENTRY_OVERHEAD_BYTES
        if self._bytes > MAX_BYTES:
            self._kept.clear()
            self._bytes = size + ENTRY_OVERHEAD_BYTES
        self._kept[request] = answer
