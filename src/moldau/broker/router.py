"""Routing from a frame to the handler of its API: one table, special cases for Produce and Fetch.

Produce and Fetch parse their frames themselves; every other handler gets a decoded `Message` and returns one. Handler
modules are imported on first use, which keeps startup short. Start at `Router.handle`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import struct
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, cast

from moldau.broker.context import Broker, RequestContext
from moldau.broker.stats import note_reply
from moldau.core.acls import AclOperation, Permission, ResourceType
from moldau.net.replies import CloseConnectionError, Handled, ReplySlot
from moldau.protocol.api import (
    APIS,
    ApiKey,
    MalformedRequestError,
    decode_request_header,
    encode_response_header,
)
from moldau.protocol.hot_fields import after_tags

if TYPE_CHECKING:
    from moldau.net.connection import Connection
    from moldau.protocol.messages import EncodedResponse, Message

__all__ = ["ROUTES", "ApiRange", "Route", "Router", "announced_ranges"]

log = logging.getLogger(__name__)

SAMPLED_BY = 63
"""Produces and fetches are timed when these bits of their correlation id are zero: one in 64."""

HANDLERS_PACKAGE = "moldau.broker.handlers"

Handle = Callable[
    ["Message", RequestContext, Broker], "Message | EncodedResponse | Awaitable[Message | EncodedResponse]"
]
FrameHandler = Callable[["Connection", memoryview, int, int, int, int, int], Handled]
"""`(connection, buffer, start, body, end, version, correlation_id)`: the request header begins at `start`."""


class Route(NamedTuple):
    """The handler of an API, its versions, and the permissions it needs."""

    module: str
    first: int
    last: int
    permissions: tuple[Permission, ...]
    """Every permission that a request of this API may need, the usual one first; empty if none is needed.

    Nothing reads them yet, as there is no authorizer; a test keeps the table complete. Which of them a request needs
    depends on the request: a follower's fetch needs CLUSTER_ACTION in place of READ, and only a transactional produce
    needs the transactional id.
    """
    announced_first: int | None = None
    """The lowest version announced, if it differs: old librdkafka compresses only if Produce starts at 0."""


class ApiRange(NamedTuple):
    api_key: int
    min_version: int
    max_version: int


WRITE_TOPIC = Permission(AclOperation.WRITE, ResourceType.TOPIC)
READ_TOPIC = Permission(AclOperation.READ, ResourceType.TOPIC)
DESCRIBE_TOPIC = Permission(AclOperation.DESCRIBE, ResourceType.TOPIC)
CREATE_TOPIC = Permission(AclOperation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC = Permission(AclOperation.DELETE, ResourceType.TOPIC)
ALTER_TOPIC = Permission(AclOperation.ALTER, ResourceType.TOPIC)
READ_GROUP = Permission(AclOperation.READ, ResourceType.GROUP)
DESCRIBE_GROUP = Permission(AclOperation.DESCRIBE, ResourceType.GROUP)
DELETE_GROUP = Permission(AclOperation.DELETE, ResourceType.GROUP)
WRITE_TRANSACTIONAL_ID = Permission(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTIONAL_ID = Permission(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
CREATE_CLUSTER = Permission(AclOperation.CREATE, ResourceType.CLUSTER)
DESCRIBE_CLUSTER = Permission(AclOperation.DESCRIBE, ResourceType.CLUSTER)
ALTER_CLUSTER = Permission(AclOperation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CONFIGS_CLUSTER = Permission(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
CLUSTER_ACTION = Permission(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
IDEMPOTENT_WRITE = Permission(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
_CONFIGURABLE = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
DESCRIBE_CONFIGS = tuple(Permission(AclOperation.DESCRIBE_CONFIGS, one) for one in _CONFIGURABLE)
ALTER_CONFIGS = tuple(Permission(AclOperation.ALTER_CONFIGS, one) for one in _CONFIGURABLE)
OPEN: tuple[Permission, ...] = ()
"""No permission needed. DescribeCluster is open on a broker; only its field of authorized operations is not."""

ROUTES: dict[int, Route] = {
    0: Route("api_00_produce", 3, 13, (WRITE_TOPIC, WRITE_TRANSACTIONAL_ID), announced_first=0),
    1: Route("api_01_fetch", 4, 18, (READ_TOPIC, CLUSTER_ACTION)),
    2: Route("api_02_list_offsets", 1, 11, (DESCRIBE_TOPIC,)),
    3: Route("api_03_metadata", 0, 13, (DESCRIBE_TOPIC, CREATE_CLUSTER, CREATE_TOPIC)),
    8: Route("api_08_offset_commit", 2, 10, (READ_GROUP, READ_TOPIC)),
    9: Route("api_09_offset_fetch", 1, 10, (DESCRIBE_GROUP, DESCRIBE_TOPIC)),
    10: Route("api_10_find_coordinator", 0, 6, (DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID)),
    11: Route("api_11_join_group", 0, 9, (READ_GROUP,)),
    12: Route("api_12_heartbeat", 0, 4, (READ_GROUP,)),
    13: Route("api_13_leave_group", 0, 5, (READ_GROUP,)),
    14: Route("api_14_sync_group", 0, 5, (READ_GROUP,)),
    15: Route("api_15_describe_groups", 0, 6, (DESCRIBE_GROUP,)),
    16: Route("api_16_list_groups", 0, 5, (DESCRIBE_CLUSTER, DESCRIBE_GROUP)),
    18: Route("api_18_api_versions", 0, 4, OPEN),
    19: Route("api_19_create_topics", 2, 7, (CREATE_CLUSTER, CREATE_TOPIC)),
    20: Route("api_20_delete_topics", 1, 6, (DELETE_TOPIC,)),
    21: Route("api_21_delete_records", 0, 2, (DELETE_TOPIC,)),
    22: Route("api_22_init_producer_id", 0, 5, (WRITE_TRANSACTIONAL_ID, IDEMPOTENT_WRITE, WRITE_TOPIC)),
    23: Route("api_23_offset_for_leader_epoch", 2, 4, (DESCRIBE_TOPIC, CLUSTER_ACTION)),
    24: Route("api_24_add_partitions_to_txn", 0, 5, (WRITE_TRANSACTIONAL_ID, WRITE_TOPIC, CLUSTER_ACTION)),
    25: Route("api_25_add_offsets_to_txn", 0, 4, (WRITE_TRANSACTIONAL_ID, READ_GROUP)),
    26: Route("api_26_end_txn", 0, 5, (WRITE_TRANSACTIONAL_ID,)),
    27: Route("api_27_write_txn_markers", 1, 2, (CLUSTER_ACTION, ALTER_CLUSTER)),
    28: Route("api_28_txn_offset_commit", 0, 5, (WRITE_TRANSACTIONAL_ID, READ_GROUP, READ_TOPIC)),
    32: Route("api_32_describe_configs", 1, 4, DESCRIBE_CONFIGS),
    33: Route("api_33_alter_configs", 0, 2, ALTER_CONFIGS),
    35: Route("api_35_describe_log_dirs", 1, 4, (DESCRIBE_CLUSTER,)),
    37: Route("api_37_create_partitions", 0, 3, (ALTER_TOPIC,)),
    42: Route("api_42_delete_groups", 0, 2, (DELETE_GROUP,)),
    43: Route("api_43_elect_leaders", 0, 2, (ALTER_CLUSTER,)),
    44: Route("api_44_incremental_alter_configs", 0, 1, ALTER_CONFIGS),
    45: Route("api_45_alter_partition_reassignments", 0, 1, (ALTER_CLUSTER,)),
    46: Route("api_46_list_partition_reassignments", 0, 0, (DESCRIBE_CLUSTER,)),
    47: Route("api_47_offset_delete", 0, 0, (DELETE_GROUP, READ_TOPIC)),
    55: Route("api_55_describe_quorum", 0, 2, (DESCRIBE_CLUSTER,)),
    60: Route("api_60_describe_cluster", 0, 2, OPEN),
    61: Route("api_61_describe_producers", 0, 0, (READ_TOPIC,)),
    64: Route("api_64_unregister_broker", 0, 0, (ALTER_CLUSTER,)),
    65: Route("api_65_describe_transactions", 0, 0, (DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC)),
    66: Route("api_66_list_transactions", 0, 2, (DESCRIBE_TRANSACTIONAL_ID,)),
    68: Route("api_68_consumer_group_heartbeat", 0, 1, (READ_GROUP, DESCRIBE_TOPIC)),
    69: Route("api_69_consumer_group_describe", 0, 1, (DESCRIBE_GROUP, DESCRIBE_TOPIC)),
    74: Route("api_74_list_config_resources", 0, 1, (DESCRIBE_CONFIGS_CLUSTER,)),
    75: Route("api_75_describe_topic_partitions", 0, 0, (DESCRIBE_TOPIC,)),
}
"""Every API this broker has a handler for; ApiVersions announces exactly these."""


def announced_ranges() -> Iterator[ApiRange]:
    """The version ranges that ApiVersions returns, ordered by API key."""
    for key, route in sorted(ROUTES.items()):
        first = route.first if route.announced_first is None else route.announced_first
        yield ApiRange(key, first, route.last)


_header = struct.Struct(">hhih").unpack_from
"""The request header up to the length of the client id."""


class Router:
    """Passes each frame to its handler. One per broker, used on the loop only."""

    def __init__(self, broker: Broker, *, produce: FrameHandler, fetch: FrameHandler) -> None:
        self._broker = broker
        self._hot = {
            int(key): (handler, *APIS[key], broker.stats.of(key).by_version)
            for key, handler in ((ApiKey.PRODUCE, produce), (ApiKey.FETCH, fetch))
        }
        self._handles: dict[int, Handle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, connection: Connection, view: memoryview, start: int, end: int) -> Handled:
        """Handle the frame in `view[start:end]`; raises `CloseConnectionError` if no reply is possible."""
        try:
            api_key, version, correlation_id, client_id_length = _header(view, start)
            hot = self._hot.get(api_key)
            if hot is None:
                return self._handle_message(connection, view[start:end])
            handler, first, last, flexible_from, by_version = hot
            body = start + 10
            if client_id_length > 0:
                body += client_id_length
            if version >= flexible_from:
                body = body + 1 if body < end and view[body] == 0 else after_tags(view, body, end)
            if version < first or version > last:
                raise _unsupported_version(api_key, version)
            if body > end:
                raise MalformedRequestError("the header is longer than its frame")
            by_version[version] += 1
            if correlation_id & SAMPLED_BY:
                return handler(connection, view, start, body, end, version, correlation_id)
            began = perf_counter()
            handled = handler(connection, view, start, body, end, version, correlation_id)
            if not isinstance(handled, ReplySlot):
                self._broker.stats.of(api_key).sample((perf_counter() - began) * 1000, end - start)
            return handled
        except (MalformedRequestError, struct.error) as error:
            raise CloseConnectionError(f"malformed request: {error}") from error

    def _handle_message(self, connection: Connection, frame: memoryview) -> Handled:
        from moldau.protocol.messages import Message, decode_request

        header = decode_request_header(frame)
        api_key, version = header.api_key, header.api_version
        route = ROUTES.get(api_key)
        if route is None:
            raise CloseConnectionError(f"API key {api_key} is unknown or not supported")
        stats = self._broker.stats.of(api_key)
        stats.by_version[version] += 1
        stats.recent_request_bytes.append(len(frame))
        call = RequestContext(api_key, version, header.correlation_id, header.client_id, connection.session)
        if route.first <= version <= route.last:
            request = decode_request(api_key, version, frame[header.body_position :])
            if self._broker.forwarding is not None and is_forwarded(api_key, request):
                return self._forward(connection, request, bytes(frame), call)
            return self._answer(connection, request, call, encode_version=version)
        if api_key == ApiKey.API_VERSIONS:
            # The only API that answers an unsupported version: in version 0, which every client can read.
            return self._answer(connection, Message(), call, encode_version=0)
        raise _unsupported_version(api_key, version)

    def _forward(self, connection: Connection, request: Message, frame: bytes, call: RequestContext) -> ReplySlot:
        """Have the active controller answer a client's request, which is sent to it as it is."""
        forwarding = self._broker.forwarding
        assert forwarding is not None
        slot = ReplySlot(connection, holds_back=True)
        started_s = perf_counter()

        async def answer() -> None:
            try:
                data = await forwarding.forward(frame, call.session)
                if call.api_key == ApiKey.CREATE_TOPICS and not request.validate_only:
                    await forwarding.wait_for_creation(data, call.api_version)
            except Exception as error:
                log.warning("%s could not be forwarded: %s", ApiKey(call.api_key).display_name, error)
                slot.abandon()
                return
            self._broker.stats.of(call.api_key).sample((perf_counter() - started_s) * 1000, len(frame))
            slot.complete(len(data).to_bytes(4, "big") + data)

        task = asyncio.ensure_future(answer())
        slot.on_close = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return slot

    def _answer(
        self, connection: Connection, request: Message, call: RequestContext, *, encode_version: int
    ) -> Handled:
        started_s = perf_counter()
        outcome = self._handle_of(call.api_key)(request, call, self._broker)
        if not inspect.isawaitable(outcome):
            response = cast("Message | EncodedResponse", outcome)
            note_reply(self._broker.stats.of(call.api_key), response, started_s)
            return encode_reply(call.api_key, encode_version, call.correlation_id, response)
        slot = ReplySlot(connection, holds_back=True)
        task = asyncio.ensure_future(self._answer_later(slot, outcome, call, started_s))
        slot.on_close = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if inspect.iscoroutine(outcome):
            # A task that is cancelled before its first step never awaits the coroutine.
            task.add_done_callback(lambda _: outcome.close())
        return slot

    async def _answer_later(
        self, slot: ReplySlot, outcome: Awaitable[Message | EncodedResponse], call: RequestContext, started_s: float
    ) -> None:
        try:
            response = await outcome
            note_reply(self._broker.stats.of(call.api_key), response, started_s)
            reply = encode_reply(call.api_key, call.api_version, call.correlation_id, response)
        except Exception:
            log.exception("%s version %d failed", ApiKey(call.api_key).display_name, call.api_version)
            slot.abandon()
            return
        slot.complete(reply)

    def _handle_of(self, api_key: int) -> Handle:
        handle = self._handles.get(api_key)
        if handle is None:
            module = importlib.import_module(f"{HANDLERS_PACKAGE}.{ROUTES[api_key].module}")
            handle = self._handles[api_key] = module.handle
        return handle


FORWARDED = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UNREGISTER_BROKER,
    }
)
"""Requests of clients that the active controller of a cluster answers."""
BROKER_LOGGER = 8


def is_forwarded(api_key: int, request: Message) -> bool:
    """Whether the active controller answers this request; log levels are set on the broker that was asked."""
    if api_key not in FORWARDED:
        return False
    if api_key in (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS):
        return all(one.resource_type != BROKER_LOGGER for one in request.resources)
    return True


def encode_reply(api_key: int, version: int, correlation_id: int, response: Message | EncodedResponse) -> bytes:
    """Return a whole frame: length, response header of the right version, body."""
    from moldau.protocol.messages import EncodedResponse, encode_response

    header = encode_response_header(api_key, version, correlation_id)
    body = response.body if isinstance(response, EncodedResponse) else encode_response(api_key, version, response)
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


def _unsupported_version(api_key: int, version: int) -> CloseConnectionError:
    return CloseConnectionError(f"{ApiKey(api_key).display_name} version {version} is not supported")
