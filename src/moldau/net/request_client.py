"""Requests of this node to another one: one connection, one request at a time, never blocking the event loop.

The connection is opened when first needed and again after a failure; every step has a deadline. Any trouble on the
way is an `OSError` (a `TimeoutError` is one) or a `MalformedResponseError`, after which the next request starts over.
Start at `RequestClient.send`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from moldau.protocol.api import (
    APIS,
    ApiKey,
    MalformedResponseError,
    decode_response_header,
    encode_request_header,
)
from moldau.protocol.messages import Message, decode_response, encode_request

__all__ = ["RequestClient"]

RESPONSE_LIMIT_BYTES: Final = 8 * 1024 * 1024


class RequestClient:
    def __init__(self, host: str, port: int, *, client_id: str, timeout_s: float = 5.0) -> None:
        self.address = f"{host}:{port}"
        self._host, self._port = host, port
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._ranges: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0
        self._turn = asyncio.Lock()

    async def send(self, api_key: ApiKey, request: Message) -> Message:
        """Ask in the highest version both sides know. Errors within the answer are the caller's to judge."""
        async with self._turn:
            try:
                async with asyncio.timeout(self._timeout_s):
                    if self._streams is None:
                        await self._connect()
                    return await self._exchange(api_key, self._version_for(api_key), request)
            except TimeoutError:
                self.close()
                raise TimeoutError(f"{self.address} did not answer within {self._timeout_s:g} s") from None
            except asyncio.IncompleteReadError:
                self.close()
                raise ConnectionResetError(f"{self.address} closed the connection") from None
            except BaseException:
                # Also when cancelled: an answer that comes later must not be taken for another's.
                self.close()
                raise

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _connect(self) -> None:
        self._streams = await asyncio.open_connection(self._host, self._port)
        reply = await self._exchange(ApiKey.API_VERSIONS, 0, Message())
        self._ranges = {one.api_key: (one.min_version, one.max_version) for one in reply.api_keys}

    def _version_for(self, api_key: ApiKey) -> int:
        known, offered = APIS[api_key], self._ranges.get(api_key)
        version = -1 if offered is None else min(known.last, offered[1])
        if offered is None or version < max(known.first, offered[0]):
            raise MalformedResponseError(f"{self.address} does not offer {api_key.display_name}")
        return version

    async def _exchange(self, api_key: ApiKey, version: int, request: Message) -> Message:
        assert self._streams is not None
        reader, writer = self._streams
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = encode_request_header(api_key, version, self._correlation_id, self._client_id)
        frame += encode_request(api_key, version, request)
        writer.write(len(frame).to_bytes(4, "big") + frame)
        await writer.drain()
        size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
        if not 4 <= size <= RESPONSE_LIMIT_BYTES:
            raise MalformedResponseError(f"{self.address} does not speak Kafka's protocol")
        answer = await reader.readexactly(size)
        correlation_id, position = decode_response_header(api_key, version, answer)
        if correlation_id != self._correlation_id:
            raise MalformedResponseError(f"{self.address} answered request {correlation_id}, not this one")
        return decode_response(api_key, version, memoryview(answer)[position:])
