"""From a frame to the handler of its API: a table, two hot entries, one way for all the rest.

Produce and Fetch read their frames themselves; every other API gets a decoded `Message` and returns one.
Handler modules are imported when first asked for, which keeps start-up short. Start at `Router.handle`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import struct
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from moldau.broker.context import Broker, RequestContext
from moldau.net.replies import CloseConnectionError, Handled, ReplySlot
from moldau.protocol.api import ApiKey, MalformedRequestError, first_flexible_version, response_header_version

if TYPE_CHECKING:
    from moldau.net.connection import Connection
    from moldau.protocol.messages import Message

__all__ = ["ROUTES", "ApiRange", "Route", "Router", "announced"]

log = logging.getLogger(__name__)

HANDLERS_PACKAGE = "moldau.broker.handlers"
NEVER_FLEXIBLE = 0x7FFF

Handle = Callable[["Message", RequestContext, Broker], "Message | Awaitable[Message]"]
FrameHandler = Callable[["Connection", memoryview, int, int, int, int, int], Handled]
"""`(connection, buffer, start, body, end, version, correlation_id)`: the request header begins at `start`."""


class Route(NamedTuple):
    """Where an API is handled and in which versions."""

    module: str
    first: int
    last: int
    announced_first: int | None = None
    """Lower bound told to clients where it differs: old librdkafka compresses only if Produce starts at 0."""


class ApiRange(NamedTuple):
    api_key: int
    min_version: int
    max_version: int


ROUTES: dict[int, Route] = {
    0: Route("api_00_produce", 3, 13, announced_first=0),
    1: Route("api_01_fetch", 4, 18),
    2: Route("api_02_list_offsets", 1, 11),
    3: Route("api_03_metadata", 0, 13),
    10: Route("api_10_find_coordinator", 0, 6),
    18: Route("api_18_api_versions", 0, 4),
    19: Route("api_19_create_topics", 2, 7),
    20: Route("api_20_delete_topics", 1, 6),
    21: Route("api_21_delete_records", 0, 2),
    22: Route("api_22_init_producer_id", 0, 5),
    23: Route("api_23_offset_for_leader_epoch", 2, 4),
    32: Route("api_32_describe_configs", 1, 4),
    33: Route("api_33_alter_configs", 0, 2),
    35: Route("api_35_describe_log_dirs", 1, 4),
    37: Route("api_37_create_partitions", 0, 3),
    44: Route("api_44_incremental_alter_configs", 0, 1),
    60: Route("api_60_describe_cluster", 0, 2),
    74: Route("api_74_list_config_resources", 0, 1),
    75: Route("api_75_describe_topic_partitions", 0, 0),
}
"""Every API this broker has a handler for, and nothing else: clients are told what stands here."""


def announced() -> Iterator[ApiRange]:
    """What ApiVersions tells clients, in the order of the keys."""
    for key, route in sorted(ROUTES.items()):
        first = route.first if route.announced_first is None else route.announced_first
        yield ApiRange(key, first, route.last)


_HEADER = struct.Struct(">hhih")
"""Request header up to the length of the client id."""
_REPLY_V0 = struct.Struct(">ii")
_REPLY_V1 = struct.Struct(">iib")
_API_VERSIONS = ApiKey.API_VERSIONS.value


class Router:
    """Hands each frame of each connection to its handler. One per broker, used on the loop only."""

    def __init__(self, broker: Broker, *, produce: FrameHandler, fetch: FrameHandler) -> None:
        self._broker = broker
        self._hot: dict[int, tuple[FrameHandler, int, int, int, Any]] = {
            key: (
                handler,
                ROUTES[key].first,
                ROUTES[key].last,
                first_flexible_version(key),
                broker.stats.of(key).by_version,
            )
            for key, handler in ((0, produce), (1, fetch))
        }
        self._handles: dict[int, Handle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, connection: Connection, view: memoryview, start: int, end: int) -> Handled:
        """Handle the frame in `view[start:end]`; raises `CloseConnectionError` where there is no answer."""
        try:
            api_key, version, correlation_id, client_id_length = _HEADER.unpack_from(view, start)
            body = start + 10
            if client_id_length > 0:
                body += client_id_length
            hot = self._hot.get(api_key)
            if hot is None:
                return self._handle_message(connection, view, start, body, end)
            handler, first, last, first_flexible, by_version = hot
            if version >= first_flexible:
                body = body + 1 if view[body] == 0 else _after_tags(view, body, end)
            if version < first or version > last or body > end:
                raise CloseConnectionError(f"{ApiKey(api_key).name} version {version} is not spoken here")
            by_version[version] += 1
            return handler(connection, view, start, body, end, version, correlation_id)
        except (MalformedRequestError, struct.error, IndexError) as error:
            raise CloseConnectionError(f"malformed request: {error}") from error

    def _handle_message(self, connection: Connection, view: memoryview, start: int, body: int, end: int) -> Handled:
        from moldau.protocol.messages import Message, decode_request

        api_key, version, correlation_id, client_id_length = _HEADER.unpack_from(view, start)
        route = ROUTES.get(api_key)
        if route is None:
            raise CloseConnectionError(f"unknown or unsupported API key {api_key}")
        self._broker.stats.of(api_key).by_version[version] += 1
        call = RequestContext(
            api_key,
            version,
            correlation_id,
            _client_id(view, start, client_id_length, end),
            connection.listener_name,
            connection.peer_host,
        )
        if version < route.first or version > route.last:
            if api_key != _API_VERSIONS:
                raise CloseConnectionError(f"{ApiKey(api_key).name} version {version} is not spoken here")
            # ApiVersions alone answers a version it does not know: in version 0, which every client reads.
            return self._answer(connection, Message(), call, encode_version=0)
        if version >= first_flexible_version(api_key):
            body = _after_tags(view, body, end)
        if body > end:
            raise MalformedRequestError("the request header is longer than its frame")
        request = decode_request(api_key, version, view[body:end])
        return self._answer(connection, request, call, encode_version=version)

    def _answer(
        self, connection: Connection, request: Message, call: RequestContext, *, encode_version: int
    ) -> Handled:
        outcome = self._handle_of(call.api_key)(request, call, self._broker)
        if not inspect.isawaitable(outcome):
            return encode_reply(call.api_key, encode_version, call.correlation_id, cast("Message", outcome))
        slot = ReplySlot(connection, holds_back=True)
        task = asyncio.ensure_future(self._answer_later(slot, outcome, call))
        slot.on_close = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return slot

    async def _answer_later(self, slot: ReplySlot, outcome: Awaitable[Message], call: RequestContext) -> None:
        try:
            response = await outcome
            reply = encode_reply(call.api_key, call.api_version, call.correlation_id, response)
        except Exception:
            log.exception("%s version %d failed", ApiKey(call.api_key).name, call.api_version)
            slot.abandon()
            return
        slot.complete(reply)

    def _handle_of(self, api_key: int) -> Handle:
        handle = self._handles.get(api_key)
        if handle is None:
            module = importlib.import_module(f"{HANDLERS_PACKAGE}.{ROUTES[api_key].module}")
            handle = self._handles[api_key] = module.handle
        return handle


def encode_reply(api_key: int, version: int, correlation_id: int, response: Message) -> bytes:
    """A whole frame: length, response header of the right version, body."""
    from moldau.protocol.messages import encode_response

    body = encode_response(api_key, version, response)
    if response_header_version(api_key, version) == 0:
        return _REPLY_V0.pack(len(body) + 4, correlation_id) + body
    return _REPLY_V1.pack(len(body) + 5, correlation_id, 0) + body


def _client_id(view: memoryview, start: int, length: int, end: int) -> str | None:
    if length < 0:
        return None
    if start + 10 + length > end:
        raise MalformedRequestError("the client id is longer than its frame")
    try:
        return str(view[start + 10 : start + 10 + length], "utf-8")
    except UnicodeDecodeError as error:
        raise MalformedRequestError("the client id is not UTF-8") from error


def _after_tags(view: memoryview, position: int, end: int) -> int:
    """Skip the tagged fields of a flexible request header; none are known."""
    count, position = _uvarint(view, position, end)
    for _ in range(count):
        _, position = _uvarint(view, position, end)
        length, position = _uvarint(view, position, end)
        position += length
        if position > end:
            raise MalformedRequestError("a tagged field is longer than its frame")
    return position


def _uvarint(view: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 35:
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise MalformedRequestError("a varint runs past its frame or is longer than five bytes")
