"""Times in requests and answers: ISO-8601 text, milliseconds inside. Start at `parse_timestamp_ms`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moldau.rest.errors import RestError

__all__ = ["parse_timestamp_ms", "render_timestamp"]


def parse_timestamp_ms(text: Any) -> int:
    """Milliseconds since 1970; UTC unless the text names a zone."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        milliseconds = round(moment.timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        raise RestError(400, f"Bad Request: {text!r} is not a time such as 2024-01-01T00:00:00Z.") from None
    if milliseconds < 0:
        raise RestError(400, f"Bad Request: {text!r} is before 1970.")
    return milliseconds


def render_timestamp(milliseconds: int) -> str | None:
    """ISO-8601 in UTC; `None` for a record without a time."""
    if milliseconds < 0:
        return None
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")
