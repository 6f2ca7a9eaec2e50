"""Server-sent events: a stream of small messages that a browser's `EventSource` reads and resumes by itself.

A client that was disconnected reconnects with the id of the last event it saw: `Call.last_event_id`. Start at
`event_stream`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass

from moldau.http.calls import Answer
from moldau.http.negotiation import MediaTypes
from moldau.http.streaming import with_heartbeats

__all__ = ["EVENTS", "Event", "encode_event", "event_stream"]

MEDIA_TYPE = "text/event-stream"
EVENTS = MediaTypes.always(MEDIA_TYPE)
"""The `media_types` of an endpoint that answers with `event_stream`: browsers accept nothing but this type."""
HEARTBEAT = b":\n\n"
"""A comment, which clients ignore."""
DEFAULT_HEARTBEAT_S = 15.0
_LINE_ENDS = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Event:
    data: str
    id: str | None = None
    """What the client sends as `Last-Event-ID` when it reconnects."""
    event: str | None = None
    """The event's name; an event without one is a `message` to clients."""
    retry_ms: int | None = None
    """How long the client waits before it reconnects."""


def encode_event(event: Event) -> bytes:
    """Encode one event. Any text is fine as data; ids and names must fit on their line (`ValueError` otherwise)."""
    lines = []
    if event.event is not None:
        lines.append(f"event: {_one_line(event.event)}")
    if event.id is not None:
        # Clients ignore an id that contains NUL, and would resume at the wrong event.
        lines.append(f"id: {_one_line(event.id, forbidden=chr(0))}")
    if event.retry_ms is not None:
        lines.append(f"retry: {event.retry_ms:d}")
    # The only line endings of the format; `splitlines` knows more and would change the text.
    lines.extend(f"data: {line}" for line in _LINE_ENDS.split(event.data))
    return ("\n".join(lines) + "\n\n").encode()


def event_stream(
    events: AsyncIterable[Event], *, retry_ms: int | None = None, heartbeat_s: float = DEFAULT_HEARTBEAT_S
) -> Answer:
    """An answer that sends events as they arrive, and comments as heartbeats in between.

    `retry_ms` tells the client how long to wait before it reconnects. The source is closed when the client disconnects.
    """
    stream = with_heartbeats(_encode_stream(events, retry_ms), HEARTBEAT, every_s=heartbeat_s)
    # Proxies would otherwise buffer events.
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return Answer(stream=stream, media_type=MEDIA_TYPE, headers=headers, is_endless=True)


async def _encode_stream(events: AsyncIterable[Event], retry_ms: int | None) -> AsyncGenerator[bytes, None]:
    source = aiter(events)
    try:
        if retry_ms is not None:
            yield f"retry: {retry_ms:d}\n\n".encode()
        async for event in source:
            yield encode_event(event)
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()


def _one_line(text: str, forbidden: str = "") -> str:
    if _LINE_ENDS.search(text) or (forbidden and forbidden in text):
        raise ValueError(f"{text!r} does not fit on one line of an event")
    return text
