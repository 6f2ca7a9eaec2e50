"""Streamed answers: JSON lines, arrays and heartbeats, and how they are sent.

A stream ends in one of four ways: its generator ends; its client disconnects, which cancels and closes the generator;
the server stops, which ends endless streams at once; or the generator fails, which aborts the connection, so that
no client takes a partial answer for a complete one. Start at `json_lines` to make one, at `send_stream` for how it is
sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from typing import Any, TypeVar

from starlette.types import Scope, Send

from moldau.core.errors import MoldauError
from moldau.http.calls import Pieces, encode_json
from moldau.http.errors import ClientGoneError
from moldau.http.request_body import RequestBody

__all__ = ["STOPPING", "json_array", "json_lines", "send_stream", "stopping_event", "with_heartbeats"]

STOPPING = "moldau.stopping"
"""The ASGI extension with an `asyncio.Event` that `HttpServer` sets when it begins to stop."""
TURN_S = 0.01
"""How long a stream that never waits may run before it yields to other tasks."""

_logger = logging.getLogger("moldau.http")
T = TypeVar("T")


async def json_lines(documents: AsyncIterable[Any]) -> AsyncGenerator[bytes, None]:
    """One JSON document per line, each sent as soon as it is available."""
    async with _closing(aiter(documents)) as source:
        async for document in source:
            yield encode_json(document) + b"\n"


async def json_array(documents: AsyncIterable[Any]) -> AsyncGenerator[bytes, None]:
    """One JSON array, written element by element, each on a line of its own."""
    async with _closing(aiter(documents)) as source:
        separator = b"["
        async for document in source:
            yield separator + encode_json(document)
            separator = b",\n"
        yield b"]" if separator != b"[" else b"[]"


async def with_heartbeats(pieces: Pieces, heartbeat: bytes, *, every_s: float) -> AsyncGenerator[bytes, None]:
    """The same pieces, and `heartbeat` whenever none came for `every_s`, so that proxies keep the connection open."""
    async with _closing(pieces) as source:
        pending: asyncio.Task[bytes | None] | None = None
        try:
            while True:
                if pending is None:
                    pending = asyncio.ensure_future(_next(source))
                done, _ = await asyncio.wait((pending,), timeout=every_s)
                if not done:
                    yield heartbeat
                    continue
                piece, pending = pending.result(), None
                if piece is None:
                    return
                yield piece
        finally:
            if pending is not None:
                await _cancel(pending)


async def send_stream(pieces: Pieces, *, is_endless: bool, body: RequestBody, scope: Scope, send: Send) -> bool:
    """Send all pieces and the end of the body; returns whether that happened, after closing `pieces` in any case.

    Without the end of the body the server has to abort the connection.
    """
    sending = asyncio.ensure_future(_send_all(pieces, send))
    gone = asyncio.ensure_future(body.wait_until_client_is_gone())
    enders: list[asyncio.Future[Any]] = [sending, gone]
    stopping = stopping_event(scope)
    if is_endless and stopping is not None:
        enders.append(asyncio.ensure_future(stopping.wait()))
    try:
        await asyncio.wait(enders, return_when=asyncio.FIRST_COMPLETED)
        is_gone = gone.done() and not sending.done()
        is_sent = not is_gone and (not sending.done() or sending.exception() is None)
    finally:
        for ender in enders:
            await _cancel(ender)
    if sending.done() and not sending.cancelled():
        _log_failure(sending.exception())
    if is_sent:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    return is_sent


def stopping_event(scope: Scope) -> asyncio.Event | None:
    """The event that is set when the server begins to stop; `None` where no `HttpServer` serves the app."""
    event: asyncio.Event | None = (scope.get("extensions") or {}).get(STOPPING)
    return event


async def _send_all(pieces: Pieces, send: Send) -> None:
    clock = asyncio.get_running_loop().time
    turn_ends = clock() + TURN_S
    async with _closing(pieces) as source:
        async for piece in source:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            if clock() > turn_ends:
                # If neither the generator nor `send` ever waits, a disconnect would not be noticed.
                await asyncio.sleep(0)
                turn_ends = clock() + TURN_S


@contextlib.asynccontextmanager
async def _closing(source: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a generator at the end; other iterators have nothing to close."""
    try:
        yield source
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()


async def _next(source: AsyncIterator[T]) -> T | None:
    return await anext(source, None)


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait for its end; what it raised stays in it."""
    task.cancel()
    await asyncio.wait((task,))


def _log_failure(error: BaseException | None) -> None:
    if error is not None and not isinstance(error, ClientGoneError):
        is_expected = isinstance(error, MoldauError)
        _logger.error("a streamed response failed and ended early: %s", error, exc_info=None if is_expected else error)
