"""The APIs of a controller listener: a table of its own, apart from the broker's.

The quorum's requests are translated (`quorum.wire`) and passed to `ReplicatedQuorum.handle`; a fetch may be answered
later, and others on the same connection go on meanwhile. Start at `ControllerApis.handle`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from moldau.controller.cluster_apis import CLUSTER_APIS, ClusterApis
from moldau.controller.errors import RefusedError
from moldau.controller.features import KRAFT_VERSION, SUPPORTED, FeatureRange
from moldau.controller.quorum.replicated import ReplicatedQuorum
from moldau.controller.quorum.wire import reply_to_wire, request_from_wire
from moldau.controller.topic_names import METADATA_TOPIC
from moldau.core.errors import ErrorCode, MoldauError
from moldau.net.replies import CloseConnectionError, Handled, ReplySlot
from moldau.protocol.api import (
    ApiKey,
    MalformedRequestError,
    RequestHeader,
    decode_request_header,
    encode_response_header,
)
from moldau.protocol.messages import Message, decode_request, encode_response
from moldau.raft.roles import Progress

if TYPE_CHECKING:
    from moldau.net.connection import Connection

__all__ = ["CONTROLLER_APIS", "ControllerApis", "VersionRange"]

log = logging.getLogger(__name__)

FIRST_WITH_ZERO_LEVELS: Final = 4
FIRST_WITH_FENCED: Final = 2
PLAINTEXT: Final = 0
BROKERS, CONTROLLERS = 1, 2
NOT_ASKED: Final = -(2**31)
SUPPORTED_BY_CONTROLLERS: Final = {**SUPPORTED, KRAFT_VERSION: FeatureRange(0, 1)}
"""A node that is a broker, too, has the one voter it is, and kraft.version 0."""


class VersionRange(NamedTuple):
    first: int
    last: int


CONTROLLER_APIS: Final[Mapping[int, VersionRange]] = {
    # Followers fetch by the id of the topic and say what they know of the high watermark.
    ApiKey.FETCH: VersionRange(15, 18),
    ApiKey.API_VERSIONS: VersionRange(0, 4),
    ApiKey.VOTE: VersionRange(0, 2),
    ApiKey.BEGIN_QUORUM_EPOCH: VersionRange(0, 1),
    ApiKey.END_QUORUM_EPOCH: VersionRange(0, 1),
    ApiKey.DESCRIBE_QUORUM: VersionRange(0, 2),
    ApiKey.FETCH_SNAPSHOT: VersionRange(0, 1),
    ApiKey.DESCRIBE_CLUSTER: VersionRange(0, 2),
    ApiKey.ADD_RAFT_VOTER: VersionRange(0, 1),
    ApiKey.REMOVE_RAFT_VOTER: VersionRange(0, 0),
    ApiKey.UPDATE_RAFT_VOTER: VersionRange(0, 0),
}

Handle = Callable[[Message, RequestHeader], Awaitable[Message]]


class ControllerApis:
    """For `net.server.Server`."""

    def __init__(
        self,
        quorum: ReplicatedQuorum,
        now_ms: Callable[[], tuple[int, int]],
        *,
        cluster_id: str,
        cluster: ClusterApis | None = None,
        tells_brokers: bool = False,
    ) -> None:
        """`now_ms` gives wall-clock and monotonic time: what the quorum knows is monotonic, replies are not.

        `cluster` answers brokers. `tells_brokers` lets clients find brokers here, as they did with ZooKeeper.
        """
        self._tells_brokers = tells_brokers
        self._quorum = quorum
        self._cluster = cluster
        more = {} if cluster is None else {key: VersionRange(*one) for key, one in CLUSTER_APIS.items()}
        self._apis = dict(sorted({**CONTROLLER_APIS, **more}.items()))
        self._now_ms = now_ms
        self._cluster_id = cluster_id
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, connection: Connection, view: memoryview, start: int, end: int) -> Handled:
        frame = bytes(view[start:end])
        try:
            header = decode_request_header(frame)
            versions = self._apis.get(header.api_key)
            if versions is None:
                raise CloseConnectionError(f"API key {header.api_key} is not one of a controller")
            if not versions.first <= header.api_version <= versions.last:
                if header.api_key != ApiKey.API_VERSIONS:
                    text = f"{ApiKey(header.api_key).display_name} version {header.api_version} is not supported"
                    raise CloseConnectionError(text)
                return _frame(header._replace(api_version=0), self._api_versions(0, ErrorCode.UNSUPPORTED_VERSION))
            request = decode_request(header.api_key, header.api_version, frame[header.body_position :])
        except MalformedRequestError as error:
            raise CloseConnectionError(f"malformed request: {error}") from error
        if header.api_key == ApiKey.API_VERSIONS:
            return _frame(header, self._api_versions(header.api_version))
        if header.api_key == ApiKey.DESCRIBE_QUORUM:
            return _frame(header, self.describe_quorum(request))
        if header.api_key == ApiKey.DESCRIBE_CLUSTER:
            return _frame(header, self._describe_cluster(request, header.api_version, connection.session.local_host))
        return self._answer_later(connection, header, request)

    def _answer_later(self, connection: Connection, header: RequestHeader, request: Message) -> ReplySlot:
        slot = ReplySlot(connection, holds_back=False)
        task = asyncio.ensure_future(self._answer(slot, header, request))
        slot.on_close = task.cancel
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return slot

    async def _answer(self, slot: ReplySlot, header: RequestHeader, request: Message) -> None:
        try:
            if self._cluster is not None and header.api_key in CLUSTER_APIS:
                slot.complete(_frame(header, await self._cluster.answer(request, header)))
                return
            reply, records = await self._quorum.handle(request_from_wire(header.api_key, request))
            slot.complete(_frame(header, reply_to_wire(reply, records)))
        except RefusedError as error:
            slot.complete(_frame(header, Message(error_code=error.error, error_message=str(error))))
        except MoldauError as error:
            log.warning("%s is not answered: %s", ApiKey(header.api_key).display_name, error)
            slot.abandon()
        except Exception:
            log.exception("%s failed", ApiKey(header.api_key).display_name)
            slot.abandon()

    def _api_versions(self, version: int, error: ErrorCode = ErrorCode.NONE) -> Message:
        image = self._quorum.image
        return Message(
            error_code=error,
            api_keys=[
                Message(api_key=int(key), min_version=one.first, max_version=one.last)
                for key, one in self._apis.items()
            ],
            supported_features=[
                Message(name=name, min_version=level.min, max_version=level.max)
                for name, level in SUPPORTED_BY_CONTROLLERS.items()
                if level.min > 0 or version >= FIRST_WITH_ZERO_LEVELS
            ],
            finalized_features_epoch=image.offset,
            finalized_features=[
                Message(name=name, max_version_level=level, min_version_level=level)
                for name, level in self._finalized().items()
                if level > 0
            ],
            zk_migration_ready=False,
        )

    def _finalized(self) -> dict[str, int]:
        """The feature levels in effect; the quorum keeps its own."""
        level = self._quorum.kraft_version()
        return {**self._quorum.image.features, KRAFT_VERSION: level}

    def _describe_cluster(self, request: Message, version: int, local_host: str) -> Message:
        """The controllers, for tools that are given the address of one."""
        endpoint_type = request.endpoint_type if version >= 1 else BROKERS
        if endpoint_type == BROKERS and self._tells_brokers:
            shows_fenced = version >= FIRST_WITH_FENCED and request.include_fenced_brokers
            return self._describe_brokers(local_host, shows_fenced=shows_fenced)
        is_known = endpoint_type == CONTROLLERS
        errors = {CONTROLLERS: ErrorCode.NONE, BROKERS: ErrorCode.MISMATCHED_ENDPOINT_TYPE}
        error = errors.get(endpoint_type, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)
        controllers = [
            Message(broker_id=one.key.id, host=at.host, port=at.port, rack=None, is_fenced=False)
            for one in self._quorum.voters()
            for at in one.endpoints[:1]
        ]
        return Message(
            error_code=error,
            error_message=None if is_known else "This is a controller; brokers are asked elsewhere.",
            endpoint_type=CONTROLLERS,
            cluster_id=self._cluster_id,
            controller_id=self._quorum.view().leader_id,
            brokers=controllers if is_known else [],
            cluster_authorized_operations=NOT_ASKED,
        )

    def _describe_brokers(self, local_host: str, *, shows_fenced: bool) -> Message:
        """The brokers, those of this machine at the address by which the caller reached it."""
        image, here = self._quorum.image, socket.gethostname()
        brokers = []
        for broker in sorted(image.brokers.values(), key=lambda one: one.node_id):
            # A listener that tools can use without credentials, or else the first.
            plain = [one for one in broker.endpoints.values() if one.security_protocol == PLAINTEXT]
            at = next(iter(plain or broker.endpoints.values()), None)
            if at is not None and (shows_fenced or not broker.is_fenced):
                host, rack, is_fenced = at.host, broker.rack, broker.is_fenced
                host = local_host if host == here else host
                brokers.append(
                    Message(broker_id=broker.node_id, host=host, port=at.port, rack=rack, is_fenced=is_fenced)
                )
        return Message(
            error_code=ErrorCode.NONE,
            error_message=None,
            endpoint_type=BROKERS,
            cluster_id=self._cluster_id,
            controller_id=self._quorum.view().leader_id,
            brokers=brokers,
            cluster_authorized_operations=NOT_ASKED,
        )

    # --- DescribeQuorum ---------------------------------------------------------------------------------

    def describe_quorum(self, request: Message) -> Message:
        topics = [
            Message(
                topic_name=topic.topic_name,
                partitions=[self._partition(topic.topic_name, one.partition_index) for one in topic.partitions],
            )
            for topic in request.topics
        ]
        nodes = [
            Message(
                node_id=voter.key.id,
                listeners=[Message(name=one.listener, host=one.host, port=one.port) for one in voter.endpoints],
            )
            for voter in self._quorum.voters()
        ]
        return Message(error_code=ErrorCode.NONE, error_message=None, topics=topics, nodes=nodes)

    def _partition(self, topic: str, number: int) -> Message:
        view = self._quorum.view()
        error = ErrorCode.NONE
        if (topic, number) != (METADATA_TOPIC, 0):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif view.leader_id != self._quorum.me.key.id:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        is_known = error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        is_leader = error is ErrorCode.NONE
        return Message(
            partition_index=number,
            error_code=error,
            error_message=None,
            leader_id=view.leader_id if is_known else -1,
            leader_epoch=view.epoch if is_known else -1,
            high_watermark=view.high_watermark if is_leader else -1,
            current_voters=[self._replica(one) for one in view.voters] if is_leader else [],
            observers=[self._replica(one) for one in view.observers] if is_leader else [],
        )

    def _replica(self, progress: Progress) -> Message:
        wall_ms, monotonic_ms = self._now_ms()
        is_me = progress.key.id == self._quorum.me.key.id

        def at(moment_ms: int) -> int:
            if is_me:
                return wall_ms
            return -1 if moment_ms < 0 else wall_ms - (monotonic_ms - moment_ms)

        return Message(
            replica_id=progress.key.id,
            replica_directory_id=progress.key.directory_id,
            log_end_offset=progress.end_offset,
            last_fetch_timestamp=at(progress.last_fetch_ms),
            last_caught_up_timestamp=at(progress.last_caught_up_ms),
        )


def _frame(header: RequestHeader, response: Message) -> bytes:
    """A whole frame: length, response header, body."""
    head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
    body = encode_response(header.api_key, header.api_version, response)
    return (len(head) + len(body)).to_bytes(4, "big") + head + body
