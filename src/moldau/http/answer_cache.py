"""A cache of answers, valid for as long as the state they were made from. Start at `AnswerCache`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from starlette.responses import Response

__all__ = ["AnswerCache", "CachedAnswer"]

MAX_BYTES = 64 * 1024 * 1024
"""Requests and answers together; when exceeded the cache is cleared, which is cheaper than tracking the oldest."""
MAX_ENTRY_BYTES = 256 * 1024
ENTRY_OVERHEAD_BYTES = 1024


class CachedAnswer(NamedTuple):
    state_token: Hashable
    response: Response


class AnswerCache:
    """Answers by request, each with the token of the state it was made from; it is stale when the token has changed."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, CachedAnswer] = {}
        self._bytes = 0

    def find(self, request: Hashable, state_token: Hashable) -> Response | None:
        cached = self._answers.get(request)
        return cached.response if cached is not None and cached.state_token == state_token else None

    def store(self, request: Hashable, answer: CachedAnswer, size: int) -> None:
        """`size` is the approximate size of request and answer in bytes."""
        if size > MAX_ENTRY_BYTES:
            return
        if request not in self._answers:
            self._bytes += size + ENTRY_OVERHEAD_BYTES
        if self._bytes > MAX_BYTES:
            self._answers.clear()
            self._bytes = size + ENTRY_OVERHEAD_BYTES
        self._answers[request] = answer
