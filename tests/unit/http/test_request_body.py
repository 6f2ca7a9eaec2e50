"""A body is read whole by its handler, while somebody else waits for the client to go away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.http.errors import ClientGoneError, HttpError
from moldau.http.request_body import RequestBody


class Client:
    """An ASGI `receive` that is told what comes."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def receive(self) -> dict[str, Any]:
        return await self.messages.get()

    def send(self, *pieces: bytes, is_end: bool = True) -> None:
        for number, piece in enumerate(pieces, 1):
            has_more = not is_end or number < len(pieces)
            self.messages.put_nowait({"type": "http.request", "body": piece, "more_body": has_more})

    def leave(self) -> None:
        self.messages.put_nowait({"type": "http.disconnect"})

    def body(self, *, max_bytes: int = 1000, idle_s: float | None = 20.0, is_stream: bool = True) -> RequestBody:
        return RequestBody(self.receive, max_bytes=max_bytes, idle_s=idle_s, is_stream=is_stream)


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6))
def test_a_body_is_read_whole_in_every_order_of_sending_reading_and_watching(
    plan: list[tuple[bytes, int, int]],
) -> None:
    async def story() -> None:
        client = Client()
        body = client.body()
        gone = asyncio.ensure_future(body.wait_until_client_is_gone())
        read = b""

        async def send() -> None:
            for number, (piece, wait, _) in enumerate(plan, 1):
                await steps(wait)
                client.send(piece, is_end=number == len(plan))

        sending = asyncio.ensure_future(send())
        pauses = iter([pause for _, _, pause in plan] + [0] * 10)
        async with asyncio.timeout(20):
            async for piece in body.pieces():
                read += piece
                await steps(next(pauses))
            await sending
            assert read == b"".join(piece for piece, _, _ in plan)
            assert not gone.done()
            client.leave()
            await gone

    asyncio.run(story())


def test_only_one_piece_is_held_back_for_a_handler_that_does_not_read() -> None:
    async def story() -> int:
        client = Client()
        client.send(*[b"x"] * 10)
        watching = asyncio.ensure_future(client.body().wait_until_client_is_gone())
        await steps(50)
        watching.cancel()
        return client.messages.qsize()

    assert asyncio.run(story()) == 9


def test_the_rest_of_a_body_that_is_no_stream_is_thrown_away() -> None:
    async def story() -> None:
        client = Client()
        client.send(*[b"x"] * 10)
        client.leave()
        async with asyncio.timeout(20):
            await client.body(is_stream=False).wait_until_client_is_gone()

    asyncio.run(story())


@pytest.mark.parametrize("is_watched", [False, True])
def test_silence_has_its_limit_also_while_somebody_watches(is_watched: bool) -> None:
    async def story() -> int:
        client = Client()
        body = client.body(idle_s=0.01)
        watching = asyncio.ensure_future(body.wait_until_client_is_gone()) if is_watched else None
        await steps(3)
        client.send(b"half", is_end=False)
        try:
            async with asyncio.timeout(20):
                [piece async for piece in body.pieces()]
        except HttpError as error:
            return error.status
        finally:
            if watching is not None:
                watching.cancel()
        return 0

    assert asyncio.run(story()) == 408


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_client_that_leaves_half_a_body_is_an_error_for_its_reader(is_watched: bool) -> None:
    async def story() -> None:
        client = Client()
        body = client.body()
        client.send(b"half", is_end=False)
        client.leave()
        watching = asyncio.ensure_future(body.wait_until_client_is_gone()) if is_watched else None
        await steps(3)
        with pytest.raises(ClientGoneError):
            [piece async for piece in body.pieces()]
        if watching is not None:
            await watching

    asyncio.run(story())


def test_the_limit_is_for_all_pieces_together() -> None:
    async def story() -> None:
        client = Client()
        client.send(b"x" * 600, b"y" * 600)
        with pytest.raises(HttpError, match="larger than 1000 bytes"):
            [piece async for piece in client.body().pieces()]

    asyncio.run(story())
