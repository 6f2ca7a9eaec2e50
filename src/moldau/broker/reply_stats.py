"""Accounting for a reply: which errors it carries and how long it took. The hot paths do their own.

Start at `note_reply`.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

from moldau.broker.stats import RequestStats

if TYPE_CHECKING:
    from moldau.protocol.messages import Message

__all__ = ["note_reply"]


def note_reply(stats: RequestStats, response: Message, started_s: float) -> None:
    """Count every error in the reply, however deep it lies, and keep its time."""
    for code in _error_codes(response):
        stats.errors[code] += 1
    stats.recent_total_ms.append((perf_counter() - started_s) * 1000)


def _error_codes(message: Message) -> Iterator[int]:
    for name, value in vars(message).items():
        if name == "error_code":
            if value:
                yield int(value)
        elif isinstance(value, list) and value and hasattr(value[0], "__dict__"):
            for inner in value:
                yield from _error_codes(inner)
